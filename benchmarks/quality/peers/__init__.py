"""Peers, each in an environment of its own; their scores are read from the files that they wrote."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.quality.sets import Measured
from benchmarks.quality.systems import AS_SHIPPED, NEVER, System

FOLDER = Path(".peers")


def scored(measured: Measured) -> list[System]:
    """Return the peers that were run on this very set (see `benchmarks.quality.peers.__main__`)."""
    found: list[System] = []
    for file in sorted(FOLDER.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.open() if line.strip()]
        mine = {row["at"]: row for row in rows if row["set"] == measured.name}
        if len(mine) == len(measured.pairs):
            found += _systems(file.stem, [mine[at] for at in range(len(mine))])
    return found


def _systems(name: str, rows: Sequence[dict[str, object]]) -> list[System]:
    """Return a peer's own decisions, and its score with its curve where it shows one."""
    served = np.array([float(bool(row["served"])) for row in rows])
    systems = [System(f"{name}{AS_SHIPPED}", served, 0.5)]
    if any(row.get("score") is not None for row in rows):
        scores = [NEVER if row.get("score") is None else float(str(row["score"])) for row in rows]
        systems.append(System(f"{name}, its score", np.array(scores)))
    return systems
