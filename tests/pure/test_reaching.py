"""From a search to what a write must reach, case by case."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from stampcache.corpora import Chunk, Metric, Reach, Reading
from stampcache.reaching import bound_of, is_reached, reach_of
from stampcache.spaces import as_bytes, as_vector, imprint, length, scores, within


def at(angle: float, size: float = 1.0) -> bytes:
    radians = math.radians(angle)
    return as_bytes([size * math.cos(radians), size * math.sin(radians)])


def chunk(name: str, angle: float) -> Chunk:
    return Chunk(id=name, digest=f"digest {name}", vector=at(angle))


CHUNKS = {one.id: one for one in (chunk("a", 10), chunk("b", 20), chunk("c", 30))}
A, B, C = CHUNKS.values()


def reading(*found: Chunk, wanted: int = 2, **others: object) -> Reading:
    plain = Reading(
        corpus="c",
        vector=at(0),
        metric=Metric.COSINE,
        chunks=tuple(one.id for one in found),
        digests=tuple(one.digest for one in found),
        wanted=wanted,
    )
    return replace(plain, **others)


def reached(*readings: Reading, cited: tuple[str, ...] | None = ("a", "b")) -> Reach:
    return reach_of("c", readings, cited, CHUNKS)


# -- plain searches --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", Metric)
def test_the_floor_of_a_plain_search_is_just_below_the_last_score(metric: Metric) -> None:
    reach = reached(reading(A, B, metric=metric))
    last = scores(metric, at(0), [B.vector])[0]
    assert reach.floor == pytest.approx(last - 2 * reach.within)
    assert 0 < reach.within <= 5e-5
    assert reach.least == pytest.approx(last)
    assert (reach.question, reach.metric, reach.why) == (at(0), metric, "")
    assert reach.digests == (A.digest, B.digest)
    assert not reach.for_good


def test_what_is_cited_may_be_the_first_of_what_was_found() -> None:
    assert reached(reading(A, B), cited=("a",)) == reached(reading(A, B))
    assert reached(reading(A, B), cited=()) == reached(reading(A, B))


def test_a_search_that_is_made_again_is_one_search() -> None:
    assert reached(reading(A, B), reading(A, B)) == reached(reading(A, B))


def test_fewer_chunks_than_wanted_are_reached_by_any_score() -> None:
    reach = reached(reading(A, B, wanted=3))
    assert (reach.floor, reach.least) == (-math.inf, -math.inf)
    assert reach.why == "fewer than 3 chunks were found"
    assert str(reach) == "a write to corpus 'c' ends it at cosine any score; " + reach.why
    assert is_reached(reach, [chunk("x", 180)])
    nothing = reached(reading(), cited=())
    assert nothing.floor == -math.inf
    assert nothing.question


def test_a_threshold_is_the_floor_where_fewer_were_found() -> None:
    relevances = tuple(math.cos(math.radians(angle)) for angle in (10, 20))
    reach = reached(reading(A, B, wanted=9, threshold=0.8, relevances=relevances))
    assert reach.floor == pytest.approx(0.8, abs=2e-4)
    assert reach.floor < 0.8
    assert reach.least == pytest.approx(relevances[-1])
    assert str(reach).endswith(" or more; the index cuts off at 0.8")
    full = reached(reading(A, B, threshold=0.8, relevances=relevances))
    assert full.floor == pytest.approx(relevances[-1], abs=1e-4)


def test_a_threshold_of_an_unseen_scale_is_reached_by_any_score() -> None:
    reach = reached(reading(A, B, wanted=9, threshold=0.8))
    assert reach.floor == -math.inf
    assert reach.least > 0, "a chunk that was found may fall out"
    assert reach.why == "the index cuts off on a scale of its own"


@pytest.mark.parametrize(
    ("threshold", "relevances", "ranked", "expected"),
    [
        (0.5, (0.9, 0.7), (0.9, 0.7), 0.5),
        (0.5, (0.9,), (0.9,), 0.5),
        (0.5, (0.95, 0.85), (0.9, 0.7), 0.0),
        (0.5, (0.95, 0.9, 0.85), (0.9, 0.8, 0.7), 0.0),
        (0.5, (0.95, 0.93, 0.85), (0.9, 0.8, 0.7), None),
        (0.5, (0.95,), (0.9,), None),
        (0.5, (0.95, 0.95), (0.9, 0.899), None),
        (0.5, (0.85, 0.95), (0.9, 0.7), None),
        (0.5, (), (), None),
        (0.5, (0.9,), (0.9, 0.7), None),
        (-1.0, (-0.2, -0.4), (-0.2, -0.4), -1.0),
    ],
)
def test_a_threshold_is_read_off_the_line_of_relevances(
    threshold: float,
    relevances: tuple[float, ...],
    ranked: tuple[float, ...],
    expected: float | None,
) -> None:
    bound = bound_of(threshold, relevances, ranked)
    assert bound == (None if expected is None else pytest.approx(expected, abs=1e-3))
    assert bound is None or expected is None or bound < expected


# -- searches of which less is known ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "cited", "why"),
    [
        ([], (), "its search went through no watched index"),
        ([reading(A, B), reading(A)], ("a", "b"), "it was made from 2 searches"),
        ([reading(A, B, corpus="d")], ("a", "b"), "its search was in corpus 'd'"),
        ([reading(A, B, problem="MMR")], ("a", "b"), "MMR"),
        ([reading(A, B, vector=b"")], ("a", "b"), "the vector of its question was not seen"),
        ([reading(A, B, metric=None)], ("a", "b"), "no known metric"),
        ([reading(A, B)], None, "what it was made from is not known"),
        ([reading(A, B)], ("b", "a"), "what was found was chosen from or ranked anew"),
        ([reading(A, B)], ("a", "b", "c"), "what was found was chosen from or ranked anew"),
        ([reading(B, A)], ("b", "a"), "the index does not rank by cosine"),
    ],
)
def test_what_is_no_plain_search_is_reached_by_any_write(
    told: list[Reading], cited: tuple[str, ...] | None, why: str
) -> None:
    reach = reached(*told, cited=cited)
    assert (reach.question, reach.why) == (b"", why)
    assert str(reach) == f"any write to corpus 'c' ends it ({why})"
    assert is_reached(reach, [chunk("far", 180)])
    assert not is_reached(reach, [])
    unsure = not told or "does not rank" in why  # of an index with ranks of its own no tie is known
    assert reach.for_good is unsure, "else what was found is what is known"


def test_what_differs_from_what_is_known_ends_for_good() -> None:
    for other, why in (
        (chunk("unknown", 20), "a chunk found is unknown to the watch"),
        (replace(B, digest="new"), "a chunk found differs from what the watch knows"),
    ):
        for problem in ("", "MMR"):
            reach = reached(reading(A, other, problem=problem), cited=("a", other.id))
            assert (reach.question, reach.for_good) == (b"", True)
            assert reach.why == (problem or why)
            assert reach.doubts == (("b",) if other.id == "b" else ())
        assert reached(reading(A, B), reading(A, other)).for_good
    assert reached(reading(problem="MMR"), cited=()).for_good


def test_a_chunk_without_a_vector_leaves_no_floor() -> None:
    for raw in (b"", as_bytes([1.0, 0.0, 0.0])):
        known = {"a": A, "b": replace(B, vector=raw)}
        reach = reach_of("c", [reading(A, B)], ("a", "b"), known)
        why = "the vector of a chunk found was not seen"
        assert reach == Reach(corpus="c", why=why, for_good=not raw)


def test_what_any_write_ends_does_not_come_back_where_chunks_may_tie() -> None:
    twin = replace(B, id="twin", digest="other")
    like = replace(twin, digest=B.digest)
    for other, for_good in ((twin, True), (like, False), (replace(twin, vector=b""), True)):
        reach = reach_of("c", [reading(A, B, problem="MMR")], ("a",), CHUNKS | {"twin": other})
        assert reach == Reach(corpus="c", why="MMR", for_good=for_good)


TIED = "chunks that differ are equally close, so that chance ranks them"


def test_chunks_that_tie_are_ranked_by_chance() -> None:
    twin = replace(B, id="twin", digest="other")
    told = reading(B, twin)
    reach = reach_of("c", [told], told.chunks, {"b": B, "twin": twin})
    assert reach == Reach(corpus="c", why=TIED, for_good=True)
    like = replace(twin, digest=B.digest)
    told = reading(B, like)
    assert reach_of("c", [told], told.chunks, {"b": B, "twin": like}).question


def test_a_chunk_that_was_not_found_may_tie_with_one_that_was() -> None:
    twin = replace(B, id="twin", digest="other")
    reach = reach_of("c", [reading(A, B)], ("a", "b"), CHUNKS | {"twin": twin})
    assert reach == Reach(corpus="c", why=TIED, for_good=True)
    like = replace(twin, digest=B.digest)
    assert reach_of("c", [reading(A, B)], ("a", "b"), CHUNKS | {"twin": like}).question


# -- scores ------------------------------------------------------------------------------------------


def test_higher_scores_are_closer_under_every_metric() -> None:
    question, vectors = as_bytes([2.0, 0.0]), [as_bytes([3.0, 4.0]), as_bytes([2.0, 1.0]), b""]
    told = {metric: scores(metric, question, vectors).tolist() for metric in Metric}
    assert told[Metric.COSINE][:2] == pytest.approx([0.6, 2 / math.sqrt(5)])
    assert told[Metric.DOT][:2] == pytest.approx([6.0, 4.0])
    assert told[Metric.L2][:2] == pytest.approx([-17.0, -1.0])
    assert all(math.isnan(each[2]) for each in told.values())
    assert scores(Metric.DOT, question, []).tolist() == []


def test_a_vector_of_length_nothing_is_compared() -> None:
    assert scores(Metric.COSINE, at(0), [as_bytes([0.0, 0.0])]).tolist() == [0.0]


def test_scores_of_longer_vectors_are_less_certain() -> None:
    lengths = np.asarray([1.0, 10.0], np.float32)
    told = {metric: within(metric, lengths, 100.0).tolist() for metric in Metric}
    assert told[Metric.COSINE] == pytest.approx([1e-5, 1e-5])
    assert told[Metric.DOT] == pytest.approx([1e-3, 1e-2])
    assert told[Metric.L2] == pytest.approx([1e-5 * 101**2, 1e-5 * 110**2])


def test_a_long_chunk_reaches_further_as_its_score_is_less_certain() -> None:
    reach = Reach(corpus="c", question=at(0), metric=Metric.DOT, floor=0.5, within=1e-5)
    short, long = (Chunk(id="x", digest="x", vector=as_bytes([0.4999, y])) for y in (0.0, 100.0))
    assert not is_reached(reach, [short])
    assert is_reached(reach, [short, long])


@pytest.mark.parametrize("raw", [[], [[1.0]], [math.nan], [1.0, math.inf], [1e19], [1e200]])
def test_what_cannot_be_compared_is_no_vector(raw: list[float]) -> None:
    assert as_bytes(raw) == b""
    assert as_bytes(np.asarray(raw)) == b""


def test_a_vector_comes_back_as_it_was() -> None:
    raw = as_bytes(one for one in (3.0, 4.0))
    assert as_vector(raw).tolist() == [3.0, 4.0]
    assert length(raw) == 5.0
    assert (imprint(raw), imprint(b"")) == (7.0, None)
