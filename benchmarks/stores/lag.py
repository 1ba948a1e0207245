"""How long after an acknowledged change another process still serves the old answer.

One process announces a change of a document; three others look the answer up again and again from their
near-caches. Their lag is from the acknowledgement to the beginning of the last lookup that was still
served the old answer; ``late`` counts those that were served it at all after the acknowledgement, which
the default mode may be for as long as its bound, and the strict mode must never be.
"""

import random
import time
from collections.abc import Sequence

from benchmarks.stores.timing import Row, percentile
from tests.redis.workers import Worker, workers

READERS = 3

_READER = """
    import time
    from stampcache import Hit
    from tests.redis.apps import App, Documents, opened

    url, strict = arguments
    cache = opened(url, strict=strict == "strict")
    app = App(cache, Documents())
    tell("ready")
    while (source := hear()) is not None:
        request = app.request(source)
        until = time.monotonic() + 10
        while not isinstance(cache.lookup(request), Hit):
            assert time.monotonic() < until
        tell("warm")
        last_old, looks = 0, 0
        while True:
            began = time.monotonic_ns()
            if not isinstance(cache.lookup(request), Hit):
                break
            last_old, looks = began, looks + 1
            time.sleep(0.0002)
        tell([last_old, looks])
"""

_WRITER = """
    import time
    from tests.redis.apps import App, Documents, opened

    app = App(opened(arguments[0]), Documents())
    tell("ready")
    while (source := hear()) is not None:
        app.ask(source)
        tell("stored")
        hear()
        assert app.change(source)
        tell(time.monotonic_ns())
"""


def measured(url: str, rounds: int) -> list[Row]:
    """Return a row for each mode."""
    return [_mode(url, mode, rounds) for mode in ("default", "strict")]


def _mode(url: str, mode: str, rounds: int) -> Row:
    with (
        workers(1, _WRITER, url) as (writer,),
        workers(READERS, _READER, url, mode) as readers,
    ):
        for worker in (writer, *readers):
            assert worker.hear() == "ready"
        lags = [lag for at in range(rounds) for lag in _round(writer, readers, f"{mode} {at}")]
    late = [lag for lag in lags if lag > 0]
    return {
        "what": f"invalidation until visible in {READERS + 1} processes, {mode}",
        "calls": len(lags),
        "late": len(late),
        "p50 ms": round(percentile(lags, 50), 3),
        "p99 ms": round(percentile(lags, 99), 3),
        "max ms": round(max(lags), 3),
    }


def _round(writer: Worker, readers: Sequence[Worker], source: str) -> list[float]:
    """Return the lag of each reader in milliseconds; 0 where none was late."""
    writer.tell(source)
    assert writer.hear() == "stored"
    for reader in readers:
        reader.tell(source)
    for reader in readers:
        assert reader.hear() == "warm"
    time.sleep(random.Random(source).random() * 0.01)  # readers are anywhere in their loops
    writer.tell()
    acknowledged = writer.hear()
    return [max(0.0, (reader.hear()[0] - acknowledged) / 1e6) for reader in readers]
