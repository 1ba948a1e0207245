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
from benchmarks.report import Row
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
    rows: list[Row] = []
    with Server() as server:
        rows += calls.near(server.url, count, asked)
        rows += calls.remote(server.url, count, asked // 3)
        rows += calls.at_once(server.url, count, asked // 3)
        server.cli("FLUSHALL")
        rows += lag.measured(server.url, 20 if quick else 300)
        server.cli("FLUSHALL")
        rows.append(shared.probes(server.url, 20_000 if quick else 1_000_000))
        server.cli("FLUSHALL")
        rows.append(shared.orders(server.url, 400 if quick else 100_000))
    rows += beside.measured(quick=quick)
    report.show("Stores (one machine, one run)", rows)
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
