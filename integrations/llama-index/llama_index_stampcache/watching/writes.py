"""The writes to a watched index: what each of them does to its chunks."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from llama_index.core.schema import BaseNode, NodeRelationship
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.watching.chunks import NodeForm, unlike
from llama_index_stampcache.watching.stores import Known
from stampcache.adapters import Change, Chunk, Committed, Flow, Step, Watch

Result = TypeVar("Result")
_LINKS = (
    NodeRelationship.CHILD, NodeRelationship.NEXT, NodeRelationship.PARENT, NodeRelationship.PREVIOUS,
)  # fmt: skip


class _Done(Struct, Generic[Result], frozen=True):
    """What a write returned, and what the index holds after it, of the chunks that were looked at."""

    result: Result
    seen: Sequence[Chunk] = ()


class _Collected:
    """What the writes inside of a larger one did, in their order."""

    def __init__(self, writes: "Writes", around: "_Collected | None") -> None:
        self.writes = writes
        self.around = around
        self.changes: list[Change] = []

    def of(self, writes: "Writes") -> "_Collected | None":
        """Return what is collected for these writes."""
        if self.writes is writes:
            return self
        return None if self.around is None else self.around.of(writes)

    def change(self) -> Change:
        """Return all of it as one change."""
        added, removed = dict[str, Chunk](), dict[str, None]()
        emptied = False
        for one in self.changes:
            if one.emptied:
                added, removed, emptied = {}, {}, True
            for gone in one.removed:
                added.pop(gone, None)
                removed[gone] = None
            for chunk in one.added:
                removed.pop(chunk.id, None)
                added[chunk.id] = chunk
        return Change(
            added=tuple(added.values()),
            removed=tuple(removed),
            unknown=any(one.unknown for one in self.changes),
            emptied=emptied,
            beyond=any(one.beyond for one in self.changes),
        )


async def _do_nothing() -> None:
    return


_NOTHING: Step[None] = Step(sync=lambda: None, aio=_do_nothing)
_INSIDE: ContextVar[_Collected | None] = ContextVar("stampcache_llama_index_write", default=None)


class Writes:
    """Announces, makes and tells the writes to one index; safe for threads and tasks."""

    def __init__(self, watch: Watch, known: Known, form: NodeForm) -> None:
        self.watch = watch
        self.known = known
        self.form = form

    # -- to the vector store -----------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], write: Step[list[str]]) -> Flow[list[str]]:
        """Add nodes with their embeddings; in the place of what has their ids, or not: it is looked."""
        chunks = self._chunks(nodes)
        before = {} if self.known.replaces else (yield from self._replacing([*chunks]))
        look = self.known.view.look
        ids = [*before]

        def told(done: _Done[list[str]]) -> Change:
            there = {chunk.id: chunk for chunk in done.seen}
            settled = {i: _now(before[i], chunks[i], there.get(i)) for i in ids}
            return Change(added=tuple({**chunks, **settled}.values()))

        looked = _then(write, None if look is None or not ids else lambda: look(ids))
        done = yield from self._writing(looked, told, [*chunks], tuple(chunks.values()))
        return done.result

    def _replacing(self, ids: Sequence[str]) -> Flow[Mapping[str, Chunk]]:
        """Return those of these chunks that are there.

        Where nothing is known of a store they may come back in another place, among those that are as
        close: they are told to have gone before.
        """
        before = yield from self.watch.known(ids)
        if before and not self.known.steady and self._collected() is None:
            gone = Change(removed=tuple(before))
            yield from self._writing(_NOTHING, lambda _: gone, [*before])
        return before

    def _chunks(self, nodes: Sequence[BaseNode]) -> dict[str, Chunk]:
        """Return nodes as chunks; which vector one has that is given twice is not known."""
        times = Counter(node.node_id for node in nodes)
        chunks = (self.form.of(node) for node in nodes)
        return {c.id: c if times[c.id] == 1 else replace(c, vector=b"") for c in chunks}

    def delete_document(
        self,
        document: str,
        write: Step[None],
        by_ids: Callable[[Sequence[str]], Step[None]] | None,
    ) -> Flow[None]:
        """Delete the nodes of a document: those that are found, by their ids, where they can be found.

        Others that come meanwhile stay then, in the index and in what is known of it.
        """
        if self.known.of_document is None or by_ids is None:
            yield from self.write(write)
            return
        ids = yield from self.known.of_document(document)
        if ids:
            yield from self.delete(ids, by_ids(ids))

    def delete(self, ids: Sequence[str], write: Step[None]) -> Flow[None]:
        """Delete nodes by their ids."""
        yield from self._writing(write, lambda _: Change(removed=tuple(ids)), ids)

    def clear(self, write: Step[None]) -> Flow[None]:
        """Delete all nodes."""
        yield from self._writing(write, lambda _: Change(emptied=True), None)

    def write(self, write: Step[Result]) -> Flow[Result]:
        """Write what is not known; afterwards the index is listed, where it can be."""
        listing = self.known.view.listing
        if listing is None:
            return (yield from self._writing(write, lambda _: Change(unknown=True), None))
        before = yield from self.watch.known(None)

        def told(done: _Done[Result]) -> Change:
            chunks = (_with_vector(chunk, before.get(chunk.id)) for chunk in done.seen)
            return Change(added=tuple(chunks), emptied=True)

        done = yield from self._writing(_then(write, lambda: listing), told, None)
        return done.result

    # -- to the texts beside it --------------------------------------------------------------------

    def texts(self, write: Step[Result], *, changes: Step[bool]) -> Flow[Result]:
        """Write texts that a retriever may read beside those of the vector store.

        Args:
            write: writes them.
            changes: tells, before, whether a node that is there becomes another.
        """
        if not (yield from changes):
            return (yield from write)
        return (yield from self._writing(write, _anything, None, beyond=True))

    def lost_text(self, write: Step[Result], *, exists: Step[bool]) -> Flow[Result]:
        """Delete texts; inside of a larger write, which deletes their vectors, too, that says it."""
        if self._collected() is not None or not (yield from exists):
            return (yield from write)
        return (yield from self._writing(write, _anything, None, beyond=True))

    def differs(self, before: BaseNode | None, node: BaseNode) -> bool:
        """Tell whether a text is another than before; its vector store tells what of its own changed."""
        if before is None:
            return False
        if self._collected() is None and self.form.like(before) != self.form.like(node):
            return True
        return _links(before) != _links(node)

    # -- several at once ---------------------------------------------------------------------------

    def together(
        self,
        write: Step[Result],
        *,
        ids: Sequence[str] | None,
        planned: Sequence[BaseNode] = (),
    ) -> Flow[Result]:
        """Make one write of all that are made inside: until all of it is there, no hit is served.

        Args:
            write: makes them.
            ids: of all nodes that may be touched, where that is known.
            planned: the nodes that are added, with their embeddings.
        """

        def run() -> _Done[Result]:
            with self._collecting() as collected:
                result = write.sync()
            made.append(collected.change())
            return _Done(result)

        async def arun() -> _Done[Result]:
            with self._collecting() as collected:
                result = await write.aio()
            made.append(collected.change())
            return _Done(result)

        made: list[Change] = []
        chunks = tuple(self._chunks(planned).values())
        if chunks:
            yield from self._replacing([chunk.id for chunk in chunks])
        step = Step(sync=run, aio=arun)
        done = yield from self._writing(step, lambda _: made[0], ids, chunks)
        return done.result

    @contextmanager
    def _collecting(self) -> Iterator[_Collected]:
        collected = _Collected(self, _INSIDE.get())
        token = _INSIDE.set(collected)
        try:
            yield collected
        finally:
            _INSIDE.reset(token)

    # -- by hand -----------------------------------------------------------------------------------

    def resync(self) -> Flow[Committed]:
        """Take over what the index holds now; see `stampcache.adapters.Watch.resync`."""
        return (yield from self.watch.resync())

    def _collected(self) -> _Collected | None:
        inside = _INSIDE.get()
        return None if inside is None else inside.of(self)

    def _writing(
        self,
        write: Step[Result],
        told: Callable[[Result], Change],
        ids: Sequence[str] | None,
        planned: Sequence[Chunk] = (),
        *,
        beyond: bool = False,
    ) -> Flow[Result]:
        """Announce and tell a write; inside of a larger one, let that tell it.

        ``beyond``: it writes texts that the index does not hold, so that nothing there shows them.
        """
        collected = self._collected()
        if collected is None:
            writing = self.watch.writing(write, told=told, ids=ids, planned=planned, beyond=beyond)
            return (yield from writing)
        result = yield from write
        collected.changes.append(told(result))
        return result


def _anything(_: object) -> Change:
    """Tell of a write of texts: any answer may be made from them."""
    return Change(unknown=True, beyond=True)


def _links(node: BaseNode) -> dict[str, list[str]]:
    """Return the nodes that a retriever may go to from a node."""
    found = {kind: node.relationships.get(kind) for kind in _LINKS}
    return {
        str(kind.value): [one.node_id for one in (to if isinstance(to, list) else [to])]
        for kind, to in found.items()
        if to is not None
    }


def _then(
    write: Step[Result], look: Callable[[], Step[Sequence[Chunk]]] | None
) -> Step[_Done[Result]]:
    """Return a step that writes, and then looks at what the index holds."""

    def run() -> _Done[Result]:
        result = write.sync()
        return _Done(result) if look is None else _Done(result, look().sync())

    async def arun() -> _Done[Result]:
        result = await write.aio()
        return _Done(result) if look is None else _Done(result, await look().aio())

    return Step(sync=run, aio=arun)


def _now(before: Chunk, given: Chunk, seen: Chunk | None) -> Chunk:
    """Return what an index holds that was given a node of an id that it has.

    Stores differ: some take the new one, some keep the old one, some hold both.
    """
    if seen is None:
        return replace(given, digest=unlike(), vector=b"")
    if seen.vector:
        return seen
    if before.digest == given.digest and before.vector != given.vector:
        return replace(seen, vector=b"")
    same = (one for one in (given, before) if one.digest == seen.digest)
    return replace(seen, vector=next((one.vector for one in same), b""))


def _with_vector(chunk: Chunk, before: Chunk | None) -> Chunk:
    if chunk.vector or before is None or before.digest != chunk.digest:
        return chunk
    return replace(chunk, vector=before.vector)
