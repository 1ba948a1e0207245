"""The watch over the corpus of one vector store, record manager or document store."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from langchain_stampcache.watching.chunks import ChunkForm
from stampcache.adapters import Change, Chunk, Core, Flow, IndexView, Step, Watch

Result = TypeVar("Result")

_LOGGER = logging.getLogger("stampcache")


class CorpusWatch(Watch):
    """The watch over one corpus, and the metadata there that says nothing."""

    def __init__(
        self,
        core: Core,
        corpus: str,
        view: IndexView,
        *,
        silence_s: float | None,
        form: ChunkForm,
        index: str = "",
    ) -> None:
        """``index`` tells the watched index from others; empty for what stands beside one."""
        super().__init__(core, corpus, view, silence_s=silence_s)
        self.volatile = form.volatile
        if index:
            core.indexes.setdefault(corpus, WeakKeyDictionary())[self] = index
        if not self.is_alone:
            core.counters.event("watch.two_indexes")
            _LOGGER.warning(
                "Corpus %r: two indexes are watched under one name. Any write to one of them ends all"
                " answers; give each index a corpus= of its own.",
                corpus,
            )

    @property
    def is_alone(self) -> bool:
        """Whether no other index is watched under this name: what is known is known of one."""
        return len({*self.core.indexes.get(self.corpus, {}).values()}) < 2

    def writing(
        self,
        write: Step[Result],
        *,
        told: Callable[[Result], Change | None],
        ids: Sequence[str] | None,
        planned: Sequence[Chunk] = (),
        beyond: bool = False,
    ) -> Flow[Result]:
        """See `Watch.writing`; where it is not alone, what a write differs in is not known."""

        def told_of_one(result: Result) -> Change | None:
            change = told(result)
            if change is None or self.is_alone:
                return change
            return replace(change, unknown=True)

        return super().writing(write, told=told_of_one, ids=ids, planned=planned, beyond=beyond)
