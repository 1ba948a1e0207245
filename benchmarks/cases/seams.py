"""All seams of stampcache at which the cases are asked: the columns of the matrix."""

from collections.abc import Sequence

from benchmarks.cases.rigs.agents import AgentRig
from benchmarks.cases.rigs.chains import RecheckedChainRig, VersionedChainRig
from benchmarks.cases.rigs.chat import CachedChatRig
from benchmarks.cases.rigs.core import CoreRig
from benchmarks.cases.rigs.langchain_caches import StampCacheRig
from benchmarks.cases.rigs.llama_chat import ChatEngineRig
from benchmarks.cases.rigs.llama_engines import QueryRig
from benchmarks.cases.rigs.llama_llm import LLMRig
from benchmarks.cases.rigs.nodes import NodeRig
from benchmarks.cases.rigs.retrievers import LlamaRetrieverRig, RetrieverRig
from benchmarks.cases.rigs.vectors import EmbeddingRig, EmbeddingsRig
from benchmarks.cases.stamped import StampedRig

SEAMS: Sequence[type[StampedRig]] = (
    CoreRig,
    StampCacheRig,
    CachedChatRig,
    RecheckedChainRig,
    VersionedChainRig,
    AgentRig,
    NodeRig,
    EmbeddingsRig,
    RetrieverRig,
    QueryRig,
    ChatEngineRig,
    LLMRig,
    EmbeddingRig,
    LlamaRetrieverRig,
)
