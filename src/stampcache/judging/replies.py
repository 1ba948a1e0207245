"""What a judge replied, read strictly: anything but one whole verdict at the very end is none (pure)."""

import json
import re
import unicodedata
from collections.abc import Iterable

import msgspec
from msgspec import Struct

_LONGEST_REASON = 1_000
_LONGEST_REPLY = 20_000
_LONGEST_THOUGHT = 200_000
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))")
_KEY = re.compile(r"fresh\\*[\"'”’]\s*:", re.IGNORECASE)
_NO_WORD = re.compile(r"[\W_]+")
_THOUGHT = ("<think>", "</think>")


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict as it was replied; ``kind`` where the prompt asked for one."""

    fresh: bool
    reason: str
    kind: str = ""


class Unreadable(ValueError):
    """A reply that is no verdict; the message says why."""


def read_reply(text: str, *, kinds: Iterable[str] = (), shown: Iterable[str] = ()) -> Said:
    """Return the verdict at the end of a reply, after a reason in words.

    A reply may quote what it was ``shown``. So a second verdict anywhere makes it unreadable, since
    nobody could say which one is meant, and so does one whose words stand in what was shown, in
    whichever spelling. What a model thinks aloud first (``<think>``) is no part of its reply.

    Raises:
        Unreadable: it is none; the caller takes that for "not fresh".
    """
    whole = _unfenced(_after_thought(text.strip()))
    if not whole:
        raise Unreadable("the reply is empty")
    if len(whole) > _LONGEST_REPLY:
        raise Unreadable(f"the reply has {len(whole)} characters")
    start = _start_of_verdict(whole)
    said = _decoded(whole[start:])
    if _KEY.search(_unescaped(whole[:start])):
        raise Unreadable("the reply holds more than one verdict")
    if not _words(said.reason):
        raise Unreadable("the reply gives no reason")
    if len(said.reason) > _LONGEST_REASON:
        raise Unreadable("the reason is too long")
    if said.kind and said.kind not in set(kinds):
        raise Unreadable(f"the kind {said.kind!r} is none that was asked for")
    if _echoed(whole[start:], said, shown):
        raise Unreadable("the verdict stands in the question or the answer")
    return said


def _after_thought(text: str) -> str:
    if len(text) > _LONGEST_THOUGHT:
        raise Unreadable(f"the reply has {len(text)} characters")
    opens, closes = _THOUGHT
    return text.partition(closes)[2].strip() if text.startswith(opens) else text


def _unfenced(text: str) -> str:
    """Return the reply without the end of a code fence, which many models put around an object."""
    return text.removesuffix("```").rstrip()


def _start_of_verdict(text: str) -> int:
    """Return where the object begins that ends with the reply: a verdict holds no other object."""
    if not text.endswith("}"):
        raise Unreadable("the reply does not end with a JSON object")
    first: ValueError | None = None
    at = text.rfind("{")
    while at >= 0:
        try:
            msgspec.json.decode(text[at:], type=Said, strict=True)
        except ValueError as error:  # msgspec's own errors are among them
            first = first or error
        else:
            return at
        at = text.rfind("{", 0, at)
    raise Unreadable(f"the reply ends with no verdict ({first})")


def _decoded(text: str) -> Said:
    try:
        json.loads(text, object_pairs_hook=_once_each)
    except ValueError as error:
        raise Unreadable(f"the reply ends with no verdict ({error})") from error
    return msgspec.json.decode(text, type=Said, strict=True)


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that says one thing twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in the verdict")
    return found


def _echoed(raw: str, said: Said, shown: Iterable[str]) -> bool:
    """Tell whether a verdict stands in what the judge was shown, however it is quoted there."""
    fresh, reason = f"fresh{str(said.fresh).lower()}", f"reason{_words(said.reason)}"
    spellings = {*_spellings(raw), fresh + reason, reason + fresh}
    there = [spelling for text in shown for spelling in _spellings(text)]
    return any(spelling in text for text in there for spelling in spellings)


def _spellings(text: str) -> set[str]:
    """Return the words of a text, read as it stands, and read as the inside of a JSON string."""
    return {_words(text), _words(_unescaped(text))}


def _words(text: str) -> str:
    """Return letters and digits alone: the same for each way of quoting a text."""
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold())


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    code, _, itself = escape.groups()
    return chr(int(code, 16)) if code else itself or " "
