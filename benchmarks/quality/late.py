"""Late interaction over the embedder's own token vectors, measured only (ColBERT, 2020).

Each token of a question is compared with the nearest token of the other one. It is not shipped:
an entry would have to keep a vector for each token.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.verifier.assembling import Embedding
from training.verifier.sources import Pair

NAMES = ("late, mean of both", "late, lesser mean", "late, least")
BATCH = 2000


def features(pairs: Sequence[Pair], embedding: Embedding) -> NDArray[np.float32]:
    """Return for each pair how near its nearest tokens are: on average, in the worse way, at worst."""
    rows = np.zeros((len(pairs), len(NAMES)), dtype=np.float32)
    ordered = sorted(range(len(pairs)), key=lambda at: (pairs[at].origin, pairs[at].one, at))
    for start in range(0, len(ordered), BATCH):
        part = ordered[start : start + BATCH]
        texts = sorted({text for at in part for text in (pairs[at].one, pairs[at].other)})
        tokens = dict(zip(texts, embedding.tokens(texts), strict=True))
        for at in part:
            rows[at] = _interaction(tokens[pairs[at].one], tokens[pairs[at].other])
    return rows


def _interaction(one: NDArray[np.float32], other: NDArray[np.float32]) -> tuple[float, ...]:
    near = one @ other.T
    here, there = near.max(axis=1), near.max(axis=0)
    means = float(here.mean()), float(there.mean())
    return sum(means) / 2, min(means), float(min(here.min(), there.min()))
