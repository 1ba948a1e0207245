"""From a search to what a write must reach to change the answer made from it (pure; ADR 0021).

Flat search for the k nearest chunks is a function of the chunks that score at least as much as the
k-th of those found. So an answer from it stays true until a chunk with such a score comes, goes or
changes. That the index ranks by the scores that are computed here is checked for each search.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stampcache.corpora import Chunk, Metric, Reach, Reading
from stampcache.model import Vector
from stampcache.spaces import length, scores, within


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
        known: the chunks that the watch knows of those found, and what they may be confused with.
    """
    problem = _unplain(corpus, readings, cited) or _unsure(readings[0], known)
    reach = Reach(corpus=corpus, why=problem) if problem else _flat_reach(readings[0], known)
    if reach.question or reach.for_good:
        return reach
    sure = bool(readings) and not any(_unsure(one, known) for one in readings)
    doubts = () if sure else _doubted(readings, known)
    return replace(reach, for_good=not sure or _has_alike(known), doubts=doubts)


def _doubted(readings: Sequence[Reading], known: Mapping[str, Chunk]) -> tuple[str, ...]:
    """Return the ids of chunks that were found otherwise than they are known."""
    pairs = [pair for one in readings for pair in zip(one.chunks, one.digests, strict=True)]
    others = (one for one, digest in pairs if one in known and known[one].digest != digest)
    return tuple(dict.fromkeys(others))


def _has_alike(known: Mapping[str, Chunk]) -> bool:
    """Tell whether chunks that differ are equally close to any question, or may be.

    When one of them goes and comes back it may stand before or after the other one, by chance.
    """
    digests = dict[bytes, str]()
    return any(
        not chunk.vector or digests.setdefault(chunk.vector, chunk.digest) != chunk.digest
        for chunk in known.values()
    )


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


def _unsure(reading: Reading, known: Mapping[str, Chunk]) -> str:
    """Say why what was found is not what the watch knows of; empty where it is.

    What is known of an index that differs from it says nothing about when it is as it was.
    """
    found = [known.get(one) for one in reading.chunks]
    digests = [chunk.digest for chunk in found if chunk is not None]
    if len(digests) < len(found):
        return "a chunk found is unknown to the watch"
    if digests != list(reading.digests):
        return "a chunk found differs from what the watch knows"
    return "what was found was not seen" if reading.problem and not found else ""


def _flat_reach(reading: Reading, known: Mapping[str, Chunk]) -> Reach:
    assert reading.metric is not None
    vectors = [known[one].vector for one in reading.chunks]
    ranked = scores(reading.metric, reading.vector, vectors)
    if np.isnan(ranked).any():
        return Reach(corpus=reading.corpus, why="the vector of a chunk found was not seen")
    off = float(max(_off(reading.metric, reading.vector, vectors), default=0.0))
    if any(later > earlier + off for earlier, later in pairwise(ranked.tolist())):
        ranks = f"the index does not rank by {reading.metric.value}"
        return Reach(corpus=reading.corpus, why=ranks, for_good=True)  # what ties there is unknown
    if _is_by_chance(reading, ranked.tolist(), off) or _is_one_of_many(reading, known):
        tied = "chunks that differ are equally close, so that chance ranks them"
        return Reach(corpus=reading.corpus, why=tied, for_good=True)
    floor, why = _floor(reading, ranked, off)
    is_all = reading.threshold is None and len(ranked) < reading.wanted
    least = float("-inf") if is_all or not len(ranked) else float(ranked[-1])
    return Reach(
        corpus=reading.corpus,
        question=reading.vector,
        metric=reading.metric,
        floor=floor,
        least=least,
        within=off,
        digests=reading.digests,
        scores=tuple(ranked.tolist()),
        why=why,
    )


def _is_by_chance(reading: Reading, ranked: Sequence[float], off: float) -> bool:
    """Tell whether chunks that were found one after the other might as well have been the other way."""
    pairs = zip(pairwise(ranked), pairwise(reading.digests), strict=True)
    return any(high - low <= off and one != other for (high, low), (one, other) in pairs)


def _is_one_of_many(reading: Reading, known: Mapping[str, Chunk]) -> bool:
    """Tell whether in the place of a chunk found there might be another one, of the same vector."""
    found = {known[one].vector: known[one].digest for one in reading.chunks}
    others = (chunk for one, chunk in known.items() if one not in reading.chunks)
    return any(found.get(one.vector, one.digest) != one.digest for one in others)


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


def is_reached(reach: Reach, chunks: Sequence[Chunk]) -> bool:
    """Tell whether one of these chunks is within reach, or may be."""
    if not reach.question:
        return bool(chunks)
    vectors = [chunk.vector for chunk in chunks]
    ranked = scores(reach.metric, reach.question, vectors)
    off = _off(reach.metric, reach.question, vectors)
    beyond = ranked + off < reach.floor + reach.within  # what is no number is not
    return not bool(beyond.all())


def _off(metric: Metric, question: bytes, chunks: Sequence[bytes]) -> Vector:
    """Return how far the score of each chunk may be off."""
    asked = np.asarray([length(question)], np.float32)
    off = [within(metric, asked, length(raw))[0] for raw in chunks]
    return np.asarray(off, np.float32)
