"""What the verifier reads in one Chinese question: its side of the features (pure).

Chinese puts no space between words. A text is cut where the words of the table, which carry how
frequent they are, cost least together: the most probable words of a unigram model (Kudo, "Subword
regularization", 2018). Latin letters and digits in it stay whole.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping

from stampcache import guards
from stampcache.errors import VerifierError
from stampcache.languages import CHINESE, language_of
from stampcache.verifying.chinese import vocabulary
from stampcache.verifying.reading import HEAVIEST, Side, bits, closed, grams, text_of, weighted_sum
from stampcache.verifying.table import Table

LONGEST = 256
LONGEST_WORD = 4

_HAN = r"\u3400-\u9fff〇\uf900-\ufaff\U00020000-\U0003ffff"
# Letters of any kind: "α" is Greek and "é" is French, and a Chinese question may be about either.
_WORD = rf"[^\W_{_HAN}]+"
_RUN = re.compile(rf"(?P<han>[{_HAN}]+)|{_WORD}(?:[.,:@&'_-]{_WORD})*(?:\+\+|#)?")
_SHOULD = re.compile(r"(?:我?应该|应当|我?该|我?要|需要)(?=怎么|如何|怎样|咋)")
_KINDS = tuple(re.compile(pattern) for _, pattern in vocabulary.KINDS)
_CLOSED = closed(vocabulary.CLOSED)
# What a word costs beside the most frequent one, in parts of its rarity; a sign that is in no word.
_RARE = 127.0
_KNOWN_COST = 1.5
_UNKNOWN_COST = 4.0


def reader(table: Table) -> Callable[[str], Side]:
    """Return what reads questions by this table; see `read`."""
    known = costs(table)
    return lambda question: read(question, table, known)


def read(question: str, table: Table, known: Mapping[str, float]) -> Side:
    """Return what is read in a question; ``known`` are the `costs` of words.

    Raises:
        VerifierError: it is longer than 256 characters, or not in Chinese.
    """
    if len(question) > LONGEST:
        raise VerifierError(
            f"The question has more than {LONGEST} characters, for which this verifier was not "
            "calibrated; give another verifier for long questions."
        )
    language = language_of(question)
    if language != CHINESE:
        raise VerifierError(
            f"The question is in {language}, and this verifier is calibrated for Chinese only; "
            "give another verifier for its language."
        )
    words = segmented(plain(question), known)  # never none: what is Chinese has a Chinese character
    stems = [word for word in words if word not in vocabulary.FUNCTION]
    rows = [table.rows.get(one, -1) for one in stems]
    weights = [table.weights[row] if row >= 0 else HEAVIEST for row in rows]
    return Side(
        version=table.version,
        words=words,
        stems=stems,
        content=[vocabulary.CONCEPTS.get(one, one) for one in stems],
        rows=rows,
        weights=weights,
        names=[at for at, one in enumerate(stems) if rows[at] < 0 and one not in vocabulary.KNOWN],
        closed=bits(words, _CLOSED),
        kind=kind("".join(words)),
        grams=len({*grams(text_of(words))}),
        vector=weighted_sum(rows, weights, table),
        profile=guards.profile(question),
    )


def plain(question: str) -> str:
    """Return the text in small and narrow letters, each longer form of asking as its one word."""
    text = _SHOULD.sub("", unicodedata.normalize("NFKC", question).lower())
    return vocabulary.PHRASE.sub(lambda found: vocabulary.PHRASES[found[0]], text)


def costs(table: Table) -> dict[str, float]:
    """Return what each word costs that a text may be cut into."""
    found = {word: 1 + table.weights[row] / _RARE for word, row in table.rows.items()}
    for word in vocabulary.KNOWN:
        found[word] = min(found.get(word, _KNOWN_COST), _KNOWN_COST)
    return found


def segmented(text: str, known: Mapping[str, float]) -> list[str]:
    """Return the words of a text in order, without punctuation; ``known`` are the `costs` of words."""
    words: list[str] = []
    for found in _RUN.finditer(text):
        if found["han"]:
            words += _cut(found["han"], known)
        else:
            words.append(found[0])
    return words


def _cut(text: str, known: Mapping[str, float]) -> list[str]:
    """Return the words into which a run of Chinese characters falls at the least cost."""
    best, starts = [0.0], [0]
    for end in range(1, len(text) + 1):
        least, start = best[-1] + known.get(text[end - 1], _UNKNOWN_COST), end - 1
        for before in range(max(0, end - LONGEST_WORD), end - 1):
            cost = known.get(text[before:end])
            if cost is not None and best[before] + cost <= least:
                least, start = best[before] + cost, before
        best.append(least)
        starts.append(start)
    words: list[str] = []
    end = len(text)
    while end:
        words.append(text[starts[end] : end])
        end = starts[end]
    return words[::-1]


def kind(text: str) -> int:
    """Return the number of the kind of question (see `vocabulary.KINDS`), 0 for none of them."""
    for number, pattern in enumerate(_KINDS, 1):
        if pattern.search(text):
            return number
    return 0
