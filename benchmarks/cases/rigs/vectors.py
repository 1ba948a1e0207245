"""`CachedEmbeddings` and `CachedEmbedding`: what an embedder made of a text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import BaseModel, PrivateAttr

from benchmarks.cases.rigs.apps import CORE, NOT_LLAMA, ScriptedApp
from benchmarks.cases.script import Script
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere
from langchain_stampcache import CachedEmbeddings
from llama_index_stampcache import CachedEmbedding

_DOCUMENT = 1.0
_QUERY = 2.0


def spelled(script: Script, text: str, role: float) -> list[float]:
    """Return a vector that tells its role, the number of the call, and the text."""
    _, call = script.say(text)
    return [role, float(call), *map(float, map(ord, text))]


class SpellingEmbeddings(BaseModel, Embeddings):
    """Embeddings of LangChain, with the settings that a provider's have."""

    model: str
    base_url: str
    dimensions: int | None = None
    options: dict[str, Any] = {}
    _script: Script = PrivateAttr(default_factory=Script)

    @property
    def script(self) -> Script:
        """How often it was asked."""
        return self._script

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""
        return spelled(self._script, text, _QUERY)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents."""
        return [spelled(self._script, text, _DOCUMENT) for text in texts]


class SpellingEmbedding(BaseEmbedding):
    """An embedding model of LlamaIndex."""

    api_base: str = ""
    dimensions: int | None = None
    additional_kwargs: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic
    _script: Script = PrivateAttr(default_factory=Script)

    @property
    def script(self) -> Script:
        """How often it was asked."""
        return self._script

    def _get_query_embedding(self, query: str) -> list[float]:
        return spelled(self._script, query, _QUERY)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return spelled(self._script, query, _QUERY)

    def _get_text_embedding(self, text: str) -> list[float]:
        return spelled(self._script, text, _DOCUMENT)


class VectorApp(ScriptedApp):
    """An application that embeds queries."""

    def __init__(
        self,
        script: Script,
        query: Callable[[str], Any],
        aquery: Callable[[str], Any],
        documents: Callable[[list[str]], Any],
    ) -> None:
        self.script = script
        self._query = query
        self._aquery = aquery
        self._documents = documents

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            return _told(self._query(call.question))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            return _told(await self._aquery(call.question))

    def vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `App.vectors`."""
        found: Sequence[Sequence[float]] = self._documents(list(texts))
        return found

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw[1] = 99.0


def _told(vector: list[float]) -> Reply:
    text = "".join(chr(int(number)) for number in vector[2:])
    return Reply(text=f"Answer {vector[1]:.0f} to: {text}", raw=vector, essence=list(vector))


_NO_REPLY = elsewhere("gives vectors, no answers")
_LACKING = (
    Ability.OPTIONS, Ability.PLAIN_TEXT, Ability.TOOLS, Ability.TOOL_TURNS, Ability.SCHEMAS,
    Ability.CALLABLES, Ability.SYSTEM, Ability.HISTORY, Ability.MESSAGES, Ability.SEVERAL,
    Ability.GENERATIONS, Ability.MEANING, Ability.PROMPTS, Ability.CONDENSES, Ability.DOCUMENTS,
    Ability.CITES, Ability.RECHECKS, Ability.STREAMS, Ability.USAGE, Ability.BREAKDOWN,
    Ability.FIELDS, Ability.MISSES, Ability.MADE_ANEW, Ability.VARIETY, Ability.REPLIES, Ability.ADMITS,
)  # fmt: skip
VECTOR_LACKS = {**dict.fromkeys(_LACKING, _NO_REPLY), Ability.CORE: CORE}


class EmbeddingsRig(StampedRig):
    """`CachedEmbeddings`, the proxy of LangChain's embeddings."""

    name = "CachedEmbeddings"
    by_meaning = False
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **VECTOR_LACKS,
        Ability.LLAMA: NOT_LLAMA,
        Ability.CHANGES: _NO_REPLY,
    }

    def app(self, model: Model = Model()) -> VectorApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = SpellingEmbeddings(
            model=model.name,
            base_url=model.endpoint,
            dimensions=model.params.get("dimensions"),
            options={name: one for name, one in model.params.items() if name != "dimensions"},
        )
        cached = CachedEmbeddings(inner, cache=self._cache)
        return VectorApp(
            inner.script, cached.embed_query, cached.aembed_query, cached.embed_documents
        )


class EmbeddingRig(StampedRig):
    """`CachedEmbedding`, the proxy of LlamaIndex's embedding models."""

    name = "CachedEmbedding"
    by_meaning = False
    lacks: ClassVar[Mapping[Ability, Lack]] = {**VECTOR_LACKS, Ability.CHANGES: _NO_REPLY}

    def app(self, model: Model = Model()) -> VectorApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = SpellingEmbedding(
            model_name=model.name,
            api_base=model.endpoint,
            dimensions=model.params.get("dimensions"),
            additional_kwargs={n: one for n, one in model.params.items() if n != "dimensions"},
        )
        cached = CachedEmbedding(inner, cache=self._cache)
        return VectorApp(
            inner.script,
            cached.get_query_embedding,
            cached.aget_query_embedding,
            cached.get_text_embedding_batch,
        )
