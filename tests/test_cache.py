"""Both faces over both stores: opening, failures, figures."""

import pytest

import stampcache
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    ConfigError,
    EmbedderError,
    Hit,
    Level,
    Miss,
    Reason,
    Refused,
    Request,
    Stamps,
    Stored,
    StoreError,
    Usage,
)
from stampcache.ports import Lag
from stampcache.stores.memory import MemoryStore
from stampcache.testing import AngleEmbedder, FailingStore, FakeClock
from tests.faces import Face, Open

ASKED = Request(question="What is a map?", model="deepseek-chat", params={"temperature": 0})


# -- the plain way ---------------------------------------------------------------------------------


def test_a_miss_then_an_update_then_a_hit(face: Face) -> None:
    miss = face.lookup(ASKED)
    assert isinstance(miss, Miss) and miss.reason is Reason.NOT_FOUND
    stored = face.update(ASKED, Answer(text="An image."), outcome=miss)
    assert isinstance(stored, Stored)
    hit = face.lookup(ASKED)
    assert isinstance(hit, Hit)
    assert (hit.level, hit.answer.text, hit.entry_id) == (
        Level.EXACT,
        "An image.",
        stored.entry.id,
    )
    assert hit.entry.stamps == Stamps(model="deepseek-chat")


def test_get_or_create_makes_once(face: Face) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("call")
        return "An image."

    texts = [face.get_or_create(ASKED, make).text for _ in range(3)]
    assert texts == ["An image."] * 3
    assert len(made) == 1
    assert len(face.core.flights) == 0


def test_an_exception_of_the_application_passes_and_nothing_is_stored(face: Face) -> None:
    def fail() -> str:
        raise ZeroDivisionError("of the application")

    with pytest.raises(ZeroDivisionError):
        face.get_or_create(ASKED, fail)
    assert face.served(ASKED) is None
    assert face.get_or_create(ASKED, lambda: "later").text == "later"


def test_an_update_on_its_own_is_stored(face: Face) -> None:
    assert isinstance(face.update(ASKED, "An image."), Stored)
    hit = face.lookup(ASKED)
    assert isinstance(face.update(ASKED, "A drawing.", outcome=hit), Stored)
    assert face.served(ASKED) == "A drawing."


async def test_the_faces_of_one_cache_share_everything() -> None:
    cache = stampcache.open_cache("memory://")
    cache.update(ASKED, "An image.")
    assert isinstance(await cache.aio.lookup(ASKED), Hit)
    assert isinstance(cache.aio.sync.lookup(ASKED), Hit)
    assert cache.stats().requests == 2
    await cache.aio.close()


async def test_both_faces_are_context_managers() -> None:
    with Cache("memory://") as cache:
        cache.update(ASKED, "x")
    with pytest.raises(StoreError, match="closed"):
        cache.core.store.fetch("p", "k")
    async with AsyncCache("memory://") as acache:
        await acache.update(ASKED, "x")
    cache.close()


# -- something is down -----------------------------------------------------------------------------


def test_a_store_that_goes_down_costs_nothing_but_hits(open_face: Open) -> None:
    store = FailingStore()
    face = open_face(store=store)
    face.fill(ASKED)
    store.down = True
    assert face.why(ASKED) is Reason.STORE_ERROR
    done = face.update(ASKED, "x")
    assert isinstance(done, Refused) and done.reason is Reason.STORE_ERROR
    assert face.get_or_create(ASKED, lambda: "made").text == "made"
    with pytest.raises(StoreError):
        face.invalidate(source="s")
    with pytest.raises(StoreError):
        face.clear()
    store.down = False
    assert face.served(ASKED) == "answer"
    counters = face.stats(everything=True).counters
    assert counters["error.store_error"] == 4
    assert counters["miss.store_error"] == 2


def test_a_store_that_comes_back_takes_the_answer(open_face: Open) -> None:
    store = FailingStore()
    face = open_face(store=store)
    store.down = True
    miss = face.lookup(ASKED)
    store.down = False
    assert isinstance(face.update(ASKED, "x", outcome=miss), Stored)


def test_strict_raises(open_face: Open) -> None:
    store = FailingStore()
    face = open_face(store=store, strict=True)
    store.down = True
    with pytest.raises(StoreError):
        face.lookup(ASKED)
    with pytest.raises(StoreError):
        face.update(ASKED, "x")


class NoVector(AngleEmbedder):
    def embed(self, texts: object) -> object:  # type: ignore[override]
        raise OSError("no GPU")


def test_an_embedder_that_is_down_leaves_exact_hits(open_face: Open) -> None:
    face = open_face(embedder=NoVector({}), calibration=0.9)
    assert face.why(ASKED) is Reason.EMBEDDER_ERROR
    assert isinstance(face.update(ASKED, "x"), Stored)
    assert face.served(ASKED) == "x"
    strict = open_face(embedder=NoVector({}), calibration=0.9, strict=True)
    with pytest.raises(EmbedderError):
        strict.lookup(Request(question="other"))


# -- figures and settings --------------------------------------------------------------------------


def test_figures_of_one_scope_and_of_all(face: Face) -> None:
    answer = Answer(text="x", usage=Usage(input_tokens=90, output_tokens=10), latency_s=2.0)
    face.update(ASKED, answer, outcome=face.lookup(ASKED))
    face.lookup(ASKED)
    stats = face.stats()
    assert (stats.entries, stats.requests, stats.exact_hits, stats.hit_rate) == (1, 2, 1, 0.5)
    assert (stats.saved_tokens, stats.saved_s) == (100, 2.0)
    with stampcache.scope(tenant="other"):
        assert face.stats().requests == 0
        assert face.stats().entries == 0
    assert face.stats(everything=True).requests == 2


def test_counters_are_saved_in_the_store_from_time_to_time(open_face: Open) -> None:
    clock = FakeClock()
    face = open_face(clock=clock)
    store = face.core.store
    face.update(ASKED, "x")
    assert not store.tallies()
    clock.advance(31)
    face.update(ASKED, "y")
    assert store.tallies() == {"stored": 2}
    face.update(ASKED, "z")
    assert store.tallies() == {"stored": 2}


def test_explaining_counts_and_touches_nothing(face: Face) -> None:
    face.fill(ASKED)
    before = (face.stats(), face.core.store.stats())
    explanation = face.explain(ASKED)
    assert str(explanation).startswith("Hit (exact, 1.0000): same tokens")
    assert explanation.checks[-1].passed
    assert (face.stats(), face.core.store.stats()) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tenants": "maybe"}, "tenants="),
        ({"ttl_s": 0}, "ttl_s="),
        ({"ttl_s": float("nan")}, "ttl_s="),
        ({"flight_timeout_s": -1}, "flight_timeout_s="),
        ({"calibration": 0.9}, "without embedder="),
        ({"secret": b"short"}, "at least 16"),
        ({"tokenizer": "deepseek"}, "tokenizer="),
        ({"embedder": object()}, "no embedder"),
    ],
)
def test_a_wrong_setting_is_said_at_once(
    open_face: Open, options: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        open_face(**options)


def test_invalidate_needs_to_know_what(face: Face) -> None:
    with pytest.raises(ConfigError, match="what changed"):
        face.invalidate()
    with pytest.raises(ConfigError, match="what changed"):
        face.invalidate(stamps=Stamps())


def test_what_was_counted_can_be_read_when_the_store_is_away() -> None:
    store = FailingStore()
    cache = stampcache.open_cache(store)
    cache.update(Request(question="q"), "a")
    store.down = True
    cache.lookup(Request(question="q"))
    stats = cache.stats(everything=True)
    assert (stats.requests, stats.entries, stats.counters["error.store_error"]) == (1, 0, 1)
    assert cache.stats().requests == 1
    strictly = stampcache.open_cache(store, strict=True, secret="of this test alone")
    with pytest.raises(StoreError):
        strictly.stats()


def test_a_store_that_follows_tells_how_far_behind_it_is() -> None:
    lag = Lag(bound_s=1.0, oldest_s=0.5, changes=2, p50_s=0.001, p99_s=0.002, flushes=0)

    class Behind(MemoryStore):
        def lag(self) -> Lag:
            return lag

    cache = stampcache.open_cache(Behind())
    assert cache.stats(everything=True).lag == lag
    assert cache.stats().lag is None, "of others' changes a tenant learns nothing"
    assert stampcache.open_cache("memory://").stats(everything=True).lag is None
