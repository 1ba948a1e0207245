"""The hash of vectors: the same everywhere, near for near vectors, and never a decision."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import stampcache
from stampcache import semantic_hash
from stampcache.semantic_hash import (
    BITS,
    SemanticHash,
    counted,
    distance,
    distances,
    duplicates,
    most_bits,
    near,
)

PINNED = ["0x17a15451ee42ea81", "0xac1ab8a7f98b0426"]
HASHES = arrays.arrays(np.uint64, st.integers(1, 30))


def drawn(count: int, dimension: int = 48, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dimension))


def at_angle(vector: np.ndarray, other: np.ndarray, degrees: float) -> np.ndarray:
    """Return a unit vector at an angle to another, in the plane of both."""
    unit = vector / np.linalg.norm(vector)
    side = other - (other @ unit) * unit
    side /= np.linalg.norm(side)
    return np.cos(np.radians(degrees)) * unit + np.sin(np.radians(degrees)) * side


def test_the_hashes_are_these_on_every_machine() -> None:
    ramp = np.arange(12, dtype=np.float32).reshape(2, 6) - 5.5
    assert [hex(one) for one in SemanticHash(6).of(ramp).tolist()] == PINNED
    assert SemanticHash(6, seed=1).of(ramp).tolist() != SemanticHash(6).of(ramp).tolist()


def test_neither_the_order_of_adding_nor_the_batch_makes_a_difference() -> None:
    vectors = drawn(40)
    hashing = SemanticHash(48)
    together = hashing.of(vectors)
    alone = [hashing.of(vectors[at : at + 1])[0] for at in range(40)]
    assert together.tolist() == alone
    assert hashing.of(np.asfortranarray(vectors)).tolist() == together.tolist()
    assert hashing.of(vectors * 8).tolist() == together.tolist(), "length says nothing"
    assert hashing.of(-vectors).tolist() == (~together).tolist()
    assert together.dtype == np.uint64


def test_a_bit_differs_as_often_as_the_angle_says() -> None:
    vectors, others = drawn(400), drawn(400, seed=4)
    hashing = SemanticHash(48)
    for degrees in (10, 30, 60, 90):
        turned = np.stack([at_angle(*both, degrees) for both in zip(vectors, others, strict=True)])
        found = [
            distance(*both) for both in zip(hashing.of(vectors), hashing.of(turned), strict=True)
        ]
        assert np.mean(found) == pytest.approx(BITS * degrees / 180, abs=1.0)
        assert np.mean(np.array(found) <= most_bits(np.cos(np.radians(degrees)))) > 0.98


@pytest.mark.parametrize("wrong", [np.ones(6), np.ones((2, 5)), np.ones((1, 2, 6))])
def test_another_shape_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="The shape"):
        SemanticHash(6).of(wrong)


@pytest.mark.parametrize("wrong", [0.0, np.nan, np.inf])
def test_what_has_no_direction_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="no direction"):
        SemanticHash(6).of(np.full((2, 6), wrong))
    with pytest.raises(ValueError, match="dimension 0"):
        SemanticHash(0)
    assert SemanticHash(6).of(np.empty((0, 6))).shape == (0,)


@given(HASHES, st.integers(0, 2**64 - 1), st.integers(0, BITS))
def test_distances_are_counted_bit_by_bit(hashes: np.ndarray, one: int, most: int) -> None:
    by_hand = [bin(each ^ one).count("1") for each in hashes.tolist()]
    assert distances(hashes, one).tolist() == by_hand
    assert counted(hashes ^ np.uint64(one)).tolist() == by_hand
    assert [distance(each, one) for each in hashes] == by_hand
    assert near(hashes, one, most).tolist() == [
        at for at, bits in enumerate(by_hand) if bits <= most
    ]


@given(st.floats(-1.5, 1.5))
def test_the_bits_that_may_differ_grow_with_the_angle(cosine: float) -> None:
    assert 0 <= most_bits(cosine) <= BITS
    assert most_bits(cosine) >= most_bits(cosine + 0.1)
    assert (most_bits(1.0), most_bits(-1.0)) == (0, BITS)


def test_duplicates_are_near_the_first_of_their_group() -> None:
    base, other = drawn(2)
    vectors = [base, at_angle(base, other, 10), other, at_angle(base, other, 17), base * 3, other]
    groups = duplicates(["a", "b", "c", "d", "a", "e"], vectors, cosine=0.95)
    assert [list(one.members) for one in groups] == [[0, 1, 3, 4], [2, 5]]
    assert groups[0].lowest == pytest.approx(np.cos(np.radians(17)))
    assert groups[1].lowest == pytest.approx(1.0)


def test_near_the_second_alone_is_not_enough() -> None:
    base, other = drawn(2)
    chain = [at_angle(base, other, degrees) for degrees in (0, 15, 30)]
    assert [list(one.members) for one in duplicates("abc", chain, cosine=0.95)] == [[0, 1]]


def test_equal_texts_are_duplicates_whatever_a_cosine_rounds_to() -> None:
    vectors = np.ones((3, 7))
    groups = duplicates(["a", "a", "b"], vectors, cosine=1.1)
    assert [list(one.members) for one in groups] == [[0, 1]]


def test_an_equal_hash_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SemanticHash, "of", lambda _, rows: np.zeros(len(rows), np.uint64))
    assert not duplicates(["a", "b"], np.eye(2), cosine=0.95)


def test_nothing_has_no_duplicates() -> None:
    assert not duplicates([], np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"not \(1, dimension\)"):
        duplicates(["a"], np.empty((0, 3)))


@given(st.integers(2, 40), st.integers(0, 10_000))
def test_all_that_is_found_is_near(count: int, seed: int) -> None:
    vectors = drawn(count, dimension=3, seed=seed)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    seen: set[int] = set()
    for group in duplicates([str(at) for at in range(count)], vectors, cosine=0.9):
        first, *rest = group.members
        assert rest and all(unit[first] @ unit[one] >= 0.9 for one in rest)
        assert min(unit[first] @ unit[one] for one in rest) == pytest.approx(group.lowest)
        assert not seen & set(group.members)
        seen |= set(group.members)


def test_nothing_that_decides_a_hit_knows_of_it() -> None:
    source = Path(stampcache.__file__).parent
    knowing = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if any(one.endswith("semantic_hash") for one in named):
                knowing.add(path.relative_to(source).as_posix())
    assert knowing <= {"cli/duplicates.py"}
    assert semantic_hash.__doc__ and "never decides a hit" in semantic_hash.__doc__
