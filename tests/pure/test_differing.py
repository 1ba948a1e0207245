"""What a write differs in, and what it does to answers, case by case."""

import math

import pytest
from msgspec.structs import replace

from stampcache.corpora import Change, Chunk, Difference, Intent, Reach, Trace, Written
from stampcache.differing import (
    LOST,
    REMEMBERED,
    contested,
    contesting,
    doubtful,
    holds,
    is_complete,
    own_intent,
    settled,
    sources_of,
    trace_of,
    written,
)
from stampcache.model import Selector

A = Chunk(id="a", source="a.md", digest="A", vector=b"1234")
B = Chunk(id="b", source="b.md", digest="B", vector=b"5678")
KNOWN = {"a": A, "b": B}
NEW = replace(A, digest="new")

REACH = Reach(
    corpus="c",
    question=b"asked",
    floor=0.4,
    least=0.5,
    within=0.001,
    digests=("x", "y", "z"),
    scores=(0.9, 0.7, 0.5),
)


def came(digest: str, score: float | None) -> Difference:
    return Difference(digest, score, added=True)


def went(digest: str, score: float | None) -> Difference:
    return Difference(digest, score, added=False)


# -- what a write differs in -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(), Written()),
        (Change(added=(A, B)), Written()),
        (Change(added=(NEW, B)), Written(added=(NEW,), removed=(A,))),
        (Change(added=(NEW, A)), Written()),
        (Change(added=(A,), removed=("a", "b", "b")), Written(added=(A,), removed=(A, B))),
        (Change(removed=("x",)), Written(unseen=("x",))),
        (Change(unknown=True), Written(unknown=True)),
        (Change(emptied=True), Written(removed=(A, B), unknown=True)),
        (Change(emptied=True, added=(A,)), Written(added=(A,), removed=(A, B), unknown=True)),
    ],
)
def test_only_what_differs_is_written(change: Change, expected: Written) -> None:
    done = written(KNOWN, change, complete=False)
    assert done == expected
    assert bool(done) is (expected != Written())
    complete = replace(expected, unknown=change.unknown)
    assert written(KNOWN, change, complete=True) == complete


def test_a_source_changed_if_its_chunks_did() -> None:
    assert sources_of(Written(added=(NEW,), removed=(A, B))) == ("a.md", "b.md")
    assert sources_of(Written(added=(replace(A, id="2"),), removed=(A,))) == ()
    assert sources_of(Written(added=(replace(A, source="moved.md"),), removed=(A,))) == (
        "a.md",
        "moved.md",
    )


def test_a_trace_tells_what_was_written() -> None:
    trace = trace_of("c", Written(added=(NEW,), removed=(A,), unseen=("x",)))
    assert trace == Trace(corpus="c", sources=("a.md",), chunks=("a", "x"))
    assert trace.selectors == [
        Selector(corpus="c", source="a.md"),
        Selector(corpus="c", chunk="a"),
        Selector(corpus="c", chunk="x"),
    ]
    as_it_was = trace_of("c", Written(added=(A,), removed=(A, B)))
    assert (as_it_was.sources, as_it_was.chunks) == (("b.md",), ("b",))
    assert trace_of("c", Written(unknown=True)).selectors == [Selector(corpus="c")]
    assert str(Trace(corpus="c", sources=("",))) == "corpus 'c' was written to"


# -- writes at the same time -------------------------------------------------------------------------


def test_what_others_wrote_meanwhile_is_not_known() -> None:
    mine = contesting(Intent(id="1", at=0.0), Change(added=(A,), removed=("x",)))
    mine = contesting(mine, Change(removed=("a", "y")))
    assert mine == Intent(id="1", at=0.0, contested=("a", "x", "y"))
    change = Change(added=(NEW, B), removed=("x", "z"))
    unsure = tuple(Chunk(id=one, digest="") for one in "ax")
    assert contested(change, mine) == Change(added=(B, *unsure), removed=("z",))
    all_three = (*unsure, Chunk(id="y", digest=""))
    assert contested(Change(emptied=True), mine) == Change(emptied=True, added=all_three)


def test_who_wrote_alone_knows_what_is_there() -> None:
    change = Change(added=(A,), removed=("x",))
    assert contested(change, None) == contested(change, Intent(id="1", at=0.0)) == change
    other = Intent(id="1", at=0.0, contested=("b",))
    assert contested(change, other) == change


@pytest.mark.parametrize("other", [Change(emptied=True), Change(unknown=True)])
def test_nothing_is_known_that_was_written_while_anything_may_have_changed(other: Change) -> None:
    mine = contesting(Intent(id="1", at=0.0), other)
    unsure = (Chunk(id="a", digest=""), Chunk(id="x", digest=""))
    told = contested(Change(added=(A,), removed=("x",)), mine)
    assert told == Change(added=unsure, unknown=True, beyond=True)
    assert not told.doubts, "the other one told what it did to all other chunks"
    assert contested(Change(), mine) == Change(), "nothing was written"
    assert contested(Change(unknown=True), mine) == Change(unknown=True)


# -- what becomes of an answer ----------------------------------------------------------------------


def after(reach: Reach, *writes: list[Difference]) -> tuple[tuple[Difference, ...], bool]:
    left: tuple[Difference, ...] = ()
    for new in writes:
        left = settled(reach, left, new)
    return left, holds(reach, left)


@pytest.mark.parametrize(
    "writes",
    [
        [[came("n", 0.8)], [went("n", 0.8)]],
        [[went("y", 0.7)], [came("y", 0.7)]],
        [[went("y", 0.7), came("y", 0.7)]],
        [[went("y", 0.7)], [came("n", 0.6)], [went("n", 0.6), came("y", 0.7005)]],
        [[came("n", None)], [went("n", None)]],
        [[went("f", 0.8)], [came("f", 0.8)]],
        [[went("x", 0.9), went("z", 0.5)], [came("z", 0.5)], [came("x", 0.9)]],
    ],
)
def test_what_is_undone_is_as_it_was(writes: list[list[Difference]]) -> None:
    assert after(REACH, *writes) == ((), True)


@pytest.mark.parametrize(
    "new",
    [
        [came("n", 0.8)],
        [came("n", None)],
        [went("y", 0.7)],
        [went("y", 0.7), came("n", 0.7)],
        [went("y", 0.7), came("y", None)],
        [went("y", None), came("y", 0.7)],
        [went("y", 0.7), came("y", 0.95)],
        [went("y", 0.7), came("y", 0.501)],
        [went("z", 0.5), came("z", 0.498)],
        [went("f", 0.8), came("f", 0.85)],
        [went("y", 0.7), came("y", 0.7), came("y", 0.7)],
        [came("n", 0.8), went("y", 0.7), came("y", 0.71)],
    ],
)
def test_what_would_be_found_otherwise_does_not_hold(new: list[Difference]) -> None:
    left, does_hold = after(REACH, new)
    assert left
    assert not does_hold


@pytest.mark.parametrize(
    "new",
    [
        [went("y", 0.7), came("y", 0.6)],
        [went("y", 0.7), came("y", 0.89)],
        [went("z", 0.5), came("z", 0.6)],
        [went("x", 0.9), came("x", 0.8), went("y", 0.7), came("y", 0.6)],
        [went("x", 0.9), went("y", 0.7), came("y", 0.8), came("x", 1.0)],
    ],
)
def test_chunks_may_move_if_none_passes_another(new: list[Difference]) -> None:
    left, does_hold = after(REACH, new)
    assert left, "a later move is measured from where they were found"
    assert does_hold


def test_moves_add_up() -> None:
    steps = [[went("y", 0.7), came("y", 0.75)], [went("y", 0.75), came("y", 0.8)]]
    assert after(REACH, *steps) == ((went("y", 0.7), came("y", 0.8)), True)
    assert after(REACH, *steps, [went("y", 0.8), came("y", 0.899)])[1] is False
    tiny = [[went("y", 0.7 + at / 2000), came("y", 0.7005 + at / 2000)] for at in range(398)]
    assert not after(REACH, *tiny)[1], "it has come up to the first one"


def test_chunks_that_nearly_tie_come_back_in_any_order() -> None:
    close = replace(REACH, scores=(0.7015, 0.7, 0.5))
    assert after(close, [went("y", 0.7)], [came("y", 0.7)])[1] is False
    like = replace(close, digests=("y", "y", "z"))
    assert after(like, [went("y", 0.7)], [came("y", 0.7)]) == ((), True)


def test_what_went_though_chance_had_left_it_out_never_comes_back() -> None:
    assert after(REACH, [went("tied", 0.4995)]) == ((LOST,), False)
    assert after(REACH, [went("filtered", 0.6)])[0] != (LOST,)
    everything = replace(REACH, floor=-math.inf)
    assert after(everything, [went("filtered", 0.1)])[0] != (LOST,)
    nothing = Reach(corpus="c", question=b"asked")
    assert after(nothing, [came("x", 0.1)], [went("x", 0.1)]) == ((), True)


def test_some_things_are_never_undone() -> None:
    lost = ((LOST,), False)
    assert after(REACH, [LOST], [went("n", 0.8)]) == lost
    assert after(replace(REACH, for_good=True), [came("n", 0.8)]) == lost
    assert after(replace(REACH, for_good=True), []) == ((), True)
    many = [came(str(at), 0.8) for at in range(REMEMBERED + 1)]
    assert after(REACH, many) == lost
    assert after(REACH, many[1:])[0] != (LOST,)


def test_an_answer_without_a_question_holds_only_as_it_was() -> None:
    reach = Reach(corpus="c", why="MMR")
    for new in (
        [went("y", 3.25)],
        [went("y", 3.25), came("y", 3.26)],
        [went("y", 3.25), came("y", None)],
    ):
        assert after(reach, new)[1] is False
    assert after(reach, [went("y", 3.25)], [came("y", 3.25 + 1e-6)]) == ((), True)
    assert after(reach, [went("y", None)], [came("y", None)]) == ((), True)


@pytest.mark.parametrize(
    ("change", "before", "expected"),
    [
        (Change(), True, True),
        (Change(), False, False),
        (Change(added=(A,)), True, True),
        (Change(added=(A,), emptied=True), False, True),
        (Change(unknown=True), True, False),
        (Change(unknown=True, emptied=True), True, False),
        (Change(unknown=True, beyond=True), True, True),
        (Change(unknown=True, beyond=True), False, False),
        (Change(unknown=True, beyond=True, added=(A,)), True, False),
        (Change(unknown=True, beyond=True, emptied=True), True, False),
    ],
)
def test_whether_all_chunks_are_known(change: Change, before: bool, expected: bool) -> None:
    assert is_complete(change, before=before) is expected


def test_whose_write_is_told_of() -> None:
    mine = Intent(id="1", at=0.0)
    assert own_intent({"1": mine}, "1", 5.0) is mine
    assert own_intent({"1": mine}, "", 5.0) is None, "nobody else wrote"
    assert own_intent({"1": mine}, "2", 5.0) == Intent(id="2", at=5.0, all_contested=True)


def test_what_may_have_changed_unseen_is_like_nothing_that_is_written() -> None:
    assert doubtful(A) == doubtful(doubtful(A))
    unsure = {"a": doubtful(A), "b": B}
    done = written(unsure, Change(added=(A, B)), complete=True)
    assert done == Written(added=(A,), removed=(doubtful(A),))
    both = written(KNOWN, Change(added=(A,), unknown=True), complete=True)
    assert both == Written(added=(A,), removed=(A,), unknown=True)
