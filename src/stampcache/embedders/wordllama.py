"""The embedder "static": WordLlama's averaged word vectors, fast and blind to word order.

It has no calibration, since "from A to B" and "from B to A" are one to it; whoever can live with
that passes ``calibration=`` (`benchmarks.thresholds` measures it too).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import wordllama

from stampcache.model import Vector

NAME = "wordllama-l2-supercat-256"


class StaticEmbedder:
    """Averages one vector per token; reads texts of any length. Safe to use from many threads."""

    name = NAME
    dimension = 256

    def __init__(self) -> None:
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text, shape (n, 256), float32, not normalised."""
        return np.asarray(self._model.embed(list(texts)), dtype=np.float32)


def load() -> StaticEmbedder:
    """Load it from the files inside its own package (no hub)."""
    return StaticEmbedder()
