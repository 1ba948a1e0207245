"""The documents of the demo: the Python language reference that every CPython carries (pure).

A topic of ``pydoc_data.topics`` becomes a document of plain paragraphs; its text is split into
chunks that a small embedder reads whole.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pydoc_data.topics import topics as _TOPICS

from msgspec import Struct

LONGEST_TOPIC = 12_000
CHUNK_CHARS = 540
OVERLAP_CHARS = 120
HEADING = "# "
_UNDERLINE = re.compile(r"[*=\-~^]{4,}")
_RULE = re.compile(r"[+|=\- ]*[+=\-]{4,}[+|=\- ]*")
_SENTENCE_END = re.compile(r"(?<=[.;:!?]) ")


class Document(Struct, frozen=True):
    """One topic: paragraphs with an empty line between them; a heading starts with ``# ``."""

    source: str
    text: str


class _Section(Struct, frozen=True):
    heading: str
    paragraphs: tuple[str, ...]


def python_reference() -> tuple[Document, ...]:
    """Return the language reference of the running Python, some 70 topics.

    Topics above 12,000 characters (the built-in types and special methods) are left out, so that
    two cores embed the others in well under a minute.
    """
    short = {name: text for name, text in _TOPICS.items() if len(text) <= LONGEST_TOPIC}
    return documents(short)


def documents(topics: Mapping[str, str]) -> tuple[Document, ...]:
    """Return one document per topic, sorted by name.

    A section that several topics share is kept once, in the shortest of them.
    """
    seen: set[tuple[str, ...]] = set()
    kept: list[Document] = []
    for name in sorted(topics, key=lambda name: (len(topics[name]), name)):
        own = [one for one in _sections(topics[name]) if one.paragraphs not in seen]
        seen.update(one.paragraphs for one in own)
        text = "\n\n".join(part for one in own for part in (HEADING + one.heading, *one.paragraphs))
        if text:
            kept.append(Document(name, text))
    return tuple(sorted(kept, key=lambda document: document.source))


def split(text: str) -> list[str]:
    """Split a document's text at paragraphs into chunks of at most 540 characters.

    Each begins with the heading that it stands under. A short last paragraph is repeated at the
    start of the next chunk.
    """
    chunks: list[str] = []
    for section in _headed(text.split("\n\n")):
        opening = f"{section.heading}\n" if section.heading else ""
        packed = _packed(section.paragraphs, CHUNK_CHARS - len(opening))
        chunks += [opening + body for body in packed]
    return chunks


def _sections(raw: str) -> Iterator[_Section]:
    """Yield the sections of a topic that have text of their own."""
    for section in _headed(list(_paragraphs(raw))):
        if section.paragraphs:
            yield section


def _headed(paragraphs: Sequence[str]) -> Iterator[_Section]:
    """Group paragraphs under the heading before them."""
    heading, own = "", list[str]()
    for paragraph in paragraphs:
        if paragraph.startswith(HEADING) and "\n" not in paragraph:
            yield _Section(heading, tuple(own))
            heading, own = paragraph.removeprefix(HEADING), []
        elif paragraph.strip():
            own.append(paragraph)
    yield _Section(heading, tuple(own))


def _paragraphs(raw: str) -> Iterator[str]:
    """Yield readable paragraphs: prose on one line, code as it is, no grammar, no rules."""
    introduced = False
    for block in re.split(r"\n\s*\n", raw.strip("\n")):
        lines = [line.rstrip() for line in block.split("\n") if not _RULE.fullmatch(line)]
        underlined = len(block.split("\n")) == 2 and _UNDERLINE.fullmatch(block.split("\n")[1])
        if underlined:
            yield HEADING + _readable(" ".join(lines[0].split()))
        elif lines and "::=" not in block:
            code = introduced and lines[0].startswith("   ")
            readable = [_readable(line) for line in lines]
            yield "\n".join(readable) if code else " ".join(" ".join(readable).split())
        introduced = block.rstrip().endswith(":") or (introduced and block.startswith("   "))


def _readable(text: str) -> str:
    """Replace what an English embedder does not read, and typographic quotes."""
    plain = text.translate(str.maketrans("“”‘’|", "\"\"'' "))
    return "".join(
        sign if sign.isascii() or unicodedata.category(sign)[0] in "LMNPZ" else " "
        for sign in plain
    )


def _packed(paragraphs: Iterable[str], limit: int) -> Iterator[str]:
    """Yield texts of at most ``limit`` characters, made of whole paragraphs where they fit."""
    packed: list[str] = []
    for piece in (piece for paragraph in paragraphs for piece in _pieces(paragraph, limit)):
        if packed and len("\n".join([*packed, piece])) > limit:
            yield "\n".join(packed)
            last = packed[-1]
            fits = len(last) <= OVERLAP_CHARS and len(last) + 1 + len(piece) <= limit
            packed = [last] if fits else []
        packed.append(piece)
    if packed:
        yield "\n".join(packed)


def _pieces(paragraph: str, limit: int) -> Iterator[str]:
    """Cut a long paragraph at ends of lines or sentences, else of words, else anywhere."""
    rest = paragraph
    while len(rest) > limit:
        head = rest[:limit]
        ends = [match.start() for match in _SENTENCE_END.finditer(head)]
        at = max(head.rfind("\n"), ends[-1] if ends else -1)
        at = at if at > limit // 3 else head.rfind(" ")
        at = at if at > limit // 3 else limit
        yield rest[:at].rstrip()
        rest = rest[at:].lstrip("\n ")
    if rest.strip():
        yield rest
