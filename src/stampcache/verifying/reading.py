"""What the verifier reads in one question: its side of the features (pure).

A `Side` is made once for the question that is asked and once for each stored one, whose bytes are
kept with the entry. It holds no judgement; `stampcache.verifying.pair` compares two of them.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from stampcache import guards, languages
from stampcache.errors import VerifierError
from stampcache.guards import Profile
from stampcache.verifying import vocabulary
from stampcache.verifying.table import Table

FORMAT = "s2"
"""Names what a `Side` holds; it begins the version of every table."""
LONGEST = 512
MOST_WORDS = 96
HEAVIEST = 255

_WORD = re.compile(r"\w+(?:[.,:@&]\w+)*(?:\+\+|#)?")
_NOT = re.compile(r"n['’]t\b")
_SHORT = re.compile(r"['’](?:s|re|ve|ll|d|m)\b")
_KINDS = tuple(re.compile("|".join(patterns)) for _, patterns in vocabulary.KINDS)
_VOWEL = re.compile(r"[aeiouy]")


class Side(Struct, frozen=True, array_like=True):
    """What was read in one question.

    ``words`` are all its words in order, ``stems`` those with content, ``content`` the same with
    one word for all of a concept; ``rows`` are their rows in the word table (-1: unknown),
    ``weights`` how rare they are (0 to 255), ``names`` those that look like names or codes, by
    place. ``closed`` holds one set of bits for each closed class. ``grams`` is how many different
    runs of three signs its words have. ``vector`` is the weighted sum of
    word vectors, of length one, as float32. ``profile`` is what the guards read.
    """

    version: str
    words: Sequence[str]
    stems: Sequence[str]
    content: Sequence[str]
    rows: Sequence[int]
    weights: Sequence[int]
    names: Sequence[int]
    closed: Sequence[int]
    kind: int
    grams: int
    vector: bytes
    profile: Profile


_DECODER = msgspec.msgpack.Decoder(Side)
_ENCODER = msgspec.msgpack.Encoder()
_CHECK = 4
"""Bytes of a checksum before what is stored."""


def encode(side: Side) -> bytes:
    """Return the bytes that are stored with an entry."""
    whole = _ENCODER.encode(side)
    return zlib.crc32(whole).to_bytes(_CHECK) + whole


def decode(seen: bytes, version: str) -> Side | None:
    """Return the side that these bytes hold; ``None``: none, damaged or of another version."""
    whole = memoryview(seen)[_CHECK:]
    # bytes that were changed may still be a side, of which nothing fits together
    if not whole or zlib.crc32(whole) != int.from_bytes(seen[:_CHECK]):
        return None
    try:
        side = _DECODER.decode(whole)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return side if side.version == version else None


def read(question: str, table: Table) -> Side:
    """Return what is read in a question.

    Raises:
        VerifierError: it is empty, longer than 512 characters or 96 words, or not in English.
    """
    _check_script(question)
    text = _spelled(question)
    written = _WORD.findall(text)
    words = _words(" ".join(written).lower())
    _check_words(words)
    capitals = _capitals(written)
    stems: list[str] = []
    names: list[int] = []
    for word in words:
        if word in vocabulary.FUNCTION:
            continue
        stem_ = stem(word)
        known = stem_ in table.rows
        if word in capitals or (not word.isalpha() and any(map(str.isdigit, word))) or not known:
            names.append(len(stems))
        stems.append(stem_)
    content = [CONCEPTS.get(one, one) for one in stems]
    rows = [table.rows.get(one, -1) for one in stems]
    weights = [table.weights[row] if row >= 0 else HEAVIEST for row in rows]
    return Side(
        version=table.version,
        words=words,
        stems=stems,
        content=content,
        rows=rows,
        weights=weights,
        names=names,
        closed=bits(words, _CLOSED),
        kind=kind(" ".join(words)),
        grams=len({*grams(text_of(words))}),
        vector=weighted_sum(rows, weights, table),
        profile=guards.profile(question),
    )


def _check_script(question: str) -> None:
    if len(question) > LONGEST:
        raise VerifierError(
            f"The question has more than {LONGEST} characters, for which this verifier was not "
            "calibrated; give another verifier for long questions."
        )
    if question.isascii():
        return
    for sign in question:
        if not (sign.isascii() or _latin(sign)):
            raise VerifierError(
                f"The question contains {sign!r}, and this verifier is calibrated for English "
                "only; give another verifier for its language."
            )


def _latin(sign: str) -> bool:
    """Tell whether a sign is no letter, or one that English texts hold now and then."""
    if not unicodedata.category(sign).startswith("L"):
        return True
    return unicodedata.name(sign, "").startswith(languages.LATIN)


def _check_words(words: Sequence[str]) -> None:
    if not words:
        raise VerifierError("The question holds no words, so that nothing can be compared.")
    if len(words) > MOST_WORDS:
        raise VerifierError(
            f"The question has more than {MOST_WORDS} words, for which this verifier was not "
            "calibrated; give another verifier for long questions."
        )
    if languages.looks_foreign(words):
        raise VerifierError(
            "The question does not look like English, for which alone this verifier is calibrated; "
            "give another verifier for its language."
        )


def _spelled(question: str) -> str:
    """Return the text with contractions written out and accents left away."""
    question = languages.without_accents(question)
    if "'" not in question and "’" not in question:
        return question
    return _SHORT.sub("", _NOT.sub(" not", question))


def _words(text: str) -> list[str]:
    text = vocabulary.PHRASE.sub(_phrase, text)
    words: list[str] = []
    for word in text.split():
        if word in vocabulary.CONTRACTED:
            words += vocabulary.CONTRACTED[word].split()
        else:
            words.append(vocabulary.NUMBERS.get(word) or word)
    return words


def _phrase(found: re.Match[str]) -> str:
    return vocabulary.PHRASES[found[0]]


def _capitals(written: Sequence[str]) -> frozenset[str]:
    """Return the words that are capitalised inside a text that is otherwise in small letters."""
    capital = [word for word in written[1:] if not word[0].islower()]
    if 2 * len(capital) > len(written):
        return frozenset()
    return frozenset([word.lower() for word in capital])


def kind(text: str) -> int:
    """Return the number of the kind of question (see `vocabulary.KINDS`), 0 for none of them."""
    for number, pattern in enumerate(_KINDS, 1):
        if pattern.search(text):
            return number
    return 0


def text_of(words: Sequence[str]) -> str:
    """Return the words as one text, with a space at each end."""
    return f" {' '.join(words)} "


def grams(text: str) -> Iterator[tuple[str, str, str]]:
    """Return the runs of three signs in a text."""
    return zip(text, text[1:], text[2:], strict=False)


class Closed(Struct, frozen=True):
    """Closed classes of words: how many, and of each word which of them it is in, and its bit there."""

    count: int
    places: Mapping[str, Sequence[tuple[int, int]]]


def closed(classes: Sequence[Sequence[str]]) -> Closed:
    """Return closed classes as they are looked up."""
    found: dict[str, list[tuple[int, int]]] = {}
    for number, words in enumerate(classes):
        for at, word in enumerate(words):
            found.setdefault(word, []).append((number, 1 << at))
    return Closed(len(classes), found)


_CLOSED = closed(vocabulary.CLOSED)


def bits(words: Sequence[str], known: Closed) -> list[int]:
    """Return for each closed class the bits of those of its words that are among these."""
    found = [0] * known.count
    places = known.places
    for word in words:
        for number, bit in places.get(word, ()):
            found[number] |= bit
    return found


def weighted_sum(rows: Sequence[int], weights: Sequence[int], table: Table) -> bytes:
    """Return the sum of word vectors by rarity, of length one, as float32; zeros where none is known."""
    known = [row for row in rows if row >= 0]
    if not known:
        return bytes(4 * table.width)
    heavy = [weight for row, weight in zip(rows, weights, strict=True) if row >= 0]
    total = np.array(heavy, dtype=np.float32).dot(table.vectors.take(known, axis=0))
    length = np.sqrt(total.dot(total))
    return bytes((total / (length or np.float32(1.0))).tobytes())


def stem(word: str) -> str:
    """Return a word without the endings of plural, participle and the like; no dictionary is used."""
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) > 2 and _VOWEL.search(base):
            return _base(base)
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e"):
        return word[:-1]
    return word


def _base(base: str) -> str:
    """Return the stem of a participle: "stopp" is "stop", "cancell" is "cancel"."""
    doubled = base[-1] == base[-2] and base[-1] not in "sz" and len(base) > 3
    if doubled and (base[-1] != "l" or len(base) > 5):
        return base[:-1]
    return base.removesuffix("e") if len(base) > 4 else base


CONCEPTS = {stem(word): stem(line[0]) for line in vocabulary.CONCEPT_LINES for word in line}
