"""Real documents with real questions about them, read from TimeQA and PubMedQA.

Two questions have the same ``meaning`` only where one was made from the other by `rewording`. The
questions of one TimeQA page ask for one relation at different dates: near misses on the same
evidence. Of those with the same annotated answer, or for the same dates, only the first is used, and
none without an answer, so that serving one for another is wrong beyond doubt.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stampcache import canonical

SHORTEST, LONGEST = 40, 480
_DATE = re.compile(r"(?:\b[a-z]{3} )?\b\d{4}\b")
_SENTENCE_END = re.compile(r"(?<=[.!?;]) +")


class Question(Struct, frozen=True):
    """A question, what it means, and the document that it was written for.

    ``how`` says how its words were made; empty: they are those of the data.
    """

    text: str
    meaning: str
    source: str
    how: str = ""


class Document(Struct, frozen=True):
    """Chunks in the order of the text, and questions about them.

    ``cited`` are the positions of the chunks that an annotator found the answers in.
    """

    source: str
    chunks: tuple[str, ...]
    questions: tuple[Question, ...]
    cited: frozenset[int] = frozenset()

    def short(self, most: int) -> "Document":
        """Return it with at most ``most`` chunks: the cited ones before others, in their order."""
        order = sorted(range(len(self.chunks)), key=lambda at: (at not in self.cited, at))
        kept = sorted(order[:most])
        cited = frozenset(new for new, old in enumerate(kept) if old in self.cited)
        return Document(self.source, tuple(self.chunks[at] for at in kept), self.questions, cited)


def readable(text: str) -> str:
    """Return what the embedder is shown of a chunk or question: letters without their accents."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return plain.strip() or "nothing"


def pieces(paragraph: str) -> Iterator[str]:
    """Cut a paragraph between sentences into chunks that an embedder reads whole.

    Headings and crumbs are left out.
    """
    piece = ""
    for sentence in _sentences(paragraph):
        if piece and len(piece) + len(sentence) >= LONGEST:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if len(piece) >= SHORTEST:
        yield piece


def _sentences(paragraph: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(paragraph.strip()):
        yield from (sentence[at : at + LONGEST] for at in range(0, len(sentence), LONGEST))


def _cut(
    paragraphs: Iterable[str], cited: frozenset[int]
) -> tuple[tuple[str, ...], frozenset[int]]:
    chunks: list[str] = []
    found: set[int] = set()
    for at, paragraph in enumerate(paragraphs):
        own = list(pieces(paragraph))
        if at in cited:
            found.update(range(len(chunks), len(chunks) + len(own)))
        chunks += own
    return tuple(chunks), frozenset(found)


def pubmedqa(data: Path) -> list[Document]:
    """Abstracts of medical papers, each with the one question that the paper asks."""
    rows: dict[str, dict[str, Any]] = json.loads(
        (data / "pubmedqa" / "ori_pqal.json").read_text(encoding="utf-8")
    )
    documents = []
    for source, row in rows.items():
        chunks, _ = _cut(row["CONTEXTS"], frozenset())
        asked = Question(row["QUESTION"].strip(), f"pubmedqa/{source}", source)
        if chunks:
            documents.append(Document(source, chunks, (asked,)))
    return _distinct(documents)


def timeqa(data: Path) -> list[Document]:
    """Pages of Wikipedia, each with questions for one relation at several dates."""
    rows: list[dict[str, Any]] = json.loads(
        (data / "timeqa" / "human_annotated_test.json").read_text(encoding="utf-8")
    )
    documents = []
    for row in rows:
        kept, cited = _dated(row["questions"])
        chunks, found = _cut(row["paras"], cited)
        source = str(row["link"]).rpartition("/")[2]
        asked = [Question(text, f"{row['index']}/{at}", source) for at, text in kept]
        if chunks and asked:
            documents.append(Document(source, chunks, tuple(asked), found))
    return _distinct(documents)


def _dated(rows: Sequence[Any]) -> tuple[list[tuple[int, str]], frozenset[int]]:
    """Return the questions with an answer and dates that no earlier one has; the answers' paragraphs."""
    kept: list[tuple[int, str]] = []
    seen: set[str] = {""}
    cited: set[int] = set()
    for at, (text, found) in enumerate(rows):
        answer = found[0]["answer"].strip().lower() if found else ""
        dates = " ".join(_DATE.findall(text.lower())) or text
        if seen.isdisjoint((answer, dates)):
            seen.update((answer, dates))
            kept.append((at, text.strip()))
            cited.update(one["para"] for one in found)
    return kept, frozenset(cited)


def _distinct(documents: Iterable[Document]) -> list[Document]:
    """Leave out questions whose canonical text another one has: their meaning would be in doubt."""
    seen: set[str] = set()
    kept = []
    for document in documents:
        fresh = []
        for one in document.questions:
            text = canonical.text(one.text)
            if text not in seen:
                seen.add(text)
                fresh.append(one)
        if fresh:
            kept.append(Document(document.source, document.chunks, tuple(fresh), document.cited))
    return kept


def joined(source: str, pages: Sequence[Document]) -> Document:
    """Return one long document made of whole pages, one after the other."""
    chunks: tuple[str, ...] = ()
    cited: set[int] = set()
    for page in pages:
        cited.update(len(chunks) + at for at in page.cited)
        chunks += page.chunks
    questions = tuple(
        Question(one.text, one.meaning, source) for page in pages for one in page.questions
    )
    return Document(source, chunks, questions, frozenset(cited))
