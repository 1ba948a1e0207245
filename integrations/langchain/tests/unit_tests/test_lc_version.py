"""`CachedChain` with ``grounding="version"``: no retrieval on a hit, and what is announced is noticed."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_apps import BUILT, QUESTION, App, reported, versioned
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_fakes import CountingChat, Shelf, plain_reply

import stampcache
from langchain_stampcache import CachedChain, StampCache
from stampcache import Cache, Lifetime, Stamps
from stampcache.testing import AngleEmbedder, FakeClock

CHANGED = "what it was made from changed"
LUNCH = "lunch noon"


@pytest.fixture(params=["memory", "sqlite"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cache]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/c.db"
    with stampcache.open_cache(url, clock=FakeClock()) as cache:
        yield cache


async def test_f1_f2_f5_a_changed_source_makes_its_answers_anew_and_no_others(
    cache: Cache, shelf: Shelf
) -> None:
    app = versioned(cache, shelf)
    first = app.ask()
    app.ask(LUNCH)
    shelf.put("leave", "annual leave is thirty one days")
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    asked = len(shelf.asked)
    for hit in (app.ask(LUNCH), await app.aask(LUNCH)):
        assert reported(hit) == (True, "exact", "same tokens")
        assert [each.metadata["source"] for each in hit["context"]] == ["lunch"]
    assert len(shelf.asked) == asked
    again = app.ask()
    assert reported(again) == (False, None, CHANGED)
    assert again["answer"] != first["answer"]
    assert again["context"][0].page_content == "annual leave is thirty one days"
    assert app.ask()["cache"]["hit"]
    assert len(shelf.asked) == asked + 1


async def test_f2_sync_and_async_rest_on_the_same_marks(cache: Cache, shelf: Shelf) -> None:
    app = versioned(cache, shelf)
    await app.aask()
    await cache.aio.invalidate(source="leave")
    assert reported(app.ask())[2] == CHANGED
    assert (await app.aask())["cache"]["hit"]


def test_f11_a_hit_returns_what_the_miss_returned(cache: Cache, shelf: Shelf) -> None:
    app = versioned(cache, shelf)
    made, hit = app.ask(), app.ask()
    assert {**made, "cache": 0} == {**hit, "cache": 0}
    assert len(shelf.asked) == 1


@pytest.mark.parametrize("change", [{"source": "new"}, {"source": "travel"}, {"chunk": "id-x"}, {}])
def test_f1_f9_any_write_to_the_corpus_is_noticed_where_it_is_compared(
    cache: Cache, shelf: Shelf, change: dict[str, str]
) -> None:
    shelf.k = 1
    app = versioned(cache, shelf, version_of="corpus")
    app.ask()
    assert app.ask()["cache"]["hit"]
    assert cache.invalidate(corpus="another") == 0
    assert cache.invalidate(corpus="handbook", **change) == 1
    assert reported(app.ask()) == (False, None, CHANGED)


@pytest.mark.parametrize("version_of", ["sources", "corpus"])
def test_f3_no_idea_from_before_the_ingest_goes_with_the_first_write(
    cache: Cache, shelf: Shelf, version_of: str
) -> None:
    app = versioned(cache, shelf, version_of=version_of)
    assert app.ask("parking rules")["context"] == []
    assert app.ask("parking rules")["cache"]["hit"]
    shelf.put("parking", "parking rules are strict")
    cache.invalidate(corpus="handbook", source="parking")
    found = app.ask("parking rules")
    assert reported(found) == (False, None, CHANGED)
    assert len(found["context"]) == 1


def test_f2_a_source_of_another_corpus_is_another_source(cache: Cache, shelf: Shelf) -> None:
    app = versioned(cache, shelf)
    app.ask()
    assert cache.invalidate(corpus="other", source="leave") == 0
    assert app.ask()["cache"]["hit"]


@pytest.mark.parametrize(
    ("document_id", "metadata"),
    [
        (None, {}),
        ("7", {}),
        ("7", {"page": 3}),
        ("7", {"filename": "leave.md"}),
        (None, {"file_name": "leave.md"}),
    ],
)
def test_f2_a_document_is_known_by_its_file_or_may_be_any_of_its_corpus(
    cache: Cache, document_id: str | None, metadata: dict[str, object]
) -> None:
    def retrieve(question: str) -> list[Document]:
        return [Document("annual leave", id=document_id, metadata=dict(metadata))]

    app = versioned(cache, Shelf(), retriever=retrieve)
    app.ask()
    assert cache.invalidate(corpus="another", source="leave.md") == 0
    assert app.ask()["cache"]["hit"]
    assert cache.invalidate(corpus="handbook", source="leave.md") == 1
    assert reported(app.ask())[2] == CHANGED
    if document_id is not None:
        assert cache.invalidate(chunk=document_id) == 1


# -- answers that are made while a document changes ------------------------------------------------


def during(step: str, app: App, change: Callable[[], Any]) -> None:
    """Let the change come once, in the middle of a retrieval or of a generation."""
    left = [change]

    def once() -> None:
        if left:
            left.pop()()

    retrieve = app.shelf._get_relevant_documents

    def retrieving(*args: Any, **options: Any) -> list[Document]:
        found = retrieve(*args, **options)
        once()
        return found

    def reply(messages: list, call: int) -> AIMessage:
        once()
        return plain_reply(messages, call)

    if step == "retriever":
        object.__setattr__(app.shelf, "_get_relevant_documents", retrieving)
    else:
        app.model.answering(reply)


@pytest.mark.parametrize("step", ["retriever", "model"])
@pytest.mark.parametrize("version_of", ["sources", "corpus"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_f1_an_answer_begun_before_a_change_is_not_stored_after_it(
    cache: Cache, shelf: Shelf, step: str, version_of: str, is_async: bool
) -> None:
    app = versioned(cache, shelf, version_of=version_of)
    during(step, app, lambda: cache.invalidate(corpus="handbook", source="leave"))
    assert (await app.aask() if is_async else app.ask())["answer"]
    assert cache.stats(everything=True).counters["refused.fenced"] == 1
    assert reported(app.ask()) == (False, None, "not found")
    assert app.ask()["cache"]["hit"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_busy_corpus_does_not_keep_answers_from_being_stored(
    cache: Cache, shelf: Shelf, is_async: bool
) -> None:
    shelf.k = 1
    app = versioned(cache, shelf)

    def elsewhere() -> None:
        for number in range(50):
            cache.invalidate(corpus="handbook", source=f"ticket {number}")

    during("model", app, elsewhere)
    await (app.aask() if is_async else asyncio.to_thread(app.ask))
    assert app.ask()["cache"]["hit"]
    assert "refused.fenced" not in cache.stats(everything=True).counters


# -- the rest --------------------------------------------------------------------------------------


def test_an_answer_whose_evidence_is_unknown_is_given_but_not_stored(
    cache: Cache, shelf: Shelf
) -> None:
    shelf.put("leave", "annual leave", when=object())
    app = versioned(cache, shelf)
    for _ in range(2):
        assert reported(app.ask()) == (False, None, "not found")
    assert app.model.calls == 2
    stats = cache.stats(everything=True)
    assert stats.counters["adapter.evidence_unknown"] == 2
    assert stats.entries == 0


@pytest.mark.parametrize(
    ("metadata", "is_kept"), [({"weight": float("inf")}, True), ({"when": object()}, False)]
)
def test_under_none_unknown_evidence_keeps_no_answer_from_being_stored(
    shelf: Shelf, metadata: dict[str, object], is_kept: bool
) -> None:
    shelf.put("leave", "annual leave", **metadata)
    cache = stampcache.open_cache("memory://", ttl_s=3_600, clock=FakeClock(), strict=True)
    app = App(cache, shelf, grounding="none", stamps=BUILT)
    assert [app.ask()["cache"]["hit"] for _ in range(2)] == [False, is_kept]
    assert cache.invalidate(source="leave") == 0  # nothing is known that it could depend on
    assert app.ask()["cache"]["hit"] == is_kept
    counters = cache.stats(everything=True).counters
    assert "adapter.evidence_unknown" not in counters
    assert ("adapter.not_storable" in counters) != is_kept  # its documents are no JSON


def test_under_recheck_unknown_evidence_bypasses_the_cache(cache: Cache, shelf: Shelf) -> None:
    shelf.put("leave", "annual leave", weight=float("inf"))
    app = App(cache, shelf)
    for _ in range(2):
        assert reported(app.ask()) == (False, None, "evidence unknown")


def test_a_semantic_hit_retrieves_nothing_and_ends_with_its_entry(shelf: Shelf) -> None:
    embedder = AngleEmbedder({QUESTION: 0.0, f"{QUESTION} please": 4.0})
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.95)
    app = versioned(cache, shelf)
    first = app.ask()
    hit = app.ask(f"{QUESTION} please")
    assert reported(hit)[:2] == (True, "semantic")
    assert hit["context"] == first["context"]
    assert len(shelf.asked) == 1
    cache.invalidate(source="leave")
    assert not app.ask(f"{QUESTION} please")["cache"]["hit"]


@pytest.mark.parametrize("version_of", ["sources", "corpus"])
def test_f2_two_caches_on_one_file_see_each_others_changes(
    tmp_path: Path, shelf: Shelf, version_of: str
) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    with stampcache.open_cache(url) as here, stampcache.open_cache(url) as there:
        app, other = (versioned(one, shelf, version_of=version_of) for one in (here, there))
        app.ask()
        assert other.ask()["cache"]["hit"]
        there.invalidate(corpus="handbook", source="leave")
        assert reported(app.ask()) == (False, None, CHANGED)
        assert other.ask()["cache"]["hit"]
        during("model", app, lambda: there.invalidate(source="lunch"))
        app.ask(LUNCH)
        assert here.stats(everything=True).counters["refused.fenced"] == 1


def test_the_three_groundings_and_both_versions_never_share(cache: Cache, shelf: Shelf) -> None:
    ways: list[dict[str, str]] = [
        {"grounding": "recheck"},
        {"grounding": "none"},
        {"version_of": "sources"},
        {"version_of": "corpus"},
        {"corpus": "other"},
    ]
    for way in ways:
        app = versioned(cache, shelf, **way)
        assert not app.ask()["cache"]["hit"]
        assert app.ask()["cache"]["hit"]


def test_f5_f6_none_retrieves_on_a_miss_only_and_time_ends_it(shelf: Shelf) -> None:
    clock = FakeClock()
    cache = stampcache.open_cache("memory://", ttl_s=3_600, clock=clock)
    app = App(cache, shelf, grounding="none", stamps=BUILT)
    first = app.ask()
    shelf.put("leave", "changed")
    for _ in range(3):
        clock.advance(1_000)
        second = app.ask()
        assert reported(second)[:2] == (True, "exact")
        assert second["context"] == first["context"]
    assert len(shelf.asked) == 1
    clock.advance(700)
    assert reported(app.ask()) == (False, None, "expired")
    cache.invalidate(source="lunch")
    assert reported(app.ask())[2] == CHANGED


async def test_an_app_without_documents_keeps_its_answers_for_their_whole_life() -> None:
    clock = FakeClock()
    cache = stampcache.open_cache("memory://", ttl_s=3_600, clock=clock)
    answer = RunnableLambda(lambda inputs: f"answer to {inputs['input']}")
    chain = CachedChain(retriever=None, answer=answer, cache=cache, grounding="none")
    chain.invoke({"input": "a"})
    clock.advance(3_000)
    assert (await chain.ainvoke({"input": "a"}))["cache"]["hit"]
    assert cache.invalidate(corpus="handbook") == 0


def test_f9_a_deleted_document_leaves_no_orphan(cache: Cache, shelf: Shelf) -> None:
    app = versioned(cache, shelf)
    app.ask()
    shelf.remove("leave")
    cache.invalidate(corpus="handbook", source="leave")
    assert cache.purge() == 1
    assert cache.stats(everything=True).entries == 0


def test_f6_a_sliding_lifetime_ends_at_its_cap(shelf: Shelf) -> None:
    clock = FakeClock()
    lifetimes = {"desk": Lifetime(ttl_s=1_000, cap_s=2_000)}
    cache = stampcache.open_cache("memory://", lifetimes=lifetimes, clock=clock)
    app = versioned(cache, shelf, kind="desk")
    app.ask()
    for _ in range(2):
        clock.advance(900)
        assert app.ask()["cache"]["hit"]
    clock.advance(201)
    assert reported(app.ask()) == (False, None, "expired")


def test_g8_answers_found_with_another_embedder_are_not_seen(tmp_path: Path, shelf: Shelf) -> None:
    angles = {QUESTION: 0.0, f"{QUESTION} please": 4.0}
    for name in ("one", "two"):
        embedder = AngleEmbedder(angles, name=name)
        url = f"sqlite:///{tmp_path}/c.db"
        with stampcache.open_cache(url, embedder=embedder, calibration=0.95) as cache:
            app = versioned(cache, shelf)
            assert reported(app.ask(f"{QUESTION} please")) == (False, None, "not found")
            assert reported(app.ask())[:2] == (True, "semantic")


def test_f5_calls_of_models_depend_on_no_document(cache: Cache) -> None:
    model = CountingChat(cache=StampCache(cache))
    model.invoke("hello")
    assert cache.invalidate(corpus="handbook") == cache.invalidate(source="leave") == 0
    assert model.invoke("hello").response_metadata["cache"]["hit"]
    assert cache.invalidate(stamps=Stamps(model="fake-1")) == 1
    assert not model.invoke("hello").response_metadata["cache"]["hit"]
