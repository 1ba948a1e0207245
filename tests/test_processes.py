"""Several processes on one SQLite file: what was acknowledged stays, what changed is seen at once."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec.structs import replace

from stampcache import Evidence, Hit, Miss, Reason, Refused, Request, open_cache
from stampcache.model import Selector
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing.contract import NOW, make_entry, unit

WRITER = """
    import sys
    from stampcache import Answer, Request, open_cache
    cache = open_cache(f"sqlite:///{sys.argv[1]}")
    at = 0
    while True:
        request = Request(question=f"question {at}")
        stored = cache.update(request, Answer(text=f"answer {at}" + "x" * 5000))
        print(at, flush=True)
        at += 1
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    return subprocess.Popen(
        [sys.executable, "-c", dedent(code), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def succeed(code: str, *arguments: str) -> str:
    with python(code, *arguments) as process:
        printed, _ = process.communicate()
    assert process.returncode == 0
    return printed.strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@pytest.mark.parametrize("acknowledged", [1, 7, 40])
def test_kill_9_during_writes_loses_nothing_acknowledged(path: Path, acknowledged: int) -> None:
    with python(WRITER, str(path)) as writer:
        assert writer.stdout is not None
        last = -1
        for line in writer.stdout:
            last = int(line)
            if last + 1 >= acknowledged:
                writer.send_signal(signal.SIGKILL)
                break
        last = max([last, *map(int, writer.stdout.read().split())])
    with open_cache(f"sqlite:///{path}") as cache:
        for at in range(last + 1):
            outcome = cache.lookup(Request(question=f"question {at}"))
            assert isinstance(outcome, Hit)
            assert outcome.answer.text.startswith(f"answer {at}x")
        assert not cache.core.store.problems()


def test_another_process_sees_a_put_and_its_invalidation_at_once(path: Path) -> None:
    request = Request(question="who may take leave?")
    put = """
        import sys
        from stampcache import Answer, Evidence, Request, open_cache
        with open_cache(f"sqlite:///{sys.argv[1]}") as cache:
            evidence = [Evidence(corpus="handbook", source="leave.md", text="all")]
            cache.update(Request(question="who may take leave?"), "all", evidence=evidence)
    """
    invalidate = """
        import sys
        from stampcache import open_cache
        with open_cache(f"sqlite:///{sys.argv[1]}") as cache:
            print(cache.invalidate(corpus="handbook", source="leave.md"))
    """
    with open_cache(f"sqlite:///{path}") as cache:
        assert isinstance(cache.lookup(request), Miss)
        succeed(put, str(path))
        hit = cache.lookup(request)
        assert isinstance(hit, Hit)
        place = hit.entry.place
        assert cache.core.store.fetch(*place) == hit.entry, "it is in the near-cache now"
        assert succeed(invalidate, str(path)) == "1"
        marked = cache.core.store.fetch(*place)
        assert marked == replace(
            hit.entry, invalidated="source 'leave.md' of corpus 'handbook' changed"
        )
        assert not isinstance(cache.lookup(request), Hit)


def test_another_process_sees_renewal_and_purging_at_once(path: Path) -> None:
    renew = """
        import sys
        from stampcache.stores.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        store.renew(store.fetch("p", "k"), float(sys.argv[2]))
        store.close()
    """
    purge = """
        import sys
        from stampcache.stores.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        print(store.purge(float(sys.argv[2])))
        store.close()
    """
    store, entry = SqliteStore(path), make_entry("k", expires_at=NOW)
    store.put(entry, unit(1, 0), 0)
    assert store.fetch("p", "k") == entry
    assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    succeed(renew, str(path), str(NOW + 9.5))
    assert store.fetch("p", "k") == replace(entry, expires_at=NOW + 9.5)
    assert store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    assert succeed(purge, str(path), str(NOW + 9)) == "0"
    assert succeed(purge, str(path), str(NOW + 9.5)) == "1"
    assert store.fetch("p", "k") is None
    assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    store.close()


def test_a_fill_that_began_before_another_process_invalidated_is_refused(path: Path) -> None:
    request = Request(question="q")
    evidence = [Evidence(corpus="c", source="s", text="old")]
    invalidate = """
        import sys
        from stampcache import open_cache
        with open_cache(f"sqlite:///{sys.argv[1]}") as cache:
            cache.invalidate(corpus="c", source="s")
    """
    with open_cache(f"sqlite:///{path}") as cache:
        outcome = cache.lookup(request)
        succeed(invalidate, str(path))
        update = cache.update(request, "made from old", outcome=outcome, evidence=evidence)
        assert isinstance(update, Refused)
        assert update.reason is Reason.FENCED
        again = cache.lookup(request)
        assert isinstance(again, Miss)
        assert not isinstance(cache.update(request, "x", outcome=again, evidence=evidence), Refused)


def test_a_replica_follows_vectors_of_other_writers(path: Path) -> None:
    mine, theirs = SqliteStore(path), SqliteStore(path)
    theirs.put(make_entry("a"), unit(1, 0), 0)
    assert len(mine.nearest("p", unit(1, 0), 5, asked="x", now=NOW)) == 1
    theirs.put(make_entry("b", evidence=()), unit(1, 0.01), 0)
    theirs.remove(make_entry("a"))
    found = mine.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    assert [one.entry.identity.key for one in found] == ["b"]
    assert theirs.invalidate(Selector(source="any")) == 1
    assert not mine.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    mine.close()
    theirs.close()


def test_a_replica_that_lost_the_log_starts_anew(path: Path) -> None:
    mine, theirs = SqliteStore(path), SqliteStore(path)
    mine.put(make_entry("a", text="old"), unit(1, 0), 0)
    assert mine.fetch("p", "a") is not None
    assert mine.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
    theirs.put(make_entry("a", text="new", entry_id="2"), unit(0, 1), theirs.sequence())
    with theirs._file.transaction() as writer:  # as trimming does after 20,000 changes
        writer.execute("UPDATE stampcache_counts SET value = 9 WHERE name = 'log_floor'")
        writer.execute("UPDATE sqlite_sequence SET seq = 10 WHERE name = 'stampcache_log'")
        writer.execute("DELETE FROM stampcache_log")
    entry = mine.fetch("p", "a")
    assert entry is not None and entry.answer.text == "new"
    late = mine.put(make_entry("late"), None, fence=3)
    assert not late.stored
    assert late.change == "the change log no longer reaches back to the lookup"
    mine.close()
    theirs.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_opens_its_own_connections(path: Path) -> None:
    cache = open_cache(f"sqlite:///{path}")
    cache.update(Request(question="from the parent"), "p")
    child = os.fork()
    if child == 0:
        try:
            seen = isinstance(cache.lookup(Request(question="from the parent")), Hit)
            cache.update(Request(question="from the child"), "c")
            os._exit(0 if seen else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(cache.lookup(Request(question="from the child")), Hit)
    assert isinstance(cache.lookup(Request(question="from the parent")), Hit)
    cache.close()


MANY = """
    import sys, threading
    from stampcache import Answer, Hit, Request, open_cache
    cache = open_cache(f"sqlite:///{sys.argv[1]}", capacity=30)
    wrong = []
    def work(number):
        for at in range(25):
            request = Request(question=f"question {at % 10}", model=f"model {number % 3}")
            outcome = cache.lookup(request)
            expected = f"{at % 10} by {number % 3}"
            if isinstance(outcome, Hit):
                if outcome.answer.text != expected:
                    wrong.append(outcome)
            else:
                cache.update(request, Answer(text=expected), outcome=outcome)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    counters = cache.stats(everything=True).counters
    print(len(wrong), sum(n for name, n in counters.items() if name.startswith("error.")))
    cache.close()
"""


def test_processes_of_threads_write_the_same_keys_without_error(path: Path) -> None:
    open_cache(f"sqlite:///{path}").close()
    workers = [python(MANY, str(path)) for _ in range(4)]
    for worker in workers:
        with worker:
            assert worker.communicate()[0].split() == ["0", "0"]
            assert worker.returncode == 0
    store = SqliteStore(path)
    assert store.stats().entries == 30
    assert not store.problems()
    store.close()


def test_a_write_that_finds_the_file_locked_is_refused_and_counted(path: Path) -> None:
    with open_cache(SqliteStore(path, timeout_s=0.05)) as cache:
        request = Request(question="q")
        outcome = cache.lookup(request)
        other = SqliteStore(path)
        with other._file.transaction():
            assert isinstance(cache.lookup(request), Miss)
            update = cache.update(request, "a", outcome=outcome)
        assert isinstance(update, Refused)
        assert update.reason is Reason.STORE_ERROR
        assert "holds it" in update.detail
        assert cache.stats(everything=True).counters["error.store_error"] == 1
        assert not isinstance(cache.update(request, "a", outcome=outcome), Refused)
        other.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_parent_counted_its_forked_child_does_not_save_again(path: Path) -> None:
    cache = open_cache(f"sqlite:///{path}")
    for number in range(3):
        cache.lookup(Request(question=f"q{number}"))
    child = os.fork()
    if child == 0:
        cache.lookup(Request(question="q3"))
        cache.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.core.store.tallies()["miss.not_found"] == 1
    cache.close()
    with open_cache(f"sqlite:///{path}") as again:
        assert again.core.store.tallies()["miss.not_found"] == 4
