"""`CachedRetriever` of both frameworks: what was found for a query."""

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from benchmarks.cases.rigs.apps import CORE, NO_VECTORS, NOT_LLAMA, ScriptedApp
from benchmarks.cases.rigs.core import CORPUS, words_of
from benchmarks.cases.rigs.llama_engines import node_of
from benchmarks.cases.rigs.vectors import SpellingEmbedding
from benchmarks.cases.script import Script
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere
from langchain_stampcache import CachedRetriever
from llama_index_stampcache import CachedRetriever as LlamaCachedRetriever
from stampcache import Stamps
from stampcache.adapters import VersionOf

BUILT = Stamps(index="built-1")
_FILES = {"leave": "leave.md", "travel": "travel.md"}


def _source(question: str) -> str:
    """Return the file in which a question is answered."""
    found = words_of(question) & _FILES.keys()
    return _FILES[min(found)] if found else "others.md"


class CountingRetriever(BaseRetriever):
    """Finds one document for a query, which tells the number of the call."""

    model: str
    temperature: float | None
    base_url: str
    search_kwargs: dict[str, Any]
    _script: Script = PrivateAttr(default_factory=Script)

    @property
    def script(self) -> Script:
        """How often it was asked."""
        return self._script

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework's signature
    ) -> list[Document]:
        said, _ = self._script.say(query)
        return [Document(said.text, metadata={"source": _source(query)})]


class LlamaCountingRetriever(LlamaRetriever):
    """The same of LlamaIndex; its settings are those of its embedding model."""

    def __init__(self, embed_model: SpellingEmbedding) -> None:
        super().__init__()
        self._embed_model = embed_model

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        said, _ = self._embed_model.script.say(query_bundle.query_str)
        source = _source(query_bundle.query_str)
        return [NodeWithScore(node=node_of(source, said.text), score=1.0)]


class RetrieverApp(ScriptedApp):
    """An application that retrieves with LangChain."""

    def __init__(self, inner: CountingRetriever, cached: CachedRetriever) -> None:
        self.script = inner.script
        self._inner = inner
        self._cached = cached

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self._inner, name, value)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            return _told(self._cached.invoke(call.question))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            return _told(await self._cached.ainvoke(call.question))

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw[0].page_content = "spoiled"
        reply.raw[0].metadata["source"] = "spoiled"


def _told(found: list[Document]) -> Reply:
    texts = [[document.page_content, document.metadata] for document in found]
    return Reply(text=found[0].page_content, raw=found, essence=texts)


class LlamaRetrieverApp(ScriptedApp):
    """An application that retrieves with LlamaIndex."""

    def __init__(self, inner: SpellingEmbedding, cached: LlamaCachedRetriever) -> None:
        self.script = inner.script
        self._cached = cached

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            return _retrieved(self._cached.retrieve(call.question))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            return _retrieved(await self._cached.aretrieve(call.question))

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw[0].node.text = "spoiled"
        reply.raw[0].score = 0.0


def _retrieved(found: list[NodeWithScore]) -> Reply:
    contents = [[each.node.get_content(), each.score] for each in found]
    return Reply(text=found[0].node.get_content(), raw=found, essence=contents)


_NO_REPLY = elsewhere("gives documents, no answers")
_LACKING = (
    Ability.OPTIONS, Ability.PLAIN_TEXT, Ability.TOOLS, Ability.TOOL_TURNS, Ability.SCHEMAS,
    Ability.CALLABLES, Ability.SYSTEM, Ability.HISTORY, Ability.MESSAGES, Ability.SEVERAL,
    Ability.GENERATIONS, Ability.PROMPTS, Ability.CONDENSES, Ability.STREAMS, Ability.USAGE,
    Ability.BREAKDOWN, Ability.MADE_ANEW, Ability.VARIETY, Ability.REPLIES, Ability.ADMITS,
)  # fmt: skip
_TOLD = elsewhere("documents are returned as they were; an event tells of the cache")
RETRIEVER_LACKS: Mapping[Ability, Lack] = {
    **dict.fromkeys(_LACKING, _NO_REPLY),
    Ability.MEANING: elsewhere("a query is matched by its very text"),
    Ability.RECHECKS: elsewhere("to retrieve again is what it saves"),
    Ability.FIELDS: _TOLD,
    Ability.MISSES: _TOLD,
    Ability.CORE: CORE,
    Ability.VECTORS: NO_VECTORS,
}


class _RetrieverRig(StampedRig):
    """A retriever behind the cache, whose documents any write makes stale, or those that were found."""

    by_meaning = False

    def __init__(self, *, version_of: VersionOf = "corpus", **options: Any) -> None:
        super().__init__(**options)
        self._validity: dict[str, Any] = {
            "cache": self._cache,
            "corpus": CORPUS,
            "stamps": BUILT,
            "version_of": version_of,
        }

    def citing(self) -> "_RetrieverRig":
        """See `Rig.citing`."""
        return type(self)(version_of="sources")

    def write(self, name: str, text: str) -> None:  # noqa: ARG002 - the text is that of a script
        """See `Rig.write`."""
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        self._cache.invalidate(corpus=CORPUS, source=name)


class RetrieverRig(_RetrieverRig):
    """The one of LangChain."""

    name = "CachedRetriever (LangChain)"
    lacks: ClassVar[Mapping[Ability, Lack]] = {**RETRIEVER_LACKS, Ability.LLAMA: NOT_LLAMA}

    def app(self, model: Model = Model()) -> RetrieverApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = CountingRetriever(
            model=model.name,
            temperature=model.temperature,
            base_url=model.endpoint,
            search_kwargs=dict(model.params),
        )
        return RetrieverApp(inner, CachedRetriever(inner=inner, **self._validity))


class LlamaRetrieverRig(_RetrieverRig):
    """The one of LlamaIndex."""

    name = "CachedRetriever (LlamaIndex)"
    lacks: ClassVar[Mapping[Ability, Lack]] = {**RETRIEVER_LACKS, Ability.CHANGES: _NO_REPLY}

    def app(self, model: Model = Model()) -> LlamaRetrieverApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = SpellingEmbedding(
            model_name=model.name,
            api_base=model.endpoint,
            additional_kwargs=dict(model.params),
        )
        cached = LlamaCachedRetriever(LlamaCountingRetriever(inner), **self._validity)
        return LlamaRetrieverApp(inner, cached)
