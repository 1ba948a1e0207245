"""Watched corpora in one SQLite file: two processes on it, crashes, and what is read by an index."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec.structs import replace

from stampcache.corpora import Change, Committed, Intent
from stampcache.errors import StoreError
from stampcache.model import Selector
from stampcache.stores import sqlite_text
from stampcache.stores.reaches import Reaches
from stampcache.stores.selection import FORGOTTEN
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing.contract import NOW, in_threads, make_entry, unit
from stampcache.testing.samples_corpora import (
    ANY,
    CORPUS,
    FAR,
    A,
    B,
    C,
    chunk,
    citing,
    kept,
    put,
    reach,
    write,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    """Two stores on one file, as of two processes, with a watched corpus and an answer."""
    mine, theirs = SqliteStore(path), SqliteStore(path)
    write(mine, Change(emptied=True))
    write(mine, Change(added=(A, B, FAR)))
    put(mine, citing(A, B), reach(A, B))
    yield mine, theirs
    mine.close()
    theirs.close()


Pair = tuple[SqliteStore, SqliteStore]


def test_a_write_ends_what_another_process_stored(pair: Pair) -> None:
    mine, theirs = pair
    assert write(theirs, Change(added=(C,))) == Committed(stale=1)
    put(mine, citing(A, C, key="new"), reach(A, C))
    assert write(theirs, Change(added=(chunk("d", 12),))) == Committed(stale=1)
    assert kept(mine, "new").invalidated and kept(mine).invalidated
    assert write(mine, Change(removed=("d",))) == Committed(restored=1)
    assert write(mine, Change(removed=("c",))) == Committed(stale=1, restored=1)
    assert kept(theirs, "new").invalidated and not kept(theirs).invalidated


def while_scoring(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, do: object) -> None:
    """Do something just after a write was scored, before its transaction."""
    score, done = Reaches.touched, list[object]()

    def touched(self: object, *args: object) -> object:
        found = score(self, *args)  # type: ignore[arg-type]  # given as the test has it
        if not done:
            done.append(do)
            do()  # type: ignore[operator]  # a callable, by the caller
        return found

    monkeypatch.setattr(Reaches, "touched", touched)


def test_a_write_ends_what_was_stored_while_it_was_scored(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = pair
    late = citing(A, B, key="late")
    while_scoring(mine, monkeypatch, lambda: put(theirs, late, reach(A, B)))
    assert write(mine, Change(added=(C,))) == Committed(stale=2)
    assert kept(theirs, "late").invalidated


def test_a_write_is_scored_anew_after_another_one_that_came_between(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = pair
    while_scoring(mine, monkeypatch, lambda: write(theirs, Change(removed=("b",))))
    assert write(mine, Change(added=(replace(B, digest="new"),))) == Committed()
    assert kept(mine).invalidated
    assert write(mine, Change(added=(B,))) == Committed(restored=1)


def test_an_answer_that_went_while_a_write_was_scored_is_no_trouble(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = pair
    while_scoring(mine, monkeypatch, lambda: theirs.remove(citing(A, B)))
    assert write(mine, Change(added=(C,))) == Committed()
    assert write(mine, Change(removed=("c",))) == Committed()
    assert len(mine.corpora._loaded[CORPUS].reaches) == 0


def test_the_row_of_a_deleted_answer_says_nothing_of_the_next_in_it(pair: Pair) -> None:
    mine, theirs = pair
    write(mine, Change(added=(chunk("d", 89),)))  # now it is loaded
    theirs.remove(citing(A, B))
    theirs.put(make_entry("plain"), unit(1, 0), theirs.sequence())
    (row,) = mine._file.reader.execute("SELECT id FROM stampcache_entries").fetchone()
    assert row in mine.corpora._loaded[CORPUS].reaches.everything(), "SQLite uses rows again"
    assert write(mine, Change(added=(C,))) == Committed()
    theirs.remove(make_entry("plain"))
    put(theirs, citing(A, key="next"), reach(A, wanted=1))
    assert write(mine, Change(removed=("c", "far"))) == Committed()
    assert write(mine, Change(removed=("a",))) == Committed(stale=1)


def test_how_a_corpus_stands_is_seen_at_once_and_read_once(pair: Pair) -> None:
    mine, theirs = pair
    mine.corpora.standing(CORPUS)
    ran: list[str] = []
    mine._file.reader.set_trace_callback(ran.append)
    before = mine.corpora.standing(CORPUS)
    assert ran == ["PRAGMA data_version"]
    for store in (mine, theirs):
        store.corpora.begin(CORPUS, Intent(id=store.url, at=NOW))
        standing = mine.corpora.standing(CORPUS)
        assert standing is not None and standing.intents
        assert mine.corpora.standing(CORPUS) == mine.peek_standing(CORPUS) == standing
        write(store, Change(), intent=store.url)
        assert mine.corpora.standing(CORPUS) == before
    assert mine.peek_standing("unknown") is None


def test_a_standing_is_not_waited_for_by_who_may_not_wait(pair: Pair) -> None:
    mine, _ = pair
    with mine._file.reading:
        assert mine.peek_standing(CORPUS) is None
    assert mine.peek_standing(CORPUS) is not None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_writes_to_corpora_too(pair: Pair) -> None:
    mine, _ = pair
    with mine.corpora._scoring:  # as of a thread that does not live on in the child
        child = os.fork()
        if child == 0:
            try:
                seen = write(mine, Change(added=(C,))) == Committed(stale=1)
                os._exit(0 if seen else 1)
            except BaseException:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept(mine).invalidated
    assert write(mine, Change(removed=("c",))) == Committed(restored=1)


# -- what fails in the middle ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement", ["ADD_CHUNK", "LOG_CHANGE", "SUSPEND", "DIFFER", "HEARD", "RESOLVE", "REACHED"]
)
def test_a_commit_that_fails_changes_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    mine, theirs = pair
    plain = make_entry("plain", evidence=(), corpus=CORPUS)
    put(theirs, citing(A, key="any"), ANY)
    theirs.put(plain, None, theirs.sequence())
    mine.corpora.begin(CORPUS, Intent(id="1", at=NOW))
    before = theirs.corpora.standing(CORPUS), theirs.sequence(), theirs.corpora.chunks(CORPUS, None)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_text, statement, "no SQL")
        with pytest.raises(StoreError):
            write(mine, Change(added=(C,)), intent="1")
    after = theirs.corpora.standing(CORPUS), theirs.sequence(), theirs.corpora.chunks(CORPUS, None)
    assert after == before
    assert not any(kept(theirs, key).invalidated for key in ("k", "any", "plain"))
    assert write(mine, Change(added=(C,)), intent="1") == Committed(stale=2)
    assert all(kept(theirs, key).invalidated for key in ("k", "any", "plain"))


KILLED = """
    import os, signal, sys
    from stampcache.corpora import Change, Intent
    from stampcache.stores import sqlite_reached
    from stampcache.stores.sqlite import SqliteStore
    from stampcache.testing.samples_corpora import C, CORPUS, write
    store = SqliteStore(sys.argv[1])
    store.corpora.begin(CORPUS, Intent(id="1", at=1.0))
    def die(*_): os.kill(os.getpid(), signal.SIGKILL)
    name = {"before": "mark_beside", "between": "shift"}[sys.argv[2]]
    setattr(sqlite_reached, name, die)
    write(store, Change(added=(C,)), intent="1")
"""


@pytest.mark.parametrize("when", ["before", "between"])
def test_kill_9_in_a_commit_leaves_the_intent_and_nothing_else(pair: Pair, when: str) -> None:
    mine, _ = pair
    path = mine.url.removeprefix("sqlite:///")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(one for one in sys.path if one))
    script = [sys.executable, "-c", dedent(KILLED), path, when]
    died = subprocess.run(script, env=environment, check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    standing = mine.corpora.standing(CORPUS)
    assert standing is not None and [one.id for one in standing.intents] == ["1"]
    assert mine.corpora.chunks(CORPUS, ["c"]) == {}
    assert not kept(mine).invalidated
    assert write(mine, Change(added=(C,)), intent="1") == Committed(stale=1)
    assert not mine.problems()


# -- the log --------------------------------------------------------------------------------------------


def test_writes_trim_the_log_and_what_it_forgot_refuses_late_fills(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stampcache.stores.sqlite._LOG_KEPT", 5)
    monkeypatch.setattr("stampcache.stores.sqlite._TRIM_EVERY", 1)
    store = SqliteStore(path)
    write(store, Change(emptied=True))
    fence = store.sequence()
    for number in range(9):
        write(store, Change(added=(chunk(str(number), 89),)))
    (rows,) = store._file.reader.execute("SELECT count(*) FROM stampcache_log").fetchone()
    assert rows == 5
    late = store.put(citing(A, B), None, fence, reach(A, B))
    assert (late.stored, late.change) == (False, FORGOTTEN)
    assert store.put(citing(A, B), None, store.sequence() - 5, reach(A, B)).stored
    assert not store.put(citing(A, B), None, store.sequence() - 5, ANY).stored
    store.close()


def test_a_selector_and_a_trace_are_told_apart_in_the_log(pair: Pair) -> None:
    mine, _ = pair
    fence = mine.sequence()
    every = Selector(corpus="x", source="y", chunk="z", entry="e", scope="s")
    mine.invalidate(every)
    many = tuple(chunk(f"{at}", 89, source=f"{at}.md") for at in range(40))
    write(mine, Change(added=many))
    write(mine, Change(removed=tuple(one.id for one in many)))
    assert mine.put(citing(A, B, key="late"), None, fence, reach(A, B)).stored
    plain = citing(many[7], key="plain")
    assert not mine.put(plain, None, fence).stored


# -- by an index ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (sqlite_text.REACHES_SINCE, ("c", 0, 9)),
        (sqlite_text.REACHED, (1,)),
        (sqlite_text.CHUNKS_SINCE, ("c", 0)),
        (sqlite_text.CHUNK, ("c", "1")),
        (sqlite_text.OTHER_OF_VECTOR, ("c", b"v", "d")),
        (sqlite_text.STANDING, ("c",)),
        (sqlite_text.SAMPLE_AFTER, ("c", "m", "", 9)),
    ],
)
def test_what_each_write_or_fill_asks_is_found_by_an_index(
    path: Path, statement: str, values: tuple[object, ...]
) -> None:
    store = SqliteStore(path)
    steps = [
        str(row[3]) for row in store._file.reader.execute(f"EXPLAIN QUERY PLAN {statement}", values)
    ]
    assert not [step for step in steps if step.startswith("SCAN")]
    store.close()


@pytest.mark.parametrize("suspended", [False, True])
def test_what_a_write_concerns_beside_its_reach_is_found_by_an_index(
    path: Path, suspended: bool
) -> None:
    store = SqliteStore(path)
    for selector in (Selector(corpus="c", source="s"), Selector(corpus="c", chunk="1")):
        query = sqlite_text.selecting(selector, suspended=suspended, beside="c")
        assert query is not None
        plan = store._file.reader.execute(f"EXPLAIN QUERY PLAN {query.statement}", query.values)
        assert not [row for row in plan if str(row[3]).startswith("SCAN")]
    store.close()


# -- threads ---------------------------------------------------------------------------------------------


def test_writers_fillers_and_readers_do_not_wait_for_each_other_for_ever(pair: Pair) -> None:
    mine, theirs = pair
    wrong: list[str] = []

    def work(worker: int) -> None:
        store = (mine, theirs)[worker % 2]
        for at in range(12):
            match worker % 4:
                case 0:
                    intent = f"{worker}.{at}"
                    store.corpora.begin(CORPUS, Intent(id=intent, at=NOW))
                    write(store, Change(added=(C,)), intent=intent)
                case 1:
                    write(store, Change(removed=("c",)))
                case 2:
                    put(store, citing(A, B, key=f"{worker}.{at}"), reach(A, B))
                    store.corpora.sample(CORPUS, "", 3, after="")
                case _:
                    entry = store.fetch("p", "k")
                    standing = store.corpora.standing(CORPUS)
                    if entry is None or standing is None or standing.problem:
                        wrong.append("lost")

    in_threads(work, count=8)
    assert not wrong
    write(mine, Change(added=(C,)))
    entries = [
        store.fetch("p", f"{worker}.{at}")
        for store in pair
        for worker in (2, 6)
        for at in range(12)
    ]
    assert all(entry is None or entry.invalidated for entry in entries)
    assert kept(mine).invalidated and kept(theirs).invalidated
    standing = mine.corpora.standing(CORPUS)
    assert standing is not None and not standing.intents
    assert threading.active_count() < 8
