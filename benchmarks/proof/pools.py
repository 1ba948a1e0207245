"""Large pools of labelled pairs: real ones of QQP, and made-up ones whose risk is known."""

import contextlib
import gzip
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.pairs import LONGEST
from benchmarks.thresholds import unit_rows
from stampcache.calibration import WEIGHTS, Labelled, Subject
from stampcache.calibration.labels import groups
from stampcache.embed import as_embedder
from stampcache.errors import VerifierError
from stampcache.guards import profile, vetoes
from stampcache.guards.pair import findings
from stampcache.ports import Verifier
from stampcache.verifying import TrainedVerifier

KEPT = 0.1
LEVELS = 20
SUBJECT = Subject(embedder="all-minilm-l6-v2", decider="cosine+guards")
Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Curve: TypeAlias = Callable[[Floats], Floats]


class Pool(Struct, frozen=True):
    """Labelled pairs in groups that share no question; ``real`` or made up.

    ``by_group``: groups are drawn from it and not pairs, as where requests of one user come together.
    ``weights``: how much the cosine may count beside the score, of which each draw chooses.
    """

    name: str
    real: bool
    labels: Sequence[Labelled]
    by_group: bool = False
    weights: Sequence[float] = (0.0,)


# -- real ------------------------------------------------------------------------------------------


def qqp(data: Path, count: int | None) -> list[tuple[str, str, bool]]:
    """Return pairs of questions with the label "duplicate", all of them or the first so many."""
    with gzip.open(data / "qqp" / "pairs_20k.jsonl.gz", "rt") as lines:
        given = [(one["a"], one["b"], bool(one["same"])) for one in map(json.loads, lines)]
    return [one for one in given if len(one[0] + one[1]) <= LONGEST][:count]


def by_cosine(pairs: Sequence[tuple[str, str, bool]]) -> list[Labelled]:
    """Score pairs by MiniLM's cosine; what a guard vetoes has no score, and is not embedded."""
    unguarded = [not findings(asked, stored) for asked, stored, _ in pairs]
    cosines = cosines_of(pairs, unguarded)
    return [labelled(*pair, cosine) for pair, cosine in zip(pairs, cosines, strict=True)]


def cosines_of(
    pairs: Sequence[tuple[str, str, bool]], chosen: Sequence[bool]
) -> list[float | None]:
    """Return MiniLM's cosine of each pair that is chosen."""
    texts = sorted(
        {text for pair, wanted in zip(pairs, chosen, strict=True) if wanted for text in pair[:2]},
        key=lambda text: (len(text), text),
    )
    place = {text: at for at, text in enumerate(texts)}
    rows = unit_rows(as_embedder("minilm"), texts)
    return [
        float(rows[place[pair[0]]] @ rows[place[pair[1]]]) if wanted else None
        for pair, wanted in zip(pairs, chosen, strict=True)
    ]


def by_trained(pairs: Sequence[tuple[str, str, bool]], verifier: TrainedVerifier) -> list[Labelled]:
    """Score pairs by the trained verifier, with their cosines beside; what is vetoed has no score."""
    clear = [not vetoes(profile(asked), profile(stored)) for asked, stored, _ in pairs]
    found = []
    for pair, cosine in zip(pairs, cosines_of(pairs, clear), strict=True):
        score = None
        if cosine is not None:
            with contextlib.suppress(VerifierError):  # it abstains, which is never served
                score = verifier.asking(pair[0]).score(pair[1], b"", cosine)
        found.append(labelled(*pair, score, cosine or 0.0))
    return found


def by_verifier(pairs: Sequence[tuple[str, str, bool]], verifier: Verifier) -> list[Labelled]:
    """Score pairs by a verifier alone."""
    return [labelled(*pair, verifier.score(pair[0], pair[1])) for pair in pairs]


def verifier_of(name: str) -> Verifier:
    """Return the verifier at ``module:attribute``, or what that returns when it is called."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    verifier: Verifier = found() if callable(found) else found
    return verifier


def labelled(
    asked: str, stored: str, same: bool, score: float | None, similarity: float | None = None
) -> Labelled:
    return Labelled(
        asked=asked,
        stored=stored,
        same=same,
        score=score,
        similarity=(score or 0.0) if similarity is None else similarity,
        labeller="the pool",
        at=0.0,
        subject=SUBJECT,
    )


def real(
    name: str, labels: Sequence[Labelled], seed: int, weights: Sequence[float] = (0.0,)
) -> list[Pool]:
    """Return the pool as it is, and one with a tenth of its different pairs.

    Most pairs of QQP were picked for being near each other and different, and a tenth of its labels is
    doubtful: as it is, no threshold on a cosine serves 5 % wrong.
    """
    chooser = np.random.default_rng(seed)
    fewer = [one for one in labels if one.same or chooser.random() < KEPT]
    return [
        Pool(name, True, labels, weights=weights),
        Pool(f"{name}, fewer different", True, fewer, weights=weights),
    ]


# -- made up ---------------------------------------------------------------------------------------


def risk_curves(max_wrong: float) -> dict[str, Curve]:
    """Return made-up risks of a pair by its rank: 0 is the best score, 1 the worst.

    One rises steadily, in one the very best scores are noisy, and one goes up and down around the rate.
    """
    return {
        "rising": lambda at: 0.001 + 0.4 * np.maximum(0, at - 0.2) ** 1.5,
        "noisy top": lambda at: np.where(at < 0.03, 0.02, 0.001) + 0.3 * at**3,
        "up and down": lambda at: max_wrong * (1 + np.sin(30 * at)) * 0.9,
    }


def made_up(max_wrong: float, size: int, seed: int) -> list[Pool]:
    """Return made-up pools for one rate; each pair has two questions of its own but in the last one."""
    chooser = np.random.default_rng(seed)
    pools = []
    for name, risk in risk_curves(max_wrong).items():
        at = chooser.random(size)
        pools.append(_pool(name, at, chooser.random(size) < risk(at)))
    at = np.ceil(chooser.random(size) * LEVELS) / LEVELS
    rising = risk_curves(max_wrong)["rising"]
    pools.append(_pool("rising in steps", at, chooser.random(size) < rising(at)))
    pools.append(_never(max_wrong, size, chooser))
    pools.append(_never_weighed(max_wrong, size, chooser))
    pools.append(_grouped(rising, size, chooser))
    return pools


def _pool(name: str, at: Floats, wrong: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Pool:
    labels = [
        labelled(f"{name} {number}", f"stored {number}", not bad, 1 - score)
        for number, (score, bad) in enumerate(zip(at.tolist(), wrong.tolist(), strict=True))
    ]
    return Pool(name, False, labels)


def _never(max_wrong: float, size: int, chooser: np.random.Generator) -> Pool:
    """Just above the rate at every threshold, so that every promise is a false one."""
    every = int(1 / max_wrong) - 1
    wrong = np.zeros(size, dtype=np.bool_)
    wrong[0] = True
    for begin in range(1, size - every, every):
        wrong[begin + int(chooser.integers(every))] = True
    at = np.arange(size, dtype=np.float64) / size
    return _pool("just above", at, wrong)


def _never_weighed(max_wrong: float, size: int, chooser: np.random.Generator) -> Pool:
    """The same, with cosines that say nothing of the label, so that each weight is a chance of its own.

    By weighed scores the risk is just above the rate on the whole, and not at each threshold.
    """
    never = _never(max_wrong, size, chooser)
    cosines = chooser.random(size).tolist()
    labels = [
        replace(one, score=0.5 + (one.score or 0.0) / 2.01, similarity=cosine)
        for one, cosine in zip(never.labels, cosines, strict=True)
    ]
    return Pool("just above, weights to choose", False, labels, weights=WEIGHTS)


def _grouped(risk: Curve, size: int, chooser: np.random.Generator) -> Pool:
    """Up to 8 pairs share a stored question, nearly their score, and mostly their label."""
    labels: list[Labelled] = []
    while len(labels) < size:
        at = chooser.random()
        bad = chooser.random() < float(risk(np.array([at]))[0])
        for _ in range(int(chooser.integers(1, 9))):
            here = bad if chooser.random() < 0.9 else chooser.random() < 0.01
            score = 1 - at + float(chooser.normal()) / 100
            labels.append(labelled(f"asked {len(labels)}", f"group {at}", not here, score))
    return Pool("in groups", False, labels, by_group=True)


def grouped_places(pool: Pool) -> list[list[int]]:
    """Return which pairs (by place) are drawn together."""
    if not pool.by_group:
        return [[at] for at in range(len(pool.labels))]
    place = {one.asked: at for at, one in enumerate(pool.labels)}
    return [[place[one.asked] for one in group] for group in groups(pool.labels)]
