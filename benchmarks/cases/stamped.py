"""What the rigs of stampcache have in common: a cache in memory, a clock that is set, an embedder."""

import contextlib
from typing import Any, Self

import stampcache
from benchmarks.cases.meaning import WatchedEmbedder
from benchmarks.cases.rig import Rig
from benchmarks.cases.words import Call
from stampcache import Cache, open_cache
from stampcache.testing import FakeClock

THRESHOLD = 0.9


def around(call: Call) -> contextlib.AbstractContextManager[object]:
    """Return the scope in which a call is made."""
    said: dict[str, Any] = {
        name: value
        for name in ("tenant", "namespace", "audience")
        if (value := getattr(call, name)) is not None
    }
    if not said and not call.controls:
        return contextlib.nullcontext()
    return stampcache.scope(**said, **call.controls)


class StampedRig(Rig):
    """A cache of stampcache at some seam."""

    by_meaning = True
    """Whether its cache has an embedder."""

    def __init__(self, *, store: object = "memory://", **options: Any) -> None:
        self._clock = FakeClock()
        self._embedder = WatchedEmbedder()
        if self.by_meaning:
            options = {"embedder": self._embedder, "calibration": THRESHOLD, **options}
        self._cache = open_cache(store, clock=self._clock, **options)  # type: ignore[arg-type]  # options of the case
        self._embedder.forget()  # what it was tried with

    def another(self, **options: Any) -> Self:
        """See `Rig.another`."""
        return type(self)(**options)

    @property
    def cache(self) -> Cache:
        """See `Rig.cache`."""
        return self._cache

    @property
    def embedder(self) -> WatchedEmbedder:
        """See `Rig.embedder`."""
        return self._embedder

    def spend(self, seconds: float) -> None:
        """See `Rig.spend`."""
        self._clock.advance(seconds)

    def clear(self, tenant: str | None = None, namespace: str | None = None) -> None:
        """See `Rig.clear`."""
        with around(Call(tenant=tenant, namespace=namespace)):
            self._cache.clear()

    def bounded(self, entries: int) -> Self:
        """See `Rig.bounded`."""
        return self.another(capacity=entries)

    @property
    def size(self) -> int:
        """See `Rig.size`."""
        return self._cache.core.store.stats().entries

    def close(self) -> None:
        """See `Rig.close`."""
        self._cache.close()
