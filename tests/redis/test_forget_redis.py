"""A tenant that is forgotten is in no process that runs, and nowhere in the server nor in its files."""

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from stampcache import Cache, Hit, Miss, Request, Scope
from stampcache.corpora import Change, Chunk
from stampcache.journal import Verdict
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.samples import NOW
from tests.reachable import holders
from tests.redis.apps import eventually
from tests.redis.remembering import live, marks_of, remembering
from tests.redis.servers import Server
from tests.redis.workers import workers
from tests.test_forget import SECRET_WORDS, lived, traces

WORD = "Zanzi" + "bar"
TENANT = "quag" + "gas"
VERDICT = Verdict(entry_id="", question=SECRET_WORDS[0], fresh=True, reason=SECRET_WORDS[2], at=NOW)
OTHER = Request(question="Tango staff: how many days of leave?", scope=Scope(tenant="globex"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that writes all it has to disk, as it is."""
    settings = {"rdbcompression": "no", "appendonly": "yes", "aof-use-rdb-preamble": "no"}
    with Server(settings=settings) as one:
        yield one


def traces_in(server: Server, *marks: bytes) -> list[str]:
    """Return the files of a server that have one of these marks in them, after all are written anew."""
    server.cli("SAVE")
    server.cli("BGREWRITEAOF")
    assert eventually(
        lambda: (
            server.info("aof_rewrite_in_progress") + server.info("aof_rewrite_scheduled") == "00"
        )
    )
    files = [one for one in server.folder.rglob("*") if one.suffix in (".rdb", ".aof")]
    assert len(files) >= 2
    return [one.name for one in files if any(mark in one.read_bytes() for mark in marks)]


def look(cache: Cache) -> None:
    assert isinstance(cache.lookup(OTHER), Miss | Hit)


def fill(cache: Cache) -> None:
    cache.update(OTHER, "Tango: thirty")


def look_in_a_task(cache: Cache) -> None:
    asyncio.run(cache.aio.lookup(OTHER))


def make(cache: Cache) -> None:
    cache.get_or_create(OTHER, lambda: "Tango: thirty")


@pytest.mark.parametrize("verb", [look, fill, look_in_a_task, make])
def test_what_another_process_kept_goes_with_the_next_verb(
    server: Server, verb: Callable[[Cache], None]
) -> None:
    url = server.socket_url + "?timeout_s=5&slow_timeout_s=60&strict=1"
    marks = marks_of(WORD, TENANT)
    with remembering(url) as one, remembering(url) as two:
        live(one, "globex", "Tango")
        for cache in (one, two):
            live(cache, TENANT, WORD)
        for cache in (one, two):
            assert holders(cache, WORD.encode()), "a walk that finds nothing would prove nothing"
        assert len(traces_in(server, WORD.encode())) >= 2
        assert one.forget(TENANT).entries == 2
        assert holders(two, WORD.encode()), "it has not heard of it"
        gc.collect()
        assert holders(one, *marks) == []
        verb(two)
        gc.collect()
        assert holders(two, *marks) == []
        assert traces_in(server, *marks) == []
    assert traces_in(server, *marks) == [], "nor did they write what they had noted"


def test_another_cache_on_the_same_store_lets_go_too(server: Server) -> None:
    with remembering(server.socket_url + "?timeout_s=5") as one:
        two = Cache(one.core.store, secret="the same in every process, 32 bytes")
        asked = Request(question=f"{WORD}?", scope=Scope(tenant=TENANT))
        two.update(asked, f"{WORD}: thirty", outcome=two.lookup(asked))
        assert holders(two.core.intake, WORD.encode(), TENANT.encode())
        one.forget(TENANT)
        assert holders(two, *marks_of(WORD, TENANT)) == []


def test_what_the_first_lookup_of_a_process_finds_is_noticed(server: Server) -> None:
    url = server.socket_url + "?timeout_s=5"
    with remembering(url) as one:
        live(one, "globex", "Tango")
    with remembering(url) as later:
        asked = Request(question="Tango staff: how many leave days?", scope=Scope(tenant="globex"))
        assert isinstance(later.lookup(asked), Hit)
        assert len(later.core.learning.noticed) == 1


BESIDE = """
    import gc
    from stampcache import Request, Scope
    from tests.reachable import holders
    from tests.redis.remembering import live, marks_of, remembering

    url, tenant, word = arguments
    arguments = None
    with remembering(url) as cache:
        live(cache, tenant, word)
        tell(len(holders(cache, word.encode())))
        hear()
        cache.lookup(Request(question="Tango?", scope=Scope(tenant="globex")))
        gc.collect()
        tell(list(holders(cache, *marks_of(word, tenant))))
"""


def test_a_process_that_runs_lets_go_of_it(server: Server) -> None:
    url = server.socket_url + "?timeout_s=5&slow_timeout_s=60&strict=1"
    with workers(2, BESIDE, url, TENANT, WORD) as started, remembering(url) as cache:
        assert all(worker.hear() > 0 for worker in started)
        assert cache.forget(TENANT).entries == 2
        for worker in started:
            worker.tell()
        assert [worker.hear() for worker in started] == [[], []]
        assert all(worker.rest() == [] for worker in started)
    assert traces_in(server, *marks_of(WORD, TENANT)) == []


def test_no_byte_of_what_a_store_kept_of_it_is_left(server: Server) -> None:
    store, other = (RedisStore(server.socket_url + "?timeout_s=5") for _ in range(2))
    store.corpora.commit("c", "", Change(added=(Chunk(id="1", digest="d"),)), now=NOW)
    entries = lived(store, "acme", SECRET_WORDS)
    lived(store, "globex", ("Kumquat", "Ocarina", "Marimba"))
    marks = traces("acme", SECRET_WORDS)
    assert len([mark for mark in marks if traces_in(server, mark)]) > 15
    other.fetch(*entries[5].place)
    other.touch(entries[5], entries[5].identity.key)
    other.journal.judged(replace(VERDICT, entry_id=entries[5].id, tenant="tenant-acme"))
    forgotten = store.forget("tenant-acme")
    assert forgotten.entries == 7
    assert forgotten.size_bytes > 7 * 20_000
    other.journal.judged(replace(VERDICT, entry_id=entries[5].id, tenant="tenant-acme"))
    other.close()
    assert [mark for mark in marks if traces_in(server, mark)] == []
    assert all(traces_in(server, mark) for mark in (b"Kumquat", b"Marimba", b"tenant-globex"))
    store.close()
