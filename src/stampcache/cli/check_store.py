"""Is the store there, sound and writable? Nothing is created that does not exist yet."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stampcache.cli.check_corpora import corpus_findings
from stampcache.cli.check_promises import promise_findings
from stampcache.cli.check_result import CheckResult, fail, failed, ok, warn
from stampcache.cli.check_stamps import stamp_findings
from stampcache.cli.check_trouble import trouble_findings
from stampcache.cli.screen import size
from stampcache.cli.target import is_there, keys_in_environment
from stampcache.errors import StampCacheError, StoreError
from stampcache.ports import Store
from stampcache.stores.sqlite_survey import SqliteSurvey, StampCount, survey
from stampcache.stores.urls import is_redis, open_store, redis_holds, sqlite_path

_LITTLE_SPACE = 256 * 2**20
_NO_SPACE = 16 * 2**20


class StoreReport(Struct, frozen=True):
    """What was found out about a store, and what it knows about embedders and stamps."""

    findings: Sequence[CheckResult]
    stamps: Sequence[StampCount] = ()
    dimensions: Mapping[str, int] = {}


def examine_store(url: str, *, capacity: int) -> StoreReport:
    """Check a store; each of its problems is a finding, none is an error."""
    path = sqlite_path(url)
    if is_redis(url):
        return StoreReport(list(_server(url, capacity)))
    if path is None:
        return StoreReport(list(_opened(url, capacity)))
    try:
        if not is_there(path):
            mend = "check the path; an application that opens this URL will create the file"
            found = f"there is no file {path}, and none was created"
            return StoreReport([fail("store", found, mend)])
        if path.is_dir():
            return StoreReport(list(_opened(url, capacity)))
        with survey(path) as seen:
            return _examine_file(url, seen, capacity)
    except StampCacheError as error:
        return StoreReport([failed("store", error)])


def _examine_file(url: str, seen: SqliteSurvey, capacity: int) -> StoreReport:
    if not seen.holds_cache:
        mend = "check the path; an application that opens this URL will add its tables to the file"
        found = f"{seen.path} is an SQLite file that holds no cache; it was left as it is"
        return StoreReport([warn("store", found, mend)])
    stamps = seen.stamps()
    findings = [
        *_opened(url, capacity),
        *_file_findings(seen),
        *stamp_findings(stamps),
    ]
    return StoreReport(findings, stamps, seen.dimensions)


def _server(url: str, capacity: int) -> Iterator[CheckResult]:
    """Look whether a server answers and has a cache; only then open it."""
    try:
        there = redis_holds(url, "cache")
    except StampCacheError as error:
        yield failed("store", error)
        return
    if there:
        yield from _opened(url, capacity)
        return
    mend = "check prefix= and the database; an application that opens this URL will make one"
    yield warn("store", "the server answers, but holds no cache of this name", mend)


def _opened(url: str, capacity: int) -> Iterator[CheckResult]:
    """Open the store, which commits a write, and look at it from inside."""
    try:
        store = open_store(url, capacity=capacity, encryption_key=keys_in_environment())
    except StampCacheError as error:
        yield failed("store", error)
        return
    yield ok("store", f"{url} opens, and a write to it was committed")
    try:
        yield from _integrity(store)
        yield _entries(store, capacity)
        yield from corpus_findings(store)
        yield from promise_findings(store)
        yield from trouble_findings(store.tallies())
    except StoreError as error:
        yield failed("integrity", error)
    finally:
        store.close()


def _integrity(store: Store) -> Iterator[CheckResult]:
    problems = store.problems()
    for problem in problems:
        found, _, mend = problem.partition(". " if ". " in problem else "; ")
        yield fail("integrity", found, mend.rstrip("."))
    if not problems:
        yield ok("integrity", "nothing is wrong with what the store keeps")


def _entries(store: Store, capacity: int) -> CheckResult:
    sizes = store.stats()
    found = (
        f"{sizes.entries:,} entries, {sizes.vectors:,} with a vector, of a capacity of "
        f"{capacity:,}; answers take {size(sizes.answer_bytes)}"
    )
    if sizes.invalidated:
        found += f"; {sizes.invalidated:,} invalidated besides, first to be evicted"
    if sizes.entries + sizes.invalidated > capacity:
        mend = "say --capacity as the application does; it would evict down to this number"
        return warn("entries", found, mend)
    return ok("entries", found)


def _file_findings(seen: SqliteSurvey) -> Iterator[CheckResult]:
    yield ok("schema", f"version {seen.schema}")
    mode = seen.journal_mode
    if mode == "wal":
        yield ok("journal", "write-ahead log: readers do not wait for writers")
    else:
        mend = "put the file on a local disk; SQLite has no write-ahead log on network drives"
        yield warn("journal", f"mode {mode} instead of a write-ahead log", mend)
    yield _disk(seen.path, seen.size_bytes)


def _disk(path: Path, file_bytes: int) -> CheckResult:
    free = shutil.disk_usage(path.resolve().parent).free
    found = f"the file takes {size(file_bytes)}, {size(free)} are free beside it"
    if free < _NO_SPACE:
        return fail("disk", found, "free space: answers are no longer stored once it is full")
    if free < _LITTLE_SPACE:
        return warn("disk", found, "free space soon, or lower capacity=")
    return ok("disk", found)
