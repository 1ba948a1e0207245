"""The table of words: how rare each is, and a short vector of its meaning (pure)."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Table(Struct, frozen=True):
    """``vectors`` are rows of length one (float32), and one of zeros at the end, which is the row
    -1 of words that are unknown. ``weights`` go from 0 (frequent) to 255 (rare).

    ``version`` names the format and the weights, so that what was read with others is not compared.
    """

    version: str
    rows: Mapping[str, int]
    weights: Sequence[int]
    vectors: NDArray[np.float32]

    @property
    def width(self) -> int:
        """Return how many components a vector has."""
        return int(self.vectors.shape[1])


def unpack(version: str, words: Sequence[str], weights: bytes, packed: bytes) -> Table:
    """Return the table from its packed form: one signed byte a component, row by row."""
    raw = np.frombuffer(packed, dtype=np.int8).reshape(len(words), -1).astype(np.float32)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    unit = raw / np.where(lengths > 0, lengths, np.float32(1.0))
    vectors: NDArray[np.float32] = np.concatenate([unit, np.zeros((1, unit.shape[1]), np.float32)])
    vectors.flags.writeable = False
    return Table(version, {word: row for row, word in enumerate(words)}, list(weights), vectors)
