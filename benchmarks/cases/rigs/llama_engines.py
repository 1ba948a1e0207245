"""`CachedQueryEngine` and `CachedChatEngine`, in front of engines of LlamaIndex."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core import PromptTemplate, get_response_synthesizer
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore

from benchmarks.cases.rigs.apps import CORE, NO_VECTORS, ScriptedApp
from benchmarks.cases.rigs.core import CORPUS, words_of
from benchmarks.cases.rigs.llama_llm import llm_of
from benchmarks.cases.scripted_llama import ScriptedLLM
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere
from llama_index_stampcache import CachedQueryEngine

PROMPT = PromptTemplate("Use {context_str}\n{query_str}")


class Shelf(BaseRetriever):
    """Retrieves the documents that share a longer word with the question."""

    def __init__(self) -> None:
        super().__init__()
        self._store = SimpleDocumentStore()

    def put(self, name: str, text: str) -> None:
        """Put a document there, or another text in its place."""
        self._store.add_documents([node_of(name, text)])

    def remove(self, name: str) -> str:
        """Remove a document, and return its text."""
        text = self._text(name)
        self._store.delete_document(name, raise_error=False)
        return text

    def _text(self, name: str) -> str:
        return str(self._store.docs[name].get_content())

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        words = words_of(query_bundle.query_str)
        found = [
            node_of(name, self._text(name))
            for name in sorted(self._store.docs)
            if words & words_of(self._text(name))
        ]
        found = found or [node_of("nothing", "Nothing is known.")]  # else no model is asked
        return [NodeWithScore(node=node, score=1.0) for node in found]


def node_of(name: str, text: str) -> TextNode:
    """Return a document as a node."""
    of = RelatedNodeInfo(node_id=name)
    return TextNode(id_=name, text=text, relationships={NodeRelationship.SOURCE: of})


class EngineApp(ScriptedApp):
    """An engine of either kind."""

    def __init__(self, inner: ScriptedLLM) -> None:
        self.inner = inner
        self.script = inner.script

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self.inner, name, value)

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """See `App.tokens_called_back`; the framework tells of tokens by the stream itself."""
        return self.pieces(call)

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw.response = "spoiled"
        for node in reply.raw.source_nodes:
            node.node.text = "spoiled"
        reply.raw.metadata["cache"]["reason"] = "spoiled"


class QueryApp(EngineApp):
    """A query engine, and the same one that streams."""

    def __init__(self, inner: ScriptedLLM, whole: Any, streaming: Any) -> None:
        super().__init__(inner)
        self._whole = whole
        self._streaming = streaming

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            if call.stream:
                return _told(self._streaming.query(call.question).get_response())
            return _told(self._whole.query(call.question))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            if call.stream:
                return _told(await (await self._streaming.aquery(call.question)).get_response())
            return _told(await self._whole.aquery(call.question))

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        return [piece for piece in self._streaming.query(call.question).response_gen if piece]

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        stream = self._streaming.query(call.question).response_gen
        next(stream)
        stream.close()


def _told(raw: Any) -> Reply:
    metadata = {name: one for name, one in (raw.metadata or {}).items() if name != "cache"}
    nodes = [node.node.text for node in raw.source_nodes]
    return Reply(
        text=str(raw.response),
        raw=raw,
        fields=raw.metadata["cache"],
        essence=[type(raw).__name__, str(raw), nodes, metadata],
    )


_NO_TOKENS = elsewhere("a response of an engine holds no tokens; a hit asks no model")
ENGINE_LACKS: Mapping[Ability, Lack] = {
    Ability.CORE: CORE,
    Ability.VECTORS: NO_VECTORS,
    Ability.OPTIONS: elsewhere("a question to an engine has no options of its model"),
    Ability.PLAIN_TEXT: elsewhere("keeps whole answers"),
    Ability.TOOLS: elsewhere("an engine has no tools"),
    Ability.TOOL_TURNS: elsewhere("an engine has no tools"),
    Ability.SCHEMAS: elsewhere("a schema is set on the model in it"),
    Ability.SEVERAL: elsewhere("answers once"),
    Ability.GENERATIONS: elsewhere("is handed no generations"),
    Ability.PROMPTS: elsewhere("is given the question apart from the prompt"),
    Ability.MESSAGES: elsewhere("its responses are no messages"),
    Ability.MADE_ANEW: elsewhere("its responses have no ids"),
    Ability.USAGE: _NO_TOKENS,
}


class EngineRig(StampedRig):
    """An engine over a shelf of documents."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.shelf = Shelf()

    @abstractmethod
    def app(self, model: Model = Model()) -> EngineApp:  # noqa: B008 - frozen
        """See `Rig.app`."""

    def with_function(self, function: Callable[[str], str]) -> EngineApp:
        """See `Rig.with_function`."""
        return self.app(Model(params={"shape": function}))

    def write(self, name: str, text: str) -> None:
        """See `Rig.write`."""
        self.shelf.put(name, text)
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        self.shelf.remove(name)
        self._cache.invalidate(corpus=CORPUS, source=name)

    def move(self, name: str, other: str) -> None:
        """See `Rig.move`."""
        self.shelf.put(other, self.shelf.remove(name))

    def engine(self, llm: ScriptedLLM, *, streaming: bool = False) -> RetrieverQueryEngine:
        """Return the query engine over the shelf."""
        answering = get_response_synthesizer(llm=llm, text_qa_template=PROMPT, streaming=streaming)
        return RetrieverQueryEngine(self.shelf, answering)


class QueryRig(EngineRig):
    """`CachedQueryEngine` in front of a retriever's engine."""

    name = "CachedQueryEngine"
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **ENGINE_LACKS,
        Ability.HISTORY: elsewhere("a query has no history"),
        Ability.SYSTEM: elsewhere(
            "its system prompt is set on the model in it, whose settings are keyed"
        ),
        Ability.CONDENSES: elsewhere("the chat engine condenses"),
        Ability.ONE_ANSWER: elsewhere("an engine that streams is another engine"),
    }

    def app(self, model: Model = Model()) -> QueryApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        llm = llm_of(model)
        whole, streaming = (
            CachedQueryEngine(self.engine(llm, streaming=streams), cache=self._cache, corpus=CORPUS)
            for streams in (False, True)
        )
        return QueryApp(llm, whole, streaming)
