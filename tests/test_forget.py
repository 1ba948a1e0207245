"""Forgetting a tenant: through the faces of the cache, in all processes, and down to the file's bytes."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

import stampcache
from stampcache import (
    Answer,
    ConfigError,
    Forgotten,
    Freshness,
    Hit,
    Miss,
    Reason,
    Refused,
    Request,
    Scope,
    StoreError,
    open_cache,
)
from stampcache.calibration import Subject
from stampcache.corpora import Change, Chunk, Metric, Reach
from stampcache.journal import Verdict
from stampcache.model import BY_JUDGE, Entry, Selector
from stampcache.pairs import Pair
from stampcache.ports import Store
from stampcache.spaces import as_bytes
from stampcache.stores.codec import Codec
from stampcache.stores.sqlite import SqliteStore
from stampcache.stores.telling import Holding
from stampcache.testing import AngleEmbedder, FailingStore, FakeClock
from stampcache.testing.contract import NOW, make_entry, unit
from tests.faces import Open
from tests.reachable import holders

LEAVE = "How many days of leave?"


def asked(tenant: str, question: str = LEAVE, *, audience: str = "") -> Request:
    return Request(question=question, scope=Scope(tenant=tenant, audience=audience))


# -- the faces ---------------------------------------------------------------------------------------


def test_a_tenant_is_forgotten_in_all_its_scopes_and_no_other_is(open_face: Open) -> None:
    face = open_face()
    mine = [asked("acme"), asked("acme", audience="a"), asked("acme", "Who signs?")]
    for request in (*mine, asked("globex")):
        face.fill(request)
    forgotten = face.forget("acme")
    assert forgotten.entries == 3
    assert forgotten.size_bytes > 0
    assert all(face.why(request) is Reason.NOT_FOUND for request in mine)
    assert face.served(asked("globex")) == "answer"
    counters = face.stats(everything=True).counters
    assert (counters["forgotten.tenants"], counters["forgotten.entries"]) == (1, 3)
    assert face.forget("acme") == Forgotten()


@pytest.mark.parametrize("wrong", ["", None, 7])
def test_a_tenant_is_forgotten_by_its_name(open_face: Open, wrong: object) -> None:
    with pytest.raises(ConfigError, match="tenant to forget"):
        open_face().forget(wrong)  # type: ignore[arg-type]  # meant


def test_a_tenant_of_another_secret_is_not_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    with open_cache(url, secret=b"1" * 32) as cache:
        cache.update(asked("acme"), "answer")
        with open_cache(url, secret=b"2" * 32) as stranger:
            assert stranger.forget("acme") == Forgotten()
        assert isinstance(cache.lookup(asked("acme")), Hit)


def test_an_answer_that_is_being_made_is_not_stored(open_face: Open) -> None:
    face = open_face()
    face.fill(asked("globex"))
    outcome = face.lookup(asked("acme"))
    face.forget("acme")
    done = face.update(asked("acme"), "late", outcome=outcome)
    assert isinstance(done, Refused)
    assert done.reason is Reason.FENCED
    assert isinstance(face.lookup(asked("acme")), Miss)


def test_one_who_asks_after_that_is_not_given_what_was_begun_before() -> None:
    """Equal requests share one making, but not across a forgetting."""

    async def main() -> list[str]:
        cache = open_cache("memory://").aio
        under_way, go_on = asyncio.Event(), asyncio.Event()
        made: list[str] = []

        async def make() -> str:
            made.append(f"answer {len(made)}")
            mine = made[-1]
            if len(made) == 1:
                under_way.set()
                await go_on.wait()
            return mine

        first = asyncio.create_task(cache.get_or_create(asked("acme"), make))
        await under_way.wait()
        await cache.forget("acme")
        second = asyncio.create_task(cache.get_or_create(asked("acme"), make))
        await asyncio.sleep(0)
        go_on.set()
        return [(await first).text, (await second).text]

    assert asyncio.run(main()) == ["answer 0", "answer 1"]


def test_figures_of_a_forgotten_tenant_are_only_a_part_of_the_sum(open_face: Open) -> None:
    face = open_face()
    for tenant in ("acme", "globex"):
        face.fill(asked(tenant))
    before = face.stats(everything=True).requests
    face.forget("acme")
    with stampcache.scope(tenant="acme"):
        assert face.stats().requests == 0
    with stampcache.scope(tenant="globex"):
        assert face.stats().requests == 1
    assert face.stats(everything=True).requests == before


def pair_of(tenant: str) -> Pair:
    return Pair(
        asked="a",
        stored="b",
        score=None,
        similarity=0.9,
        subject=Subject(decider="d", embedder="e"),
        entry_id="1",
        tenant=tenant,
        at=NOW,
        sampled=True,
        served=True,
    )


def test_nothing_of_it_is_kept_in_the_process_beside_the_store() -> None:
    clock = FakeClock()
    cache = open_cache(
        "memory://",
        embedder=AngleEmbedder({LEAVE: 0, "How many leave days?": 5}),
        calibration=0.9,
        judge=lambda prompt: "",
        freshness=Freshness(limit=0.1),
        clock=clock,
    )
    core, intake = cache.core, cache.core.intake
    for tenant in ("acme", "globex"):
        cache.update(asked(tenant), "30", outcome=cache.lookup(asked(tenant)))
    clock.advance(3 * 24 * 3600)
    for tenant in ("acme", "globex"):
        cache.lookup(asked(tenant))
        cache.lookup(asked(tenant, "How many leave days?"))
    with stampcache.scope(tenant="acme", variety=3):
        cache.lookup(Request(question=LEAVE))
    digest = intake.tenant_digest("acme")
    core.learning.noticed.add(pair_of(digest), doubtful=True)
    journal, now = core.store.journal, clock.now()
    assert {one.scope.tenant for one in journal.due(9, now=now)} == {"acme", "globex"}
    cache.forget("acme")
    assert {one.scope.tenant for one in journal.due(9, now=now)} == {"globex"}
    assert digest not in {pair.tenant for pair in core.learning.noticed.take()}
    assert all(place[0].tenant != "acme" for place in intake._realms._known)
    assert digest not in intake._realms._owners.values()
    assert len(intake._varieties) == 0
    assert intake._comparing.profile_stored.cache_info().currsize == 0
    cache.close()


def test_a_store_that_is_down_says_so_and_the_process_forgets_all_the_same() -> None:
    store = FailingStore()
    cache = open_cache(store)
    cache.update(asked("acme"), "30")
    store.down = True
    with pytest.raises(StoreError, match="down"):
        cache.forget("acme")
    assert not cache.core.intake._realms._owners
    store.down = False
    assert cache.forget("acme").entries == 1


# -- the bytes of a file -----------------------------------------------------------------------------

SECRET_WORDS = ("Zanzibar", "Quagga", "Xylograph")
"""In questions, answers and verdicts of the tenant that is forgotten, and nowhere else."""


def bytes_beside(path: Path) -> bytes:
    """Return all that lies in the folder: the file, its write-ahead log, and what indexes that."""
    return b"".join(one.read_bytes() for one in sorted(path.parent.iterdir()))


def of_tenant(tenant: str, number: int, word: str) -> Entry:
    text = f"{word} {number} " * 2_000  # more than one page
    entry = make_entry(
        f"key-{tenant}-{number}",
        partition=f"partition-{tenant}-{number % 3}",
        scope=f"scope-{tenant}",
        tenant=f"tenant-{tenant}",
        entry_id=f"id-{tenant}-{number}",
        text=text,
    )
    return replace(entry, question=f"What is {word} {number}?")


def vector_of(tenant: str, number: int) -> list[float]:
    return [1.0, 0.25 if tenant == "acme" else 0.5, float(number)]


def lived(store: Store, tenant: str, words: tuple[str, ...]) -> list[Entry]:
    """Do with a store whatever leaves traces of a tenant in it."""
    entries = [of_tenant(tenant, number, words[0]) for number in range(9)]
    for number, entry in enumerate(entries):
        reach = Reach(
            corpus="c",
            question=as_bytes(vector_of(tenant, number)),
            metric=Metric.COSINE,
            floor=0.9,
        )
        vector = unit(*vector_of(tenant, number))
        store.put(entry, vector, store.sequence(), reach if number % 2 else None)
        store.nearest(entry.place[0], vector, 3, asked="x", now=NOW)
        store.touch(entry, f"asked-{tenant}-{number}")
    store.report_bad(entries[0].id)
    store.remove(entries[1])  # what was freed is not what was overwritten
    store.invalidate(Selector(entry=entries[2].id, because=f"{BY_JUDGE}: {words[1]}"))
    verdict = Verdict(
        entry_id=entries[3].id,
        question=entries[3].question,
        fresh=True,
        reason=words[2],
        at=NOW,
        tenant=entries[3].identity.tenant,
    )
    store.journal.judged(verdict)
    doubted = replace(entries[4], doubtful_at=NOW)
    store.put(doubted, None, store.sequence())
    assert store.journal.list_due(doubted, Scope(tenant=words[0]), early=False).may
    store.put(replace(entries[4], id=f"id-{tenant}-anew"), None, store.sequence())
    store.clear(f"scope-{tenant}-none")
    return entries


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "rag.db")
    yield store
    store.close()


def traces(tenant: str, words: tuple[str, ...]) -> list[bytes]:
    vectors = [unit(*vector_of(tenant, number)).tobytes() for number in range(9)]
    raw = [as_bytes(vector_of(tenant, number)) for number in range(9)]
    names = ("tenant", "scope", "partition", "key", "id", "asked")
    return [*(word.encode() for word in words), *vectors, *raw] + [
        f"{name}-{tenant}".encode() for name in names
    ]


def test_no_byte_of_a_forgotten_tenant_is_left_in_the_file(
    store: SqliteStore, tmp_path: Path
) -> None:
    store.corpora.commit("c", "", Change(added=(Chunk(id="1", digest="d"),)), now=NOW)
    lived(store, "acme", SECRET_WORDS)
    others = lived(store, "globex", ("Kumquat", "Ocarina", "Marimba"))
    path = tmp_path / "rag.db"
    other = SqliteStore(path)  # as another process that has the file open
    before = bytes_beside(path)
    assert len([trace for trace in traces("acme", SECRET_WORDS) if trace in before]) > 18
    forgotten = store.forget("tenant-acme")
    assert forgotten.entries == 7
    assert forgotten.size_bytes > 7 * 20_000
    after = bytes_beside(path)
    assert [trace for trace in traces("acme", SECRET_WORDS) if trace in after] == []
    assert all(trace in after for trace in (b"Kumquat", b"Marimba", b"tenant-globex"))
    for one in (store, other):
        assert one.fetch(*others[5].place) == others[5]
        assert not one.problems()
    other.close()


def test_tables_of_others_in_the_file_stay_as_they_are(store: SqliteStore, tmp_path: Path) -> None:
    lived(store, "acme", SECRET_WORDS)
    rows = [(1, "Zanzibar"), (7, "tenant-acme"), (9, None)]
    with closing(sqlite3.connect(tmp_path / "rag.db", isolation_level=None)) as foreign:
        foreign.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT)")
        foreign.executemany("INSERT INTO orders VALUES (?, ?)", rows)
        foreign.execute("DELETE FROM orders WHERE id = 1")
        store.clear("scope-acme")
        store.forget("tenant-acme")
        assert foreign.execute("SELECT * FROM orders").fetchall() == rows[1:]


def test_other_replicas_let_go_of_it(store: SqliteStore, tmp_path: Path) -> None:
    other = SqliteStore(tmp_path / "rag.db")
    entries = lived(other, "acme", SECRET_WORDS)
    assert other.fetch(*entries[5].place) == entries[5]
    store.forget("tenant-acme")
    assert other.fetch(*entries[5].place) is None
    assert not other.nearest(entries[5].place[0], unit(1, 0, 0), 3, asked="x", now=NOW)
    assert len(other._replica._near) == 0
    change = Change(added=(Chunk(id="1", digest="d", vector=as_bytes([1.0, 0.3, 5.0])),))
    assert other.corpora.commit("c", "", change, now=NOW).stale == 0
    assert not len(other.corpora._loaded["c"].reaches)
    other.close()


def test_what_others_noted_meanwhile_is_not_written_after(
    store: SqliteStore, tmp_path: Path
) -> None:
    other = SqliteStore(tmp_path / "rag.db")
    entries = lived(other, "acme", SECRET_WORDS)
    other._uses.serve(
        (entries[5].id, *entries[5].place, "asked-acme-late", entries[5].identity.tenant)
    )
    other.use(entries[5])
    store.forget("tenant-acme")
    other.write_uses()
    other.close()
    assert b"acme" not in bytes_beside(tmp_path / "rag.db")


def test_a_file_that_could_not_be_rewritten_says_so_until_it_is(
    store: SqliteStore, tmp_path: Path
) -> None:
    lived(store, "acme", SECRET_WORDS)
    reader = SqliteStore(tmp_path / "rag.db", timeout_s=0.0)
    reading = reader._file.reader
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM stampcache_entries").fetchone()
    store._file.writer.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(StoreError, match="run this again"):
        store.forget("tenant-acme")
    assert store.stats().entries == 0, "nothing of it is served in any case"
    assert store.problems() == [
        "A tenant was forgotten, but its bytes may still be in the file: forget it again."
    ]
    reading.execute("ROLLBACK")
    reader.close()
    assert store.forget("tenant-acme") == Forgotten()
    assert not store.problems()
    assert b"Zanzibar" not in bytes_beside(tmp_path / "rag.db")


_FORGETS = """
import sys
from stampcache import open_cache
with open_cache(sys.argv[1]) as cache:
    print(cache.forget(sys.argv[2]).entries)
"""


def test_another_process_forgets_and_this_one_follows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rag.db"
    with open_cache(url) as cache:
        for tenant in ("acme", "globex"):
            cache.update(asked(tenant), f"{tenant} Zanzibar")
            assert isinstance(cache.lookup(asked(tenant)), Hit)
        late = cache.lookup(asked("acme", "Who signs?"))
        done = subprocess.run(
            [sys.executable, "-c", _FORGETS, url, "acme"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "1\n"
        assert isinstance(cache.lookup(asked("acme")), Miss)
        assert isinstance(cache.lookup(asked("globex")), Hit)
        assert isinstance(cache.update(asked("acme", "Who signs?"), "X", outcome=late), Refused)
        assert holders(cache, b"acme Zanzibar") == []
    assert b"acme Zanzibar" not in bytes_beside(tmp_path / "rag.db")


def test_words_of_a_tenant_that_another_process_forgot_are_let_go_of(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rag.db"
    ends = ("staff: how many days?", "staff: how many days, please?")
    angles = {f"{word} {end}": 1.0 for word in ("Zanzibar", "Tango") for end in ends}
    with open_cache(url, embedder=AngleEmbedder(angles), calibration=0.9, sample=1.0) as cache:
        for tenant, word in (("quagga", "Zanzibar"), ("globex", "Tango")):
            request = asked(tenant, f"{word} {ends[0]}")
            cache.update(request, word, outcome=cache.lookup(request))
            assert isinstance(cache.lookup(asked(tenant, f"{word} {ends[1]}")), Hit)
        kept = cache.core.intake, cache.core.learning.noticed, cache.core.store
        marks = (b"Zanzibar", b"quagga")
        assert all(holders(one, *marks) for one in kept)
        subprocess.run(
            [sys.executable, "-c", _FORGETS, url, "quagga"], capture_output=True, check=True
        )
        assert isinstance(cache.lookup(asked("globex", f"Tango {ends[0]}")), Hit)
        assert [holders(one, *marks) for one in kept] == [[], [], []]


def test_a_lookup_that_began_before_a_tenant_was_forgotten_leaves_nothing() -> None:
    angles = {LEAVE: 0.0, "How many leave days?": 5.0}
    forgotten: list[bool] = []

    class Verifier:
        """While it compares, the tenant is forgotten."""

        name, threshold = "v", 0.5

        def score(self, asked: str, stored: str) -> float:
            if not forgotten:
                forgotten.append(True)
                cache.forget("acme")
            return 0.9

    cache = open_cache(
        "memory://",
        embedder=AngleEmbedder(angles),
        calibration=0.9,
        verifier=Verifier(),
        sample=1.0,
    )
    cache.update(asked("acme"), "30", outcome=cache.lookup(asked("acme")))
    cache.core.learning.noticed.take()
    assert isinstance(cache.lookup(asked("acme", "How many leave days?")), Hit), "it began before"
    assert forgotten
    assert len(cache.core.learning.noticed) == 0
    assert cache.core.intake._comparing.profile_stored.cache_info().currsize == 0
    cache.close()


def test_what_is_held_when_somebody_was_forgotten_is_dropped_at_the_end() -> None:
    dropped: list[str] = []
    holding = Holding(lambda: dropped.append("dropped"))
    holding.let_go()
    assert dropped == ["dropped"]
    with holding:
        holding.let_go()
        assert dropped == ["dropped"], "whoever holds it still uses it"
    assert dropped == ["dropped", "dropped"]
    with holding:
        pass
    assert dropped == ["dropped", "dropped"]


def test_what_is_counted_as_forgotten_is_what_was_kept(store: SqliteStore) -> None:
    entry = of_tenant("acme", 1, "Zanzibar")
    store.put(entry, unit(1, 0, 0), store.sequence())
    assert store.forget("tenant-acme").size_bytes == len(Codec().encode(entry)) + 3 * 4


def test_the_answer_of_a_made_tenant_counts_its_payload() -> None:
    with open_cache("memory://") as cache:
        cache.update(asked("acme"), Answer(text="a", payload=b"x" * 5_000))
        assert cache.forget("acme").size_bytes > 5_000
