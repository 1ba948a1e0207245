"""Vectors through a front: equal to the last bit, in batches, by text, width and tenant."""

import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import stampcache
from stampcache import Answer, Cache, CodecError, Request, Seam, Settings, Stamps
from stampcache.adapters import CanonicalError, Front, Step, Vectors
from stampcache.adapters.vectors import VECTOR, read, stored
from stampcache.testing import FailingStore
from stampcache.testing.contract import in_threads

SETTINGS = Settings(model="minilm", seam=Seam.VECTOR, params={"role": "query"})
Floats = list[float]
Made = TypeVar("Made")
FLOATS = st.lists(
    st.floats(width=64, allow_nan=False, allow_infinity=False), min_size=1, max_size=20
)


class Embedder:
    """Gives each text a vector of its own, and keeps the batches that it was asked for."""

    def __init__(self, width: int = 3) -> None:
        self.width = width
        self.batches: list[list[str]] = []

    def vector(self, text: str) -> Floats:
        return [float(sum(text.encode())), *map(float, range(1, self.width))]

    def batch(self, texts: Sequence[str]) -> list[Floats]:
        self.batches.append(list(texts))
        return [self.vector(text) for text in texts]

    def many(self, texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        return Step(sync=lambda: self.batch(texts), aio=_awaited(lambda: self.batch(texts)))

    def one(self, text: str) -> Step[Sequence[float]]:
        return Step(sync=lambda: self.batch([text])[0], aio=_awaited(lambda: self.batch([text])[0]))


def _awaited(make: Callable[[], Made]) -> Callable[[], Awaitable[Made]]:
    async def awaited() -> Made:
        return make()

    return awaited


@pytest.fixture
def cache(url: str) -> Iterator[Cache]:
    with stampcache.open_cache(url) as opened:
        yield opened


def build(settings: Settings = SETTINGS) -> Callable[[], Request]:
    return lambda: Request(settings=settings)


def vectors(cache: Cache) -> Vectors:
    return Vectors(Front(cache.core, kind="vectors"))


def many(
    cache: Cache, embedder: Embedder, *texts: str, settings: Settings = SETTINGS
) -> list[Floats]:
    return Front(cache.core, kind="t").run(
        vectors(cache).many(texts, build(settings), embedder.many)
    )


def one(cache: Cache, embedder: Embedder, text: str) -> Floats:
    return Front(cache.core, kind="t").run(vectors(cache).one(text, build(), embedder.one(text)))


# -- the form --------------------------------------------------------------------------------------


@given(FLOATS)
@example([0.0, -0.0, 5e-324, 1.7976931348623157e308])
def test_every_float_comes_back_equal(vector: Floats) -> None:
    back = read(stored(vector))
    assert struct.pack(f"{len(vector)}d", *back) == struct.pack(f"{len(vector)}d", *vector)
    assert all(type(number) is float for number in back)


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_floats_of_single_precision_come_back_equal(vector: Floats) -> None:
    narrow = np.asarray(vector, np.float32)
    assert np.array_equal(np.asarray(read(stored(narrow)), np.float32), narrow, equal_nan=True)


@pytest.mark.parametrize("vector", [[], [float("nan")], [float("inf")], ["x"], [[1.0]], [10**400]])
def test_what_does_not_come_back_equal_is_not_stored(vector: list[Any]) -> None:
    with pytest.raises(CanonicalError):
        stored(vector)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text=""),
        Answer(text="", format=VECTOR),
        Answer(text="", payload=b"1234567", format=VECTOR),
        Answer(text="", payload=b"12345678", format="vector.f4.1"),
    ],
)
def test_what_is_no_vector_is_not_read_as_one(answer: Answer) -> None:
    with pytest.raises(CodecError):
        read(answer)


# -- batches ---------------------------------------------------------------------------------------


def test_texts_are_embedded_once_each_and_come_in_their_order(cache: Cache) -> None:
    embedder = Embedder()
    texts = ["a", "b", "a", "c", "b"]
    expected = [embedder.vector(text) for text in texts]
    assert many(cache, embedder, *texts) == expected
    assert many(cache, embedder, *texts) == expected
    assert many(cache, embedder, "c", "d", "a", "d") == list(map(embedder.vector, "cdad"))
    assert embedder.batches == [["a", "b", "c"], ["d"]]
    assert many(cache, embedder) == []


def test_each_place_has_a_list_of_its_own(cache: Cache) -> None:
    embedder = Embedder()
    for _ in range(2):
        first, second = many(cache, embedder, "a", "a")
        first.append(9.0)
        assert second == embedder.vector("a")


@given(st.lists(st.lists(st.sampled_from("abcdé \n"), max_size=6), max_size=5))
def test_batches_with_whatever_hits_are_what_the_embedder_would_give(batches: list[Floats]) -> None:
    embedder = Embedder()
    with stampcache.open_cache("memory://") as cache:
        for texts in batches:
            assert many(cache, embedder, *map(str, texts)) == [
                embedder.vector(str(text)) for text in texts
            ]
    made = [text for batch in embedder.batches for text in batch]
    assert len(made) == len(set(made))


def test_one_and_many_share_what_they_know(cache: Cache) -> None:
    embedder = Embedder()
    assert one(cache, embedder, "a") == embedder.vector("a")
    assert many(cache, embedder, "a", "b") == [embedder.vector("a"), embedder.vector("b")]
    assert one(cache, embedder, "b") == embedder.vector("b")
    assert embedder.batches == [["a"], ["b"]]


def test_no_white_space_is_folded(cache: Cache) -> None:
    embedder = Embedder()
    many(cache, embedder, "a b", "a  b", " a b", "a b ", "a\nb", "")
    many(cache, embedder, "a b", "a  b", " a b", "a b ", "a\nb", "")
    assert [len(batch) for batch in embedder.batches] == [6]


def test_other_settings_and_tenants_have_vectors_of_their_own(cache: Cache) -> None:
    embedder = Embedder()
    other = replace(SETTINGS, params={"role": "document"})
    many(cache, embedder, "a")
    many(cache, embedder, "a", settings=other)
    with stampcache.scope(tenant="acme"):
        many(cache, embedder, "a")
        many(cache, embedder, "a")
    assert len(embedder.batches) == 3


def test_equal_requests_that_run_at_once_make_one_vector(cache: Cache) -> None:
    embedder = Embedder()
    in_threads(lambda _: one(cache, embedder, "a"), count=8)
    assert len(embedder.batches) == 1


async def test_tasks_get_the_same(url: str) -> None:
    async with stampcache.AsyncCache(url) as cache:
        embedder, front = Embedder(), Front(cache.core, kind="t")
        for _ in range(2):
            flow = Vectors(front).many(["a", "b"], build(), embedder.many)
            assert await front.arun(flow) == list(map(embedder.vector, "ab"))
            single = Vectors(front).one("c", build(), embedder.one("c"))
            assert await front.arun(single) == embedder.vector("c")
        assert embedder.batches == [["a", "b"], ["c"]]


# -- when something is not as it was ----------------------------------------------------------------


def test_where_the_width_changed_all_are_made_anew_and_stored_over_the_old(cache: Cache) -> None:
    many(cache, Embedder(3), "a", "b", "a")
    wider = Embedder(5)
    expected = [wider.vector(text) for text in "abca"]
    assert many(cache, wider, "a", "b", "c", "a") == expected
    assert set(chain(*wider.batches)) == set("abc")
    assert many(cache, wider, "a", "b", "c", "a") == expected
    assert len(wider.batches) == 2
    assert cache.stats(everything=True).counters["adapter.embedding_width"] == 1


def test_an_empty_vector_is_of_no_width_and_is_not_stored(cache: Cache) -> None:
    embedder = Embedder()

    def some(texts: list[str]) -> list[Floats]:
        return [embedder.vector(text) if text else [] for text in texts]

    def batch(texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        return Step(sync=lambda: some(texts), aio=_awaited(list))

    front = Front(cache.core, kind="t")
    for _ in range(2):
        got = front.run(vectors(cache).many(["a", ""], build(), batch))
        assert got == [embedder.vector("a"), []]
    assert cache.stats().entries == 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_vectors_than_of_texts_is_given_as_it_is_and_not_kept(
    cache: Cache, count: int
) -> None:
    front = Front(cache.core, kind="t")

    def wrong(texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        return Step(sync=lambda: [[1.0]] * count, aio=_awaited(list))

    assert front.run(vectors(cache).many(["a", "b"], build(), wrong)) == [[1.0]] * count
    assert cache.stats().entries == 0


def test_a_vector_of_no_numbers_is_given_but_not_stored(cache: Cache) -> None:
    front = Front(cache.core, kind="t")

    def odd(texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        return Step(sync=lambda: [["x"] for _ in texts], aio=_awaited(list))  # type: ignore[list-item]

    assert front.run(vectors(cache).many(["a"], build(), odd)) == [["x"]]
    assert cache.stats().entries == 0
    assert cache.stats(everything=True).counters["adapter.not_storable"] == 1


def test_what_the_embedder_raises_is_the_callers(cache: Cache) -> None:
    front = Front(cache.core, kind="t")

    def failing(texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        return Step(sync=lambda: 1 / 0, aio=_awaited(list))  # type: ignore[arg-type, return-value]

    with pytest.raises(ZeroDivisionError):
        front.run(vectors(cache).many(["a"], build(), failing))


def test_a_damaged_vector_is_dropped_and_made_anew(cache: Cache) -> None:
    embedder, front = Embedder(), Front(cache.core, kind="t")
    many(cache, embedder, "a")
    ask = front.ask(Request(prompt={"text": "a"}, settings=SETTINGS))
    cache.update(ask.request, Answer(text="", payload=b"1", format=VECTOR))  # type: ignore[union-attr]
    assert many(cache, embedder, "a") == [embedder.vector("a")]
    assert many(cache, embedder, "a") == [embedder.vector("a")]
    assert len(embedder.batches) == 2


def test_a_store_that_is_down_is_no_reason_not_to_embed() -> None:
    store, embedder = FailingStore(), Embedder()
    cache = stampcache.open_cache(store)
    store.down = True
    for _ in range(2):
        assert many(cache, embedder, "a") == [embedder.vector("a")]
        assert one(cache, embedder, "b") == embedder.vector("b")
    assert len(embedder.batches) == 4


def test_a_request_that_cannot_be_built_is_embedded_without_the_cache(cache: Cache) -> None:
    front, embedder = Front(cache.core, kind="t"), Embedder()

    def broken() -> Request:
        raise stampcache.ScopeError("tenant is 5")

    assert front.run(vectors(cache).many(["a"], broken, embedder.many)) == [embedder.vector("a")]
    assert front.run(vectors(cache).one("a", broken, embedder.one("a"))) == embedder.vector("a")
    assert cache.stats(everything=True).counters["miss.unscoped"] == 2


@pytest.mark.parametrize("known", [False, True])
def test_a_change_while_vectors_are_made_keeps_them_from_being_stored(
    cache: Cache, known: bool
) -> None:
    embedder = Embedder()
    if known:
        many(cache, Embedder(5), "a")

    def batch(texts: list[str]) -> Step[Sequence[Sequence[float]]]:
        def make() -> list[Floats]:
            cache.invalidate(stamps=Stamps(model="minilm"))
            return embedder.batch(texts)

        return Step(sync=make, aio=_awaited(list))

    front = Front(cache.core, kind="t")
    front.run(vectors(cache).many(["a", "b"], build(), batch))
    assert cache.stats().entries == 0


# -- told otherwise --------------------------------------------------------------------------------


def test_controls_hold_for_vectors_too_but_there_is_no_variety_of_them(cache: Cache) -> None:
    embedder = Embedder()
    with stampcache.scope(no_store=True):
        many(cache, embedder, "a")
    with stampcache.scope(variety=3):
        many(cache, embedder, "a")
        many(cache, embedder, "a")
    with stampcache.scope(no_cache=True):
        many(cache, embedder, "a")
        one(cache, embedder, "a")
    many(cache, embedder, "a")
    assert len(embedder.batches) == 4


def test_who_must_name_a_tenant_and_does_not_is_not_cached(url: str) -> None:
    with stampcache.open_cache(url, tenants="required") as cache:
        embedder = Embedder()
        many(cache, embedder, "a")
        one(cache, embedder, "a")
        assert len(embedder.batches) == 2
        with stampcache.scope(tenant="acme"):
            assert cache.stats().entries == 0
