"""An application over documents that change, which knows what it may be served."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from stampcache import Cache, Evidence, Hit, Request, Settings, StoreError, open_cache
from stampcache.model import Level
from stampcache.stores.redis.store import RedisStore

CORPUS = "handbook"
SETTINGS = Settings(model="m", corpus=CORPUS)
SECRET = "the same in every process, 32 bytes"


BOUND_S = 1.0
"""How late a process may hear of a change of another one, where it is not strict."""


def opened(
    url: str,
    *,
    strict: bool = False,
    near_capacity: int | None = None,
    secret: str = SECRET,
    **options: Any,
) -> Cache:
    """Open a cache as the processes of one application do."""
    if strict:
        url += f"{'&' if '?' in url else '?'}strict=1"
    if near_capacity is None:
        return open_cache(url, secret=secret, **options)
    store = RedisStore(url, near_capacity=near_capacity)
    return open_cache(store, secret=secret, **options)


def eventually(what: Callable[[], object], within_s: float = 10.0) -> bool:
    """Ask until it is so; tell whether it was."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False


class Told(NamedTuple):
    """A version that was told to a cache: by whom, and when that was acknowledged."""

    version: int
    by: object
    at: float


class Documents:
    """Sources in versions, shared by the applications of a test: what is written, and what was told."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.told: dict[str, list[Told]] = {}

    def write(self, source: str) -> None:
        """Write the next version."""
        self.written[source] = self.written.get(source, 0) + 1

    def least(self, source: str, by: object, heard_s: float) -> int:
        """Return the oldest version that may be served to one who has heard of others until then."""
        told = self.told.get(source, [])
        return max((one.version for one in told if one.by is by or one.at <= heard_s), default=0)


class App:
    """Answers by a cache what a source says, and checks that nothing is served that was told to be old.

    ``bound_s`` is how late it may hear of what others told.
    """

    def __init__(self, cache: Cache, documents: Documents, *, bound_s: float = BOUND_S) -> None:
        self.cache = cache
        self.documents = documents
        self.bound_s = bound_s
        self.took_s: list[float] = []

    def request(self, source: str) -> Request:
        """Return the one question about a source."""
        return Request(question=f"What is in {source}?", settings=SETTINGS)

    def ask(self, source: str, meanwhile: Callable[[], object] = lambda: None) -> Level | None:
        """Ask, and check the answer; return at which level it was a hit, if it was one.

        ``meanwhile`` runs while the answer is being made.
        """
        began = time.monotonic()
        outcome = self.cache.lookup(self.request(source))
        self.took_s.append(time.monotonic() - began)
        if isinstance(outcome, Hit):
            named, _, served = outcome.answer.text.rpartition(" says version ")
            assert named == source
            least = self.documents.least(source, self, began - self.bound_s)
            assert int(served) >= least, f"version {served} of {source} after {least} was told"
            return outcome.level
        version = self.documents.written.get(source, 0)
        evidence = [Evidence(corpus=CORPUS, source=source, text=f"version {version}")]
        meanwhile()
        began = time.monotonic()
        text = f"{source} says version {version}"
        self.cache.update(self.request(source), text, outcome=outcome, evidence=evidence)
        self.took_s.append(time.monotonic() - began)
        return None

    def change(self, source: str) -> bool:
        """Write the next version and tell the cache; return whether the cache took note."""
        self.documents.write(source)
        version = self.documents.written[source]
        try:
            self.cache.invalidate(corpus=CORPUS, source=source)
        except StoreError:
            return False
        told = Told(version, self, time.monotonic())
        self.documents.told.setdefault(source, []).append(told)
        return True

    def hits(self, source: str) -> bool:
        """Tell whether it is a hit now."""
        return self.ask(source) is not None

    def counted(self, start: str) -> int:
        """Return how often this process counted something whose name begins so."""
        counters = self.cache.core.counters.of(None)  # stats asks the store, too
        return sum(count for name, count in counters.items() if name.startswith(start))


def recovered(*apps: App) -> None:
    """Wait until the store of each answers again, by itself."""
    for app in apps:
        assert eventually(lambda app=app: app.change("probe")), "the store never came back"
