"""LlamaIndex: for each seam an application without a cache, and the same one with it."""

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from msgspec.structs import replace
from pydantic import PrivateAttr

from benchmarks.overhead.pair import Pair, paired
from llama_index_stampcache import CachedChatEngine, CachedLLM, CachedQueryEngine
from stampcache import Stamps, open_cache

BUILT = Stamps(index="built-1")
SOURCE = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="leave")}


class InstantLLM(CustomLLM):
    """A model that answers at once, with the last line of what it is told."""

    model: str = "instant-1"
    temperature: float = 0.0
    _made: list[None] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        """Return its name."""
        return "InstantLLM"

    @property
    def made(self) -> int:
        """How often it has answered."""
        return len(self._made)

    @property
    def metadata(self) -> LLMMetadata:
        """Return what it is."""
        return LLMMetadata(model_name=self.model, context_window=100_000)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002 - the framework's signature
        """Answer with the line of the prompt in which the question is."""
        self._made.append(None)
        asked = [line for line in prompt.splitlines() if "How long" in line]
        question = asked[-1].removeprefix("Query: ").removeprefix("user: ") if asked else ""
        return CompletionResponse(text=f"Thirty days. You asked: {question.strip()}")

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,
        **kwargs: Any,
    ) -> CompletionResponseGen:
        """Answer in one piece."""
        whole = self.complete(prompt, formatted, **kwargs)

        def pieces() -> CompletionResponseGen:
            yield CompletionResponse(text=whole.text, delta=whole.text)

        return pieces()


class Shelf(BaseRetriever):
    """Always finds the same four chunks."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes = [
            TextNode(
                id_=f"leave-{number}",
                text=f"Chapter {number}: annual leave is thirty days. " * 8,
                relationships=SOURCE,
            )
            for number in range(4)
        ]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002 - always the same
        return [NodeWithScore(node=node, score=0.9) for node in self._nodes]


def _says(given: Any) -> object:
    return getattr(given, "response", None) or getattr(given, "text", None) or given


def llm() -> Pair:
    """A model behind `CachedLLM`."""
    cache, models = open_cache("memory://"), (InstantLLM(), InstantLLM())
    kept = CachedLLM(models[1], cache=cache)
    return paired(cache, models, models[0].complete, kept.complete, kept.acomplete, _says)


def query_engine(grounding: str) -> Callable[[], Pair]:
    """A query engine, alone and behind `CachedQueryEngine`."""

    def make() -> Pair:
        cache, models = open_cache("memory://"), (InstantLLM(), InstantLLM())
        alone, inner = (RetrieverQueryEngine.from_args(Shelf(), llm=model) for model in models)
        kept = CachedQueryEngine(
            inner,
            cache=cache,
            grounding=grounding,  # type: ignore[arg-type]  # a name of ours
            corpus="handbook",
            stamps=BUILT,
        )
        return paired(cache, models, alone.query, kept.query, kept.aquery, _says)

    return make


def chat_engine() -> Pair:
    """The first turn of a conversation, alone and through `CachedChatEngine`."""
    cache, models = open_cache("memory://"), (InstantLLM(), InstantLLM())

    def talk(model: InstantLLM) -> ContextChatEngine:
        memory = ChatMemoryBuffer.from_defaults()
        return ContextChatEngine.from_defaults(Shelf(), llm=model, memory=memory)

    def kept_talk() -> CachedChatEngine:
        return CachedChatEngine(
            talk(models[1]), cache=cache, grounding="version", corpus="handbook", stamps=BUILT
        )

    alone, kept = talk(models[0]), kept_talk()

    def ask_alone(question: str) -> Any:
        alone.reset()
        return alone.chat(question)

    def ask_kept(question: str) -> Any:
        kept.reset()
        return kept.chat(question)

    return replace(
        paired(
            cache, models, ask_alone, ask_kept, lambda question: kept_talk().achat(question), _says
        ),
        apart=lambda question: kept_talk().chat(question),
    )


SEAMS: Mapping[str, Callable[[], Pair]] = {
    "CachedLLM": llm,
    "CachedQueryEngine, recheck": query_engine("recheck"),
    "CachedQueryEngine, version": query_engine("version"),
    "CachedChatEngine": chat_engine,
}
