"""What was heard of the searches of a watched index while an answer was made from it."""

from collections.abc import Callable, Sequence

from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, ObjectType
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.watching.chunks import NodeForm
from llama_index_stampcache.watching.searches import Unkept
from llama_index_stampcache.watching.sources import Source
from llama_index_stampcache.watching.stores import Scale
from stampcache import ConfigError
from stampcache.adapters import CanonicalError, Reading, Step, hear, readings

UNWATCHED = "adapter.unwatched"
"""Counts what was made from what no watch sees."""


class Heard(Struct, frozen=True):
    """The searches that an answer was made from; ``problem`` says why it must not be kept."""

    readings: Sequence[Reading] = ()
    problem: str = ""


class Watching:
    """Reads what was heard for the answers of one engine."""

    def __init__(
        self, source: Callable[[], Source], postprocessors: Callable[[], Sequence[object]]
    ) -> None:
        """Read for an engine.

        Args:
            source: tells what it reads from now; raises `ConfigError` where that is not watched.
            postprocessors: gives what chooses from the nodes found.
        """
        self._source = source
        self._postprocessors = postprocessors

    def read(self, heard: Sequence[Reading], nodes: Sequence[NodeWithScore] | None) -> Heard:
        """Return what is kept of what was heard while an answer was made from these nodes."""
        try:
            source = self._source()
        except ConfigError as error:  # a part was exchanged
            return Heard(problem=str(error))
        problem = _problem(heard) or _strangers(heard, nodes or (), source)
        if problem:
            return Heard(problem=problem)
        if source.why or any(one.problem for one in heard):
            return Heard([_unplain(one, source.why) for one in heard])
        after, scale = self._postprocessors(), source.scale
        return Heard([trimmed(one, nodes or (), after, scale) for one in heard])


class WatchedSearch:
    """One search, whose readings are read before they are passed on."""

    def __init__(self, watching: Watching, search: Step[list[NodeWithScore]]) -> None:
        self.problem = ""
        self._watching = watching
        self._search = search

    def step(self) -> Step[list[NodeWithScore]]:
        """Return the search; ``problem`` says afterwards why what it found must not be kept."""

        def sync() -> list[NodeWithScore]:
            with readings() as heard:
                found = self._search.sync()
            self._pass_on(heard, found)
            return found

        async def aio() -> list[NodeWithScore]:
            with readings() as heard:
                found = await self._search.aio()
            self._pass_on(heard, found)
            return found

        return Step(sync=sync, aio=aio)

    def _pass_on(self, heard: Sequence[Reading], found: Sequence[NodeWithScore]) -> None:
        read = self._watching.read(heard, found)
        self.problem = read.problem
        for one in read.readings:
            hear(one)


def _problem(heard: Sequence[Reading]) -> str:
    if not heard:
        return "nothing was seen of a search for it"
    return next((one.problem for one in heard if isinstance(one, Unkept)), "")


def _strangers(heard: Sequence[Reading], nodes: Sequence[NodeWithScore], source: Source) -> str:
    """Say which node is not what the watched index gave."""
    digests: dict[str, str] = {}
    for one in heard:
        digests |= dict(zip(one.chunks, one.digests, strict=False))
    plain = not source.why and not any(one.problem for one in heard)
    form = NodeForm(source.volatile)
    for found in nodes:
        node = found.node
        if plain and node.node_id not in digests:
            return f"node {node.node_id!r} was not found by its search"
        if node.as_related_node_info().node_type == ObjectType.TEXT or node.node_id not in digests:
            continue
        try:
            same = form.digest(node) == digests[node.node_id]
        except CanonicalError:
            same = False
        if not same:  # a retriever reads it from beside the vector store
            return f"node {node.node_id!r} is another one than its vector store has"
    return ""


def _unplain(one: Reading, why: str) -> Reading:
    """Return a search after which any write ends what is made from it, for good.

    What chance chose among equally close chunks it may choose otherwise when one of them comes again.
    """
    return Reading(corpus=one.corpus, problem=one.problem or why)


def trimmed(
    reading: Reading,
    nodes: Sequence[NodeWithScore],
    postprocessors: Sequence[object],
    scale: Scale | None,
) -> Reading:
    """Return a search as if the index had cut off by score, where a postprocessor does.

    So an answer from fewer nodes than were asked for ends by those only that are close enough.
    """
    if not any(isinstance(one, SimilarityPostprocessor) for one in postprocessors):
        return reading
    cutoff = getattr(postprocessors[0], "similarity_cutoff", None)
    if len(postprocessors) > 1 or scale is None or cutoff is None or not nodes:
        return _unplain(reading, "a score cuts off that is seen only by the index")
    count = len(nodes)
    if count == len(reading.chunks) == reading.wanted:
        return reading
    return replace(
        reading,
        chunks=reading.chunks[:count],
        digests=reading.digests[:count],
        relevances=reading.relevances[:count],
        threshold=scale(cutoff),
    )
