"""Edits of documents: a number, a date or a sentence, a document inserted, another one deleted."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.validity.app import Change
from benchmarks.validity.texts import Document, Question

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_SENTENCE = re.compile(r"[^.]{30,}? ?\.(?= |$)")

Edit = Callable[[str, str], str]


def another_year(text: str, _: str) -> str:
    """Move the first year by three."""
    return _YEAR.sub(lambda found: str(int(found[0]) - 3), text, count=1)


def another_number(text: str, _: str) -> str:
    """Add one to the first number that is no year."""

    def moved(found: re.Match[str]) -> str:
        return found[0] if _YEAR.fullmatch(found[0]) else f"{float(found[0]) + 1:g}"

    for found in _NUMBER.finditer(text):
        if moved(found) != found[0]:
            return text[: found.start()] + moved(found) + text[found.end() :]
    return text


def another_sentence(text: str, other: str) -> str:
    """Put another document's sentence in the place of the first one."""
    sentence = _SENTENCE.search(other)
    new = sentence[0].strip() if sentence else other
    return _SENTENCE.sub(lambda _: new, text, count=1) if _SENTENCE.search(text) else new


_EDITS: tuple[tuple[str, Edit], ...] = (
    ("number", another_number),
    ("date", another_year),
    ("sentence", another_sentence),
)


class Library:
    """The documents as they are after the changes so far, for deciding on the next one."""

    def __init__(self, documents: Iterable[Document]) -> None:
        documents = list(documents)
        self._chunks = {one.source: one.chunks for one in documents}
        self._cited = {one.source: sorted(one.cited) for one in documents}
        self._inserted = 0

    def __contains__(self, source: object) -> bool:
        return source in self._chunks

    def edited(self, source: str, drawn: random.Random) -> Change:
        """Change a number, a date or a sentence, whichever there is, of one chunk.

        It is one that an annotator found an answer in, where those are known.
        """
        chunks = list(self._chunks[source])
        at = drawn.choice(self._cited[source] or range(len(chunks)))
        other = drawn.choice(self._chunks[drawn.choice(list(self._chunks))])
        for how, edit in drawn.sample(_EDITS, len(_EDITS)):
            text = edit(chunks[at], other)
            if text != chunks[at]:
                chunks[at] = text
                return self._kept(Change(source, tuple(chunks), how))
        chunks[at] += " This was revised."
        return self._kept(Change(source, tuple(chunks), "sentence"))

    def inserted(self, question: Question, drawn: random.Random) -> Change:
        """Add a document that the question will retrieve: it repeats its words."""
        self._inserted += 1
        other = drawn.choice(self._chunks[drawn.choice(list(self._chunks))])
        text = f"{question.text} {another_sentence('', other)}"
        return self._kept(Change(f"inserted-{self._inserted}", (text[:480],), "insert"))

    def deleted(self, source: str) -> Change:
        """Remove a document."""
        return self._kept(Change(source, None, "delete"))

    def _kept(self, change: Change) -> Change:
        if change.chunks is None:
            del self._chunks[change.source]
        else:
            self._chunks[change.source] = change.chunks
        return change


def batch(
    library: Library, questions: Sequence[Question], count: int, drawn: random.Random
) -> Iterator[Change]:
    """Yield changes of as many documents: of five, three are edits, one an insertion, one a deletion."""
    there = [one for one in questions if one.source in library]
    for at, question in enumerate(drawn.sample(there, min(count, len(there)))):
        if at % 5 == 3:
            yield library.inserted(question, drawn)
        elif at % 5 == 4:
            yield library.deleted(question.source)
        else:
            yield library.edited(question.source, drawn)
