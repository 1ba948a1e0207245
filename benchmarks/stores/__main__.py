"""Stores beside each other and other caches: cost of calls, lag of changes, and what is never served.

    python -m benchmarks.stores [--quick] [--json FILE]

Starts a Redis of its own (Debian's ``redis-server``). The peers, langchain-redis and GPTCache, run in
environments of their own that are made with the first run. Compare by ratio within one run. ``wrong``
counts answers of others, answers that no longer held, and entries of others that were deleted: of
stampcache each must be 0.
"""

import shutil
import sys

from benchmarks import report
from benchmarks.stores import beside, calls, lag, shared
from tests.redis.servers import Server


def main() -> int:
    """Measure and print; without a redis-server, say so."""
    given = report.arguments(__doc__ or "")
    if shutil.which("redis-server") is None:
        print("There is no redis-server, so nothing was measured: apt-get install redis-server.")
        return 0
    quick = given.quick
    count, asked = (300, 3_000) if quick else (2_000, 30_000)
    with Server() as server:
        url = server.url
        hits = calls.near(url, count, asked) + calls.remote(url, count, asked // 3)
        rates = calls.at_once(url, count, asked // 3)
        server.cli("FLUSHALL")
        lags = lag.measured(url, 20 if quick else 300)
        server.cli("FLUSHALL")
        safety = [shared.probes(url, 20_000 if quick else 1_000_000)]
        server.cli("FLUSHALL")
        safety.append(shared.orders(url, 400 if quick else 100_000))
    for row in beside.measured(quick=quick):
        table = hits if "p50 us" in row else rates if "per s" in row else safety
        table.append(row)
    report.show("One call (one machine, one run)", hits)
    report.show("Many at once", rates)
    report.show("How late a change is heard of", lags)
    report.show("What must never be", safety)
    report.write(given.json, [*hits, *rates, *lags, *safety])
    return 0


if __name__ == "__main__":
    sys.exit(main())
