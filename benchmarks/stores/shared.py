"""What processes that share a store must never see: another's answer, and one that no longer holds."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence

from benchmarks.stores.timing import Row
from tests.redis.workers import environment

PROCESSES, PLAYERS = 8, 4


def probes(url: str, count: int) -> Row:
    """Probe under hostile names of tenants from threads and tasks of all processes."""
    each = count // PROCESSES
    ways = [("tests.redis.probing", url, str(seed), str(each)) for seed in range(PROCESSES)]
    return _row(f"probes under hostile names from {PROCESSES} processes", ways, "probe", "wrong")


def orders(url: str, count: int) -> Row:
    """Play seeded interleavings of makings and changes, some in each of four processes."""
    each = count // PLAYERS
    ways = [("tests.redis.orders", url, str(at * each), str(each)) for at in range(PLAYERS)]
    return _row("interleavings of fill and invalidate, late fills", ways, "played", "old")


def _row(what: str, ways: Sequence[tuple[str, ...]], counted: str, wrong: str) -> Row:
    began = time.perf_counter()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", *way], stdout=subprocess.PIPE, text=True, env=environment()
        )
        for way in ways
    ]
    total: Counter[str] = Counter()
    for process in started:
        told, _ = process.communicate()
        assert process.returncode == 0, f"{what}: a process failed"
        total.update(json.loads(told))
    seconds = time.perf_counter() - began
    return {
        "what": what,
        "calls": total[counted],
        "wrong": total[wrong],
        "per s": round(total[counted] / seconds),
    }
