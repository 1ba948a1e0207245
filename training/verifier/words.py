"""Makes the table of words: short vectors of a sentence model's view of single words."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stampcache.verifying.reading import stem

WIDTH = 32
MOST = 9000
FIRST_WORD = 1996  # word pieces before it are signs, letters and unused
RELATED = (0.35, 0.62)


def vocabulary(pieces: Mapping[str, int]) -> list[str]:
    """Return whole words by falling frequency, which is the order of the word pieces."""
    ordered = sorted(pieces.items(), key=lambda one: one[1])
    return [
        word
        for word, number in ordered
        if number >= FIRST_WORD and word.isascii() and word.isalpha() and len(word) > 2
    ]


def chosen(words: Sequence[str], needed: frozenset[str]) -> list[tuple[str, str]]:
    """Return (stem, word) for the most frequent words, one word a stem, and all that are needed."""
    found: dict[str, str] = {}
    for word in words:
        key = stem(word)
        if key not in found and (len(found) < MOST or word in needed):
            found[key] = word
    return list(found.items())


def weights(words: Sequence[str], kept: Sequence[str]) -> bytes:
    """Return how rare each word is, from 0 to 255, by the logarithm of its rank."""
    ranks = {word: rank for rank, word in enumerate(words, 1)}
    top = np.log(len(words) + 1.0)
    return bytes(round(255 * float(np.log(ranks[word] + 1.0) / top)) for word in kept)


def projected(vectors: NDArray[np.float32]) -> bytes:
    """Return the vectors in their main directions, one signed byte a component."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    main = centred @ directions[:, ::-1][:, :WIDTH]
    scaled = main / np.linalg.norm(main, axis=1, keepdims=True)
    small = np.clip(np.rint(scaled * 127 * 1.4), -127, 127).astype(np.int8)
    return bytes(small.tobytes())


def related(
    words: Sequence[str], vectors: NDArray[np.float32], between: tuple[float, float] = RELATED
) -> dict[str, list[str]]:
    """Return for each word some that are near to it, ``between`` two cosines, and mean something else."""
    found: dict[str, list[str]] = {}
    low, high = between
    for start in range(0, len(words), 1000):
        near = vectors[start : start + 1000] @ vectors.T
        for at, row in enumerate(near):
            inside = np.flatnonzero((row > low) & (row < high))
            best = inside[np.argsort(-row[inside], kind="stable")][:12]
            if len(best):
                found[words[start + at]] = [words[int(to)] for to in best]
    return found
