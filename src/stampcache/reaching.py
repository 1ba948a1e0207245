"""Which answers a write to an index changes (pure; ADR 0021).

Flat search for the k nearest chunks is a function of the chunks that score at least as much as the
k-th of those found. So an answer from it stays true until a chunk with such a score comes, goes or
changes, and is true again when all of that is undone. Scores are computed here from vectors, never
taken from an index, whose scale is its own affair; that it ranks by them is checked for each search.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache.corpora import Change, Chunk, Difference, Metric, Reach, Reading, Trace, Written
from stampcache.model import Vector

TOLERANCE = 1e-5
"""How far two computations of one score may be apart, as a share of the largest possible one."""

REMEMBERED = 64
"""So many differences of one answer are kept; with more it does not come back."""

LOST = Difference("", None, added=True)
"""Stands for what can never be undone."""


class Space(Struct, frozen=True):
    """Where scores of a metric are inner products, of questions on one side and chunks on the other."""

    metric: Metric
    dimension: int

    def questions(self, vectors: Vector) -> Vector:
        """Return questions (n, dimension) as rows that give scores with rows of `chunks`."""
        match self.metric:
            case Metric.COSINE:
                return _unit(vectors)
            case Metric.DOT:
                return vectors
            case Metric.L2:
                squares = np.square(vectors).sum(1, keepdims=True)
                ones = np.ones_like(squares)
                return np.concatenate([2 * vectors, -ones, -squares], axis=1)

    def chunks(self, vectors: Vector) -> Vector:
        """Return chunks (n, dimension) as rows that give scores with rows of `questions`."""
        match self.metric:
            case Metric.COSINE:
                return _unit(vectors)
            case Metric.DOT:
                return vectors
            case Metric.L2:
                squares = np.square(vectors).sum(1, keepdims=True)
                return np.concatenate([vectors, squares, np.ones_like(squares)], axis=1)


def as_vector(raw: bytes) -> Vector:
    """Return a vector that was kept as bytes."""
    return np.frombuffer(raw, np.float32)


def as_bytes(vector: Iterable[float] | NDArray[np.floating]) -> bytes:
    """Return a vector as it is kept; empty where it is none, or is not finite."""
    row = np.asarray(vector if isinstance(vector, np.ndarray) else list(vector), np.float32)
    usable = row.ndim == 1 and row.size > 0 and bool(np.isfinite(row).all())
    return np.ascontiguousarray(row).tobytes() if usable else b""


def scores(metric: Metric, question: bytes, chunks: Sequence[bytes]) -> NDArray[np.float32]:
    """Return the score of each chunk for a question; not a number where it cannot be compared."""
    asked = as_vector(question)
    found = np.full(len(chunks), np.nan, np.float32)
    same = [at for at, raw in enumerate(chunks) if len(raw) == len(question)]
    if same:
        space = Space(metric, len(asked))
        rows = np.stack([as_vector(chunks[at]) for at in same])
        found[same] = space.chunks(rows) @ space.questions(asked[None])[0]
    return found


def within(
    metric: Metric, asked: NDArray[np.floating], length: float
) -> NDArray[np.floating] | float:
    """Return how far scores may be off, of questions of these lengths with a chunk of that length."""
    match metric:
        case Metric.COSINE:
            return TOLERANCE
        case Metric.DOT:
            largest = asked * length
        case Metric.L2:
            largest = np.square(asked + length)
    return TOLERANCE * np.maximum(largest, 1.0)


def _longest_within(metric: Metric, question: bytes, chunks: Sequence[bytes]) -> float:
    longest = max((length(raw) for raw in chunks), default=0.0)
    return float(within(metric, np.float64(length(question)), longest))


def length(raw: bytes) -> float:
    """Return the length of a vector."""
    return float(np.linalg.norm(as_vector(raw)))


def imprint(raw: bytes) -> float | None:
    """Return a number that tells a vector from others, though not from its like; ``None`` for none."""
    return float(as_vector(raw).sum()) if raw else None


# -- from a search to the reach of an answer -----------------------------------------------------------


def reach_of(
    corpus: str,
    readings: Sequence[Reading],
    cited: Sequence[str] | None,
    known: Mapping[str, Chunk],
) -> Reach:
    """Return what a write must reach to change an answer.

    Args:
        corpus: that was asked.
        readings: the searches that were seen while the answer was made.
        cited: the ids of the chunks it was made from, by rank; ``None`` where they are not known.
        known: the chunks that the watch knows of those found.
    """
    problem = _unplain(corpus, readings, cited)
    if not problem:
        return _flat_reach(readings[0], known)
    return Reach(corpus=corpus, why=problem)


def _unplain(corpus: str, readings: Sequence[Reading], cited: Sequence[str] | None) -> str:
    """Say why an answer is not simply made from the k nearest; empty where it is."""
    if not readings:
        return "its search went through no watched index"
    if any(one != readings[0] for one in readings[1:]):
        return f"it was made from {len(readings)} searches"
    (reading, *_) = readings
    if reading.corpus != corpus:
        return f"its search was in corpus {reading.corpus!r}"
    if reading.problem:
        return reading.problem
    if not reading.vector or reading.metric is None:
        return "the vector of its question was not seen" if reading.metric else "no known metric"
    if cited is None:
        return "what it was made from is not known"
    if tuple(cited) != reading.chunks[: len(cited)]:
        return "what was found was chosen from or ranked anew"
    return ""


def _flat_reach(reading: Reading, known: Mapping[str, Chunk]) -> Reach:
    assert reading.metric is not None
    found = [known.get(one) for one in reading.chunks]
    vectors = [chunk.vector for chunk in found if chunk is not None]
    if len(vectors) < len(found):
        return Reach(corpus=reading.corpus, why="a chunk found is unknown to the watch")
    digests = [chunk.digest for chunk in found if chunk is not None]
    if digests != list(reading.digests):
        return Reach(corpus=reading.corpus, why="a chunk found differs from what the watch knows")
    ranked = scores(reading.metric, reading.vector, vectors)
    if np.isnan(ranked).any():
        return Reach(corpus=reading.corpus, why="the vector of a chunk found was not seen")
    off = within(reading.metric, reading.vector, vectors)
    if any(later > earlier + off for earlier, later in pairwise(ranked.tolist())):
        ranks = f"the index does not rank by {reading.metric.value}"
        return Reach(corpus=reading.corpus, why=ranks)
    floor, why = _floor(reading, ranked, off)
    return Reach(
        corpus=reading.corpus,
        question=reading.vector,
        metric=reading.metric,
        floor=floor,
        within=off,
        scores=tuple(ranked.tolist()),
        why=why,
    )


def _floor(reading: Reading, ranked: NDArray[np.float32], off: float) -> tuple[float, str]:
    if reading.wanted and len(ranked) >= reading.wanted:
        return float(ranked[-1]) - 2 * off, ""
    if reading.threshold is None:
        return float("-inf"), f"fewer than {reading.wanted} chunks were found"
    bound = bound_of(reading.threshold, reading.relevances, ranked.tolist())
    if bound is None:
        return float("-inf"), "the index cuts off on a scale of its own"
    return bound - 2 * off, f"the index cuts off at {reading.threshold}"


def bound_of(
    threshold: float, relevances: Sequence[float], ranked: Sequence[float]
) -> float | None:
    """Return the score at which an index's relevance is ``threshold``; ``None`` where that is not seen.

    Indexes give relevance on scales of their own, most of which are straight lines over the score.
    So the line through the first and the last chunk found is taken, if all others lie on it; where
    relevance is the score itself, one chunk is enough.
    """
    if len(relevances) != len(ranked) or not relevances:
        return None
    close = 1e-4
    if all(abs(one - other) <= close for one, other in zip(relevances, ranked, strict=True)):
        return threshold - close
    run, rise = ranked[0] - ranked[-1], relevances[0] - relevances[-1]
    if run <= 100 * close or rise <= 0:
        return None
    slope = rise / run
    line = [relevances[-1] + slope * (score - ranked[-1]) for score in ranked]
    if any(abs(one - other) > close for one, other in zip(line, relevances, strict=True)):
        return None
    return ranked[-1] + (threshold - close - relevances[-1]) / slope


# -- from a write to the answers it changes ------------------------------------------------------------


def named(change: Change) -> tuple[str, ...]:
    """Return the ids of the chunks that a change names."""
    return tuple(dict.fromkeys([*(chunk.id for chunk in change.added), *change.removed]))


def written(known: Mapping[str, Chunk], change: Change) -> Written:
    """Return what a change differs in from the chunks known of the ids it names (or of all)."""
    added, removed = list[Chunk](), list[Chunk]()
    kept = {chunk.id: chunk for chunk in change.added}
    for chunk in kept.values():
        before = known.get(chunk.id)
        if before == chunk:
            continue
        if before is not None:
            removed.append(before)
        added.append(chunk)
    gone = [*known] if change.emptied else change.removed
    unseen = list[str]()
    for one in dict.fromkeys(gone):
        if one in kept:
            continue
        if one in known:
            removed.append(known[one])
        else:
            unseen.append(one)
    return Written(
        added=tuple(added),
        removed=tuple(removed),
        unseen=tuple(unseen),
        unknown=change.unknown,
    )


def sources_of(done: Written) -> tuple[str, ...]:
    """Return the sources whose chunks came, went or changed; what came and went as it was did not."""
    counts: dict[tuple[str, str], int] = {}
    for chunks, step in ((done.added, 1), (done.removed, -1)):
        for chunk in chunks:
            place = (chunk.source, chunk.digest)
            counts[place] = counts.get(place, 0) + step
    return tuple(sorted({source for (source, _), count in counts.items() if count}))


def trace_of(corpus: str, done: Written) -> Trace:
    """Return what the log keeps of a write."""
    gone = [*(chunk.id for chunk in done.removed), *done.unseen]
    return Trace(corpus=corpus, sources=sources_of(done), chunks=tuple(gone), unknown=done.unknown)


def is_reached(reach: Reach, chunks: Sequence[Chunk]) -> bool:
    """Tell whether one of these chunks is within reach, or may be."""
    if not reach.question:
        return bool(chunks)
    ranked = scores(reach.metric, reach.question, [chunk.vector for chunk in chunks])
    return bool((np.isnan(ranked) | (ranked >= reach.floor)).any())


def settled(
    reach: Reach, before: Sequence[Difference], new: Sequence[Difference]
) -> tuple[Difference, ...]:
    """Return how what is in reach differs from when the answer was made; nothing: it holds.

    Args:
        reach: of the answer.
        before: how it differed before a write.
        new: what the write added and removed within reach.
    """
    if LOST in (*before, *new):
        return (LOST,)
    left = list(before)
    for one in new:
        undone = next((other for other in left if _undoes(reach, one, other)), None)
        if undone is None:
            left.append(one)
        else:
            left.remove(undone)
    if _as_it_was(reach, left):
        return ()
    return tuple(left) if len(left) <= REMEMBERED else (LOST,)


def _undoes(reach: Reach, one: Difference, other: Difference) -> bool:
    if one.digest != other.digest or one.added is other.added:
        return False
    if one.score is None or other.score is None:
        return one.score is other.score
    return abs(one.score - other.score) <= reach.within and not (
        one.added and _is_tied(reach, one.score)
    )


def _is_tied(reach: Reach, score: float) -> bool:
    """Tell whether a chunk that came back may stand before or after another one, by chance."""
    close = [other for other in reach.scores if abs(other - score) <= 2 * reach.within]
    return len(close) > 1


def _as_it_was(reach: Reach, left: Sequence[Difference]) -> bool:
    """Tell whether chunks only moved a little, and none past another one."""
    if not left:
        return True
    gone = sorted(
        (one.digest, one.score) for one in left if not one.added and one.score is not None
    )
    come = sorted((one.digest, one.score) for one in left if one.added and one.score is not None)
    if len(gone) + len(come) < len(left) or [d for d, _ in gone] != [d for d, _ in come]:
        return False
    ranked = list(reach.scores)
    for (_, was), (_, now) in zip(gone, come, strict=True):
        at = min(range(len(ranked)), key=lambda place: abs(ranked[place] - was), default=None)
        if at is None or abs(ranked[at] - was) > reach.within:
            return False
        ranked[at] = now
    apart = all(earlier > later + 2 * reach.within for earlier, later in pairwise(ranked))
    return apart and (not ranked or ranked[-1] >= reach.floor + reach.within)


def _unit(vectors: Vector) -> Vector:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vector = (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
