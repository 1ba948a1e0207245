"""The systems that are compared: each gives a pair a score, and says from which score on it serves."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from benchmarks.pairs import Pair
from benchmarks.quality.curves import Scores
from stampcache import guards
from stampcache.calibration import WEIGHTS, weighed
from stampcache.errors import VerifierError
from stampcache.verifying import TrainedVerifier

NEVER = -1.0
TUNED = "ours, tuned"
AS_SHIPPED = ", as shipped"


class System(Struct, frozen=True):
    """A system's scores of the pairs of a set; ``threshold`` is its own, NaN if it has none.

    ``decided`` holds its own decisions where a threshold does not tell them all.
    """

    name: str
    scores: Scores
    threshold: float = float("nan")


def plain(text: str) -> str:
    """Return a text as an exact cache would compare it."""
    return " ".join(text.lower().split())


def exact(pairs: Sequence[Pair]) -> System:
    """Serve equal texts only, but for case and white space."""
    equal = [float(plain(one.asked) == plain(one.stored)) for one in pairs]
    return System("exact", np.array(equal), 0.5)


def cosine(similarities: Scores) -> System:
    """Serve by the embedder's cosine, at 0.9 as most caches advise."""
    return System("cosine", similarities, 0.9)


def guarded(pairs: Sequence[Pair], similarities: Scores) -> System:
    """Serve by cosine what no guard sees a difference in."""
    clear = [not guards.findings(one.asked, one.stored) for one in pairs]
    return System("cosine and guards", np.where(clear, similarities, NEVER), 0.9)


def ours(verifier: TrainedVerifier, pairs: Sequence[Pair], similarities: Scores) -> System:
    """Serve by the verifier; what it abstains from is never served."""
    return System("ours", scored(verifier, pairs, similarities), verifier.threshold)


def scored(verifier: TrainedVerifier, pairs: Sequence[Pair], similarities: Scores) -> Scores:
    """Return the verifier's probability of each pair, or -1 where it abstains."""
    scores = np.full(len(pairs), NEVER)
    for at, one in enumerate(pairs):
        try:
            asking = verifier.asking(one.asked)
            scores[at] = asking.score(one.stored, b"", float(similarities[at]))
        except VerifierError:
            continue
    return scores


def vetoed(pairs: Sequence[Pair], ours_: System) -> System:
    """Serve by the verifier what no guard vetoes, as a cache does."""
    clear = [
        not guards.vetoes(guards.profile(one.asked), guards.profile(one.stored)) for one in pairs
    ]
    return System("ours and vetoes", np.where(clear, ours_.scores, NEVER), ours_.threshold)


def counted(ours_: System, similarities: Scores) -> list[Scores]:
    """Return the verifier's scores with the cosine counted at each weight that tuning may choose."""
    both = [*zip(ours_.scores.tolist(), similarities.tolist(), strict=True)]
    return [np.array([weighed(*one, weight) for one in both]) for weight in WEIGHTS]


def oracle(pairs: Sequence[Pair]) -> System:
    """Serve all that is the same and nothing else."""
    return System("oracle", np.array([float(one.same) for one in pairs]), 0.5)
