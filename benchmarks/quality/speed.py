"""What a pair costs: reading, guards and score, with the candidate's side stored before."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.pairs import Pair
from benchmarks.report import Row
from stampcache import guards
from stampcache.verifying import TrainedVerifier

CANDIDATES = 8


def rows(verifier: TrainedVerifier, pairs: Sequence[Pair]) -> list[Row]:
    """Return median and 95th percentile of each step in microseconds, one core."""
    asked = [one.asked for one in pairs]
    stored = [one.stored for one in pairs]
    asking = [verifier.asking(text) for text in asked]
    seen = [verifier.asking(text).seen for text in stored]
    profiles = [(guards.profile(one.asked), guards.profile(one.stored)) for one in pairs]

    def read(at: int) -> object:
        return verifier.asking(asked[at])

    def score(at: int) -> object:
        return asking[at].score(stored[at], seen[at], 0.9)

    def guarded(at: int) -> object:
        return guards.compare(*profiles[at])

    def decide(at: int) -> object:
        return _decided(verifier, asked, stored, seen, at)

    return [
        _row("read one question", read, len(pairs)),
        _row("score one candidate", score, len(pairs)),
        _row("guards of one candidate", guarded, len(pairs)),
        _row(f"read one and score {CANDIDATES} candidates", decide, len(pairs)),
    ]


def _decided(
    verifier: TrainedVerifier,
    asked: Sequence[str],
    stored: Sequence[str],
    seen: Sequence[bytes],
    at: int,
) -> float:
    asking = verifier.asking(asked[at])
    near = [to % len(stored) for to in range(at, at + CANDIDATES)]
    return max([asking.score(stored[to], seen[to], 0.9) for to in near])


def _row(name: str, step: Callable[[int], object], count: int) -> Row:
    taken: list[float] = []
    for at in range(count):
        start = time.thread_time()
        step(at)
        taken.append(time.thread_time() - start)
    low, high = np.percentile(taken, [50, 95])
    return {
        "step": name,
        "us, median": round(low * 1e6, 1),
        "us, 95th percentile": round(high * 1e6, 1),
    }
