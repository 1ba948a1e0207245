"""The engine that is cached, as the steps that a query takes through it."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import BaseModel

from llama_index_stampcache.describing import Described
from stampcache.adapters import Step

_EMPTY = "Empty Response"


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
            if isinstance(inner, Described):
                inner = inner.identity_parts().get("inner")
            else:
                inner = getattr(inner, "_query_engine", None)

    @property
    def synthesizer(self) -> BaseSynthesizer | None:
        """What makes the answer from the nodes, where the engine has such a part."""
        found = (getattr(each, "_response_synthesizer", None) for each in self._engines())
        return next((part for part in found if isinstance(part, BaseSynthesizer)), None)

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
        """The class into which answers are parsed."""
        llm = self.llm
        if isinstance(llm, StructuredLLM):
            return llm.output_cls
        return getattr(self.synthesizer, "_output_cls", None)

    @property
    def metadata_mode(self) -> MetadataMode:
        """How a node is rendered for the model; a citation engine has its own way."""
        mode = getattr(self.engine, "_metadata_mode", None)
        return mode if isinstance(mode, MetadataMode) else MetadataMode.LLM

    def is_empty(self, text: str) -> bool:
        """Tell whether this is the text that stands for "nothing was found"."""
        known = getattr(self.synthesizer, "_empty_response", _EMPTY)
        return text.strip() in ("", _EMPTY, known)

    def retrieve(self, bundle: QueryBundle) -> Step[Sequence[NodeWithScore]]:
        """Retrieve and postprocess."""
        engine = self.engine

        async def aretrieve() -> Sequence[NodeWithScore]:
            if isinstance(engine, AsyncRetrieving):
                return await engine.aretrieve(bundle)
            return await asyncio.to_thread(engine.retrieve, bundle)

        return Step(sync=lambda: engine.retrieve(bundle), aio=aretrieve)

    def synthesize(
        self, bundle: QueryBundle, nodes: Sequence[NodeWithScore]
    ) -> Step[RESPONSE_TYPE]:
        """Make the answer from nodes."""
        return Step(
            sync=lambda: self.engine.synthesize(bundle, list(nodes)),
            aio=lambda: self.engine.asynthesize(bundle, list(nodes)),
        )

    def query(self, bundle: QueryBundle) -> Step[RESPONSE_TYPE]:
        """Run the engine as a whole."""
        return Step(sync=lambda: self.engine.query(bundle), aio=lambda: self.engine.aquery(bundle))
