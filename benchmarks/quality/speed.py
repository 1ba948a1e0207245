"""What a pair costs: reading, guards and score, with the candidate's side stored before."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.pairs import Pair
from benchmarks.report import Row
from stampcache import guards
from stampcache.verifying import TrainedVerifier

CANDIDATES = 8
Timed = Callable[[], object]


def rows(verifier: TrainedVerifier, pairs: Sequence[Pair]) -> list[Row]:
    """Return median and 95th percentile of each step in microseconds, one core."""
    asked = [one.asked for one in pairs]
    stored = [one.stored for one in pairs]
    asking = [verifier.asking(text) for text in asked]
    seen = [verifier.asking(text).seen for text in stored]
    profiles = [(guards.profile(one), guards.profile(other)) for one, other in zip(asked, stored, strict=True)]
    many = range(len(pairs))
    return [
        _row("read one question", [lambda at=at: verifier.asking(asked[at]) for at in many]),
        _row("score one candidate", [lambda at=at: asking[at].score(stored[at], seen[at], 0.9) for at in many]),
        _row("guards of one candidate", [lambda at=at: guards.compare(*profiles[at]) for at in many]),
        _row(
            f"read one and score {CANDIDATES} candidates",
            [lambda at=at: _decided(verifier, asked, stored, seen, at) for at in many],
        ),
    ]  # fmt: skip


def _decided(
    verifier: TrainedVerifier, asked: Sequence[str], stored: Sequence[str], seen: Sequence[bytes], at: int
) -> None:
    asking = verifier.asking(asked[at])
    for to in range(at, at + CANDIDATES):
        asking.score(stored[to % len(stored)], seen[to % len(seen)], 0.9)


def _row(name: str, steps: Sequence[Timed]) -> Row:
    taken: list[float] = []
    for step in steps:
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    low, high = np.percentile(taken, [50, 95])
    return {"step": name, "us, median": round(low * 1e6, 1), "us, 95th percentile": round(high * 1e6, 1)}
