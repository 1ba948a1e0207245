"""Bad input gets one clear sentence that says what to do, and loses nothing."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stampcache
from stampcache import (
    Answer,
    Cache,
    ConfigError,
    Hit,
    Miss,
    Reason,
    Refused,
    Request,
    Stored,
    StoreError,
    open_cache,
)
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing import AngleEmbedder
from stampcache.testing.contract import NOW, make_entry, unit


def one_sentence(error: BaseException) -> str:
    said = str(error)
    assert said and "\n" not in said and said.endswith("."), said
    return said


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rag.db",
        "sqlite:rag.db",
        "sqlite://rag.db",
        "sqlite:///",
        "mysql://host/db",
        "memory://name",
        "sqlite:///no/such/folder/rag.db",
        "sqlite:///rag.db?mode=ro",
        "http://[::1",
    ],
)
def test_a_malformed_or_unknown_url(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_cache(url)
    one_sentence(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder"):
        open_cache(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n" * 200)
    with pytest.raises(ConfigError, match="not a database") as caught:
        open_cache(f"sqlite:///{path}")
    one_sentence(caught.value)
    assert path.read_text() == "my notes\n" * 200


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    open_cache(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE stampcache_facts SET value = '99' WHERE name = 'schema'")
    raw.close()
    with pytest.raises(ConfigError, match="newer stampcache"):
        open_cache(f"sqlite:///{path}")


def test_foreign_tables_in_the_same_file_survive(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE entries (name TEXT)")
        raw.execute("INSERT INTO entries VALUES ('mine')")
    with open_cache(f"sqlite:///{path}") as cache:
        cache.update(Request(question="q"), "a")
        assert cache.clear() == 1
    assert raw.execute("SELECT name FROM entries").fetchall() == [("mine",)]
    raw.close()


def test_a_read_only_file_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.db"
    open_cache(f"sqlite:///{path}").close()
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everything
    with pytest.raises(ConfigError, match="write permission"):
        open_cache(f"sqlite:///{path}")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tenants", "maybe"),
        ("ttl_s", 0),
        ("ttl_s", -1),
        ("flight_timeout_s", 0),
        ("capacity", 0),
        ("secret", "short"),
        ("calibration", 0.9),
        ("embedder", object()),
        ("embedder", lambda texts: texts),
        ("tokenizer", object()),
    ],
)
def test_a_wrong_option_is_named(option: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        open_cache("memory://", **{option: value})  # type: ignore[arg-type]
    assert option.removesuffix("der") in one_sentence(caught.value)


# -- what is on the disk ---------------------------------------------------------------------------


def damage(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(statement, values)
    raw.close()


@pytest.mark.parametrize("body", [b"", b"SCE\x01", b"SCE\x02" + b"x" * 40, b"SCE\x01" + b"x" * 40])
def test_a_corrupt_row_is_dropped_counted_and_missed(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "cache.db"
    with open_cache(f"sqlite:///{path}") as cache:
        cache.update(Request(question="damaged"), "a")
        cache.update(Request(question="whole"), "b")
    damage(
        path,
        "UPDATE stampcache_entries SET body = ? WHERE id = (SELECT min(id) FROM stampcache_entries)",
        body,
    )
    with open_cache(f"sqlite:///{path}") as cache:
        assert cache.core.store.problems()
        outcome = cache.lookup(Request(question="damaged"))
        assert isinstance(outcome, Miss)
        assert outcome.reason is Reason.CORRUPT
        assert cache.stats().counters["miss.corrupt"] == 1
        assert cache.lookup(Request(question="damaged")).reason is Reason.NOT_FOUND
        assert isinstance(cache.lookup(Request(question="whole")), Hit)
        assert not cache.core.store.problems()
        assert isinstance(cache.update(Request(question="damaged"), "anew"), Stored)


def test_a_flipped_bit_never_serves(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with open_cache(f"sqlite:///{path}") as cache:
        cache.update(Request(question="q"), "the answer is 42")
    with sqlite3.connect(path) as raw:
        (body,) = raw.execute("SELECT body FROM stampcache_entries").fetchone()
    raw.close()
    for at in range(0, len(body), 7):
        flipped = bytearray(body)
        flipped[at] ^= 1
        damage(path, "UPDATE stampcache_entries SET body = ?", bytes(flipped))
        store = SqliteStore(path)
        with pytest.raises(stampcache.CodecError):
            store.fetch(
                *store._file.reader.execute(
                    "SELECT partition, key FROM stampcache_entries"
                ).fetchone()
            )
        store.close()
        restore(path, body)


def restore(path: Path, body: bytes) -> None:
    with open_cache(f"sqlite:///{path}") as cache:
        cache.update(Request(question="q"), "the answer is 42")
    damage(path, "UPDATE stampcache_entries SET body = ?", body)


def test_a_full_disk_refuses_the_fill_and_keeps_what_was_there(tmp_path: Path) -> None:
    with open_cache(f"sqlite:///{tmp_path / 'cache.db'}") as cache:
        cache.update(Request(question="kept"), "a")
        store = cache.core.store
        assert isinstance(store, SqliteStore)
        (pages,) = store._file.writer.execute("PRAGMA page_count").fetchone()
        store._file.writer.execute(f"PRAGMA max_page_count = {pages}")
        update = cache.update(Request(question="big"), Answer(text="x" * 200_000))
        assert isinstance(update, Refused)
        assert update.reason is Reason.STORE_ERROR
        assert "free disk space" in update.detail
        assert isinstance(cache.lookup(Request(question="kept")), Hit)
        store._file.writer.execute("PRAGMA max_page_count = 1000000")
        assert isinstance(cache.update(Request(question="big"), Answer(text="x" * 200_000)), Stored)


def test_a_serving_survives_a_failed_write_and_is_known_when_it_is_reported(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "cache.db")
    entry = make_entry("k", entry_id="1")
    store.put(entry, unit(1, 0), 0)
    store._uses.serve(("1", "p", "k", "asked", "t"))
    (pages,) = store._file.writer.execute("PRAGMA page_count").fetchone()
    store._file.writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError):
        store.put(make_entry("big", text="x" * 200_000), None, store.sequence())
    store._file.writer.execute("PRAGMA max_page_count = 1000000")
    store.report_bad("1")
    store.put(make_entry("k", entry_id="2"), unit(1, 0), store.sequence())
    (candidate,) = store.nearest("p", unit(1, 0), 5, asked="asked", now=NOW)
    assert candidate.reported_bad
    store.close()


def test_the_log_stays_bounded_at_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stampcache.stores.sqlite._LOG_KEPT", 50)
    monkeypatch.setattr("stampcache.stores.sqlite._TRIM_EVERY", 10)
    store = SqliteStore(tmp_path / "cache.db", capacity=4)
    for at in range(200):
        store.put(make_entry(str(at)), None, store.sequence())
    (rows,) = store._file.reader.execute("SELECT count(*) FROM stampcache_log").fetchone()
    assert rows <= 60
    store.close()


def test_closing_lets_go_of_the_file_though_it_is_locked(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "cache.db", timeout_s=0.01)
    entry = make_entry("k")
    store.put(entry, None, 0)
    store.touch(entry, "k")
    other = SqliteStore(tmp_path / "cache.db")
    with other._file.transaction(), pytest.raises(StoreError, match="locked"):
        store.close()
    with pytest.raises(StoreError, match="closed"):
        store.fetch("p", "k")
    other.close()


# -- requests --------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Cache:
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "cache.db")
    return open_cache(store, embedder=AngleEmbedder({}), calibration=0.9)


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Request(question=""), "empty"),
        (Request(question=" \n\t "), "empty"),
        (Request(question="q", params={"callback": print}), "callback"),
        (Request(question="q", params={"deep": {"x": [1, {"y": object()}]}}), "value.deep.x[1].y"),
        (Request(question="q", params={"t": float("nan")}), "finite"),
        (Request(question="q", tools=[object()]), "JSON"),
        (Request(question="q", history=[object()]), "JSON"),
        (Request(question="q", prompt={"a": {1: 2}}), "string keys"),
        (Request(question="x" * 5_000_000), "5,000,000"),
        (Request(question="q", prompt="x" * (10 * 2**20)), "10,485,760"),
        (Request(question="half a pair \ud800"), "Unicode"),
    ],
)
def test_what_has_no_key_is_not_cached_and_says_why(
    cache: Cache, request_: Request, word: str
) -> None:
    outcome = cache.lookup(request_)
    assert isinstance(outcome, Miss)
    assert outcome.reason is Reason.UNCACHEABLE
    assert word in outcome.detail
    update = cache.update(request_, "a", outcome=outcome)
    assert isinstance(update, Refused)
    assert update.reason is Reason.UNCACHEABLE
    assert cache.get_or_create(request_, lambda: "made").text == "made"
    assert word in str(cache.explain(request_))


def test_an_answer_with_half_a_pair_is_refused(cache: Cache) -> None:
    assert cache.update(Request(question="q"), "\ud800").reason is Reason.UNCACHEABLE  # type: ignore[union-attr]


names = st.text(min_size=1, max_size=8) | st.sampled_from(
    [
        "*",
        "?",
        "[ab]",
        "a",
        "b",
        "a:b",
        "a,b",
        "a/b",
        "../x",
        "a\nb",
        "%",
        "_",
        "'; --",
        "\ud800",
        "é",
        "e\u0301",
    ]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(one=names, other=names)
def test_tenants_of_any_name_are_apart(cache: Cache, one: str, other: str) -> None:
    request = Request(question="what is my name?")
    with stampcache.scope(tenant=one):
        cache.update(request, Answer(text=repr(one)))
    with stampcache.scope(tenant=other):
        outcome = cache.lookup(request)
        assert isinstance(outcome, Hit) == (one == other)
        cache.clear()
    with stampcache.scope(tenant=one):
        assert isinstance(cache.lookup(request), Hit) == (one != other)
        cache.clear()


# -- embedders -------------------------------------------------------------------------------------


class Sized:
    """Vectors of a stated size under one name; or whatever rows it is given."""

    def __init__(self, rows: object, name: str = "sized") -> None:
        self.name = name
        self._rows = rows

    def embed(self, texts: list[str]) -> object:
        return self._rows


@pytest.mark.parametrize(
    "rows",
    [
        np.full((1, 4), np.nan, np.float32),
        np.zeros((1, 4), np.float32),
        np.array([[1.0, np.inf, 0.0, 0.0]], np.float32),
        np.ones((2, 4), np.float32),
        np.ones(4, np.float32),
        np.ones((1, 0), np.float32),
        [["a"]],
        None,
    ],
)
def test_a_nonsense_vector_means_no_semantic_hit_and_an_exact_one_still(
    tmp_path: Path, rows: object
) -> None:
    cache = open_cache("memory://", embedder=Sized(rows), calibration=0.9)
    request = Request(question="q")
    outcome = cache.lookup(request)
    assert isinstance(outcome, Miss)
    assert outcome.reason is Reason.EMBEDDER_ERROR
    assert isinstance(cache.update(request, "a", outcome=outcome), Stored)
    assert isinstance(cache.lookup(request), Hit)
    assert cache.stats(everything=True).counters["error.embedder_error"] == 1


def test_an_embedder_of_another_dimension_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    request = Request(question="q")
    with open_cache(url, embedder=Sized(np.ones((1, 4), np.float32)), calibration=0.9) as cache:
        cache.update(request, "a")
    with pytest.raises(ConfigError, match="vectors of 5 numbers, but this store holds"):
        open_cache(url, embedder=Sized(np.ones((1, 5), np.float32)), calibration=0.9)
    with open_cache(url, embedder=Sized(np.ones((1, 4), np.float32)), calibration=0.9) as cache:
        assert isinstance(cache.lookup(request), Hit)


def test_an_embedder_that_states_another_dimension_is_refused_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    with open_cache(url, embedder=Sized(np.ones((1, 4), np.float32)), calibration=0.9) as cache:
        cache.update(Request(question="q"), "a")
    stating = Sized(np.ones((1, 5), np.float32))
    stating.dimension = 5  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="Nothing was lost"):
        open_cache(url, embedder=stating, calibration=0.9)
