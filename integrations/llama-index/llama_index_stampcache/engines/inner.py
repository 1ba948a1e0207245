"""The engine that is cached, as the steps that a query takes through it."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.objects import ObjectRetriever
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
from pydantic import BaseModel

from llama_index_stampcache.parts import Described, objects_behind
from stampcache.adapters import Step

_EMPTY = "Empty Response"
_SYNTHESIZERS = ("_response_synthesizer", "_summarizer")
# Of these it is known that they stream where a part of them does, and nowhere else.
_KNOWN = frozenset(
    {
        CitationQueryEngine,
        MultiStepQueryEngine,
        RetrieverQueryEngine,
        RouterQueryEngine,
        SubQuestionQueryEngine,
        ToolRetrieverRouterQueryEngine,
        TransformQueryEngine,
    }
)
# They put nodes of their own before those that they found: what a step asked, and was answered.
_NOTING = (MultiStepQueryEngine, SubQuestionQueryEngine)
_NOTES = ("Sub question: ", "\nQuestion: ")


@runtime_checkable
class AsyncRetrieving(Protocol):
    """An engine with a retrieval of its own for tasks; the base class has none."""

    def aretrieve(self, query_bundle: QueryBundle) -> Awaitable[list[NodeWithScore]]:
        """Return the nodes for a query."""
        ...


class Inner:
    """Retrieval, synthesis and the whole query of an engine, each as a step."""

    def __init__(self, engine: BaseQueryEngine) -> None:
        self.engine = engine

    @property
    def in_two_steps(self) -> bool:
        """Whether a query can be run as a retrieval and a synthesis."""
        return all(
            type(each).retrieve is not BaseQueryEngine.retrieve
            and type(each).synthesize is not BaseQueryEngine.synthesize
            for each in self._engines()
        )

    def _engines(self) -> Iterator[BaseQueryEngine]:
        """Yield the engine, and the one that it hands queries on to, as a transform does."""
        inner: object = self.engine
        while isinstance(inner, BaseQueryEngine):
            yield inner
            inner = _handed_to(inner)

    def _tree(self) -> Iterator[BaseQueryEngine]:
        """Yield the engine and all engines inside of it."""
        waiting: list[object] = [self.engine]
        while waiting:
            each = waiting.pop()
            if isinstance(each, BaseQueryEngine):
                yield each
                waiting += [_handed_to(each), *_chosen_from(each)]

    @property
    def synthesizer(self) -> BaseSynthesizer | None:
        """What makes the answer from the nodes, where the engine has such a part."""
        found = (getattr(each, "_response_synthesizer", None) for each in self._engines())
        return next((part for part in found if isinstance(part, BaseSynthesizer)), None)

    def _synthesizers(self) -> Iterator[BaseSynthesizer]:
        for each in self._tree():
            parts = (getattr(each, name, None) for name in _SYNTHESIZERS)
            yield from (part for part in parts if isinstance(part, BaseSynthesizer))

    @property
    def retriever(self) -> BaseRetriever | None:
        """What finds the nodes, where the engine shows it."""
        found = (getattr(each, "_retriever", None) for each in self._engines())
        return next((part for part in found if isinstance(part, BaseRetriever)), None)

    @property
    def postprocessors(self) -> Sequence[object]:
        """What sorts, changes and drops retrieved nodes, in its order."""
        found = (getattr(each, "_node_postprocessors", None) for each in self._engines())
        return [part for parts in found for part in parts or ()]

    @property
    def llm(self) -> BaseLLM | None:
        """The model that answers, where the engine shows it."""
        found = getattr(self.synthesizer or self.engine, "_llm", None)
        return found if isinstance(found, BaseLLM) else None

    @property
    def output_cls(self) -> type[BaseModel] | None:
        """The class into which answers are parsed; of an engine of several classes it is unknown."""
        own = [getattr(each, "_llm", None) for each in (self.synthesizer, self.engine)]
        parts = [getattr(each, "_llm", None) for each in self._synthesizers()]
        classes = {part.output_cls for part in (*own, *parts) if isinstance(part, StructuredLLM)}
        if not classes:
            given = (getattr(each, "_output_cls", None) for each in self._synthesizers())
            classes = {each for each in given if each is not None}
        return classes.pop() if len(classes) == 1 else None

    @property
    def tools(self) -> Mapping[str, QueryEngineTool]:
        """The tools among which a router retrieves, by their names; those of one name are left out."""
        tools = [tool for each in self._tree() for tool in _retrieved_tools(each)]
        names = [tool.metadata.name for tool in tools]
        return {name: t for name, t in zip(names, tools, strict=True) if names.count(name) == 1}  # type: ignore[misc]  # LlamaIndex types the tools loosely

    @property
    def may_stream(self) -> bool:
        """Whether an answer may be a stream; surely not, where all parts are known and none streams."""
        return any(type(each) not in _KNOWN for each in self._tree()) or any(
            getattr(part, "_streaming", True) for part in self._synthesizers()
        )

    @property
    def streams_plainly(self) -> bool:
        """Whether its answers to tasks are those to threads: its streams, too."""
        kind = type(self.engine)
        return (
            issubclass(kind, CustomQueryEngine)
            and kind.acustom_query is CustomQueryEngine.acustom_query
        )

    @property
    def metadata_mode(self) -> MetadataMode:
        """How a node is rendered for the model; a citation engine has its own way."""
        mode = getattr(self.engine, "_metadata_mode", None)
        return mode if isinstance(mode, MetadataMode) else MetadataMode.LLM

    def is_empty(self, text: str) -> bool:
        """Tell whether this is the text that stands for "nothing was found"."""
        known = {getattr(part, "_empty_response", _EMPTY) for part in self._synthesizers()}
        return text.strip() in {"", _EMPTY, *known}

    def found(self, nodes: Sequence[NodeWithScore]) -> Sequence[NodeWithScore]:
        """Return what was found in documents, of the source nodes of an answer.

        An engine of several steps puts a note of each step before them. It comes from no document: taken
        for evidence, any change at all would concern it.
        """
        if not any(isinstance(each, _NOTING) for each in self._tree()):
            return nodes
        first = next((at for at, one in enumerate(nodes) if not _is_note(one)), len(nodes))
        return nodes[first:]

    def retrieve(self, bundle: QueryBundle) -> Step[Sequence[NodeWithScore]]:
        """Retrieve and postprocess."""
        engine = self.engine

        async def aretrieve() -> Sequence[NodeWithScore]:
            if isinstance(engine, AsyncRetrieving):
                return await engine.aretrieve(bundle)
            return await asyncio.to_thread(engine.retrieve, bundle)

        return Step(sync=lambda: engine.retrieve(bundle), aio=aretrieve)

    def synthesize(
        self,
        bundle: QueryBundle,
        nodes: Sequence[NodeWithScore],
        more: Sequence[NodeWithScore] = (),
    ) -> Step[RESPONSE_TYPE]:
        """Make the answer from nodes; ``more`` are cited beside them."""
        return Step(
            sync=lambda: self.engine.synthesize(bundle, list(nodes), list(more)),
            aio=lambda: self.engine.asynthesize(bundle, list(nodes), list(more)),
        )

    def query(self, bundle: QueryBundle) -> Step[RESPONSE_TYPE]:
        """Run the engine as a whole."""
        return Step(sync=lambda: self.engine.query(bundle), aio=lambda: self.engine.aquery(bundle))


def _handed_to(engine: BaseQueryEngine) -> object:
    if isinstance(engine, Described):
        return engine.identity_parts().get("inner")
    return getattr(engine, "_query_engine", None)


def _chosen_from(engine: BaseQueryEngine) -> list[object]:
    """Return the engines among which an engine chooses for each query."""
    engines = getattr(engine, "_query_engines", ())
    given = engines.values() if isinstance(engines, Mapping) else engines
    return [*given, *(tool.query_engine for tool in _retrieved_tools(engine))]


def _retrieved_tools(engine: BaseQueryEngine) -> list[QueryEngineTool]:
    retriever = getattr(engine, "_retriever", None)
    if not isinstance(retriever, ObjectRetriever):
        return []
    objects = objects_behind(retriever) or []
    return [tool for tool in objects if isinstance(tool, QueryEngineTool)]


def _is_note(one: NodeWithScore) -> bool:
    node = one.node
    plain = one.score is None and not node.metadata and not node.relationships
    return plain and node.get_content(metadata_mode=MetadataMode.NONE).startswith(_NOTES)
