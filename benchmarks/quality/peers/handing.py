"""What a peer is given and what it hands back; needs numpy only, as it runs beside each peer.

``pairs.jsonl`` holds ``{"set", "at", "asked", "stored"}``, ``vectors.npz`` the texts with their unit
vectors, the same for all peers. A peer writes ``{"set", "at", "served", "score"}``, with the score
``null`` where it shows none.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Asked(NamedTuple):
    """One pair, with the unit vectors of both questions."""

    asked: str
    stored: str
    asked_vector: Any
    stored_vector: Any


class Decision(NamedTuple):
    """Whether the peer would serve the stored answer, and its score if it shows one."""

    served: bool
    score: float | None


Decide = Callable[[Asked], Decision]


def run(decide: Decide) -> None:
    """Read what is given in the folder of the first argument, write to the file of the second."""
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    with out.open("w", encoding="utf-8") as lines:
        for row, pair in _pairs(folder):
            decision = decide(pair)
            told = {"served": decision.served, "score": decision.score}
            lines.write(json.dumps({"set": row["set"], "at": row["at"], **told}) + "\n")


def vectors(folder: Path) -> dict[str, Any]:
    """Return the unit vector of each text."""
    held = np.load(folder / "vectors.npz", allow_pickle=False)
    return dict(zip(held["texts"].tolist(), held["vectors"], strict=True))


def _pairs(folder: Path) -> Iterator[tuple[dict[str, Any], Asked]]:
    known = vectors(folder)
    with (folder / "pairs.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            one, other = row["asked"], row["stored"]
            yield row, Asked(one, other, known[one], known[other])
