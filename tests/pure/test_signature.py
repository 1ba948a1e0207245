"""Signatures tell contents, not ids, and which part of them moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.model import Evidence, Signature
from stampcache.signature import Moved, evidence_digest, moved, norm_moved, sign

TEXTS = st.lists(st.text(min_size=1, max_size=4), max_size=4)


def chunks(texts: list[str]) -> list[Evidence]:
    return [Evidence(text=text, rank=rank) for rank, text in enumerate(texts)]


@given(TEXTS, TEXTS)
def test_a18_evidence_is_the_same_only_if_its_texts_are(one: list[str], other: list[str]) -> None:
    same = evidence_digest(chunks(one)) == evidence_digest(chunks(other))
    assert same == (one == other)


@pytest.mark.parametrize("known", [[], [Evidence(text="known")]])
def test_evidence_of_which_only_ids_are_known_has_no_digest(known: list[Evidence]) -> None:
    unknown = Evidence(corpus="c", source="s", chunk="1")
    assert unknown.digest == ""
    assert evidence_digest([*known, unknown]) == ""
    assert evidence_digest(known) != ""


def test_f15_contents_count_and_ids_do_not() -> None:
    one = Evidence(corpus="c", source="s", chunk="1", text="t", score=0.5)
    other = Evidence(corpus="d", source="r", chunk="2", text="t", score=0.1, rank=7)
    edited = Evidence(corpus="c", source="s", chunk="1", text="t2", score=0.5)
    tagged = Evidence(corpus="c", source="s", chunk="1", text="t", metadata={"page": 2})
    assert evidence_digest([one]) == evidence_digest([other])
    assert len({evidence_digest([each]) for each in (one, edited, tagged)}) == 3


def test_order_and_repetition_count() -> None:
    one, two = chunks(["1", "2"])
    digests = {evidence_digest(each) for each in ([one, two], [two, one], [one, two, two], [one])}
    assert len(digests) == 4


def test_unknown_evidence_is_not_no_evidence() -> None:
    assert evidence_digest(None) == ""
    assert evidence_digest([]) != ""


def test_a_signature_prints_in_three_parts() -> None:
    signature = Signature("3.872", "v1:9f86d081884c7d65aabbccddeeff0011", 1_764_430_000)
    assert str(signature) == "3.872_9f86d081884c7d65_1764430000"
    assert str(sign(norm="", evidence=None, now=5.9)) == "__5"


@given(st.integers(0, 2**40), st.integers(1, 100_000))
def test_time_is_floored_to_the_granularity(now: int, granularity_s: int) -> None:
    created = sign(norm="", evidence=None, now=now + 0.5, granularity_s=granularity_s).created
    assert created % granularity_s == 0
    assert created <= now < created + granularity_s


def test_moved_names_the_parts_in_order() -> None:
    old = Signature("1.000", "v1:aa", 1)
    assert moved(old, old) == ()
    assert moved(old, Signature("2.000", "v1:bb", 2)) == (
        Moved.NORM,
        Moved.EVIDENCE,
        Moved.CREATED,
    )
    assert moved(old, Signature("1.000", "v1:bb", 1)) == (Moved.EVIDENCE,)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("3.872", "3.872", False),
        ("3.872", "3.879", False),  # other hardware, another precision
        ("3.872", "3.881", True),
        ("3.872", "1.000", True),
        ("0.000", "0.001", False),
        ("", "1.000", False),
        ("1.000", "", False),
    ],
)
def test_a_norm_betrays_another_embedder(old: str, new: str, expected: bool) -> None:
    assert norm_moved(old, new) is expected


def test_a_norm_that_is_unknown_is_not_compared() -> None:
    known, unknown = Signature("1.000", "", 1), Signature("", "", 1)
    assert moved(known, unknown) == moved(unknown, known) == ()
