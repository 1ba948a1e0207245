"""What a judge replied, read strictly: anything but one whole verdict at the very end is none (pure)."""

import json
import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from stampcache.judging.reading import (
    LONGEST_REASON,
    Unreadable,
    once_each,
    said_aloud,
    spellings,
    start_of_last,
    unescaped,
    words,
)

__all__ = ["Said", "Unreadable", "read_reply"]

_KEY = re.compile(r"fresh\\*[\"'”’]\s*:", re.IGNORECASE)


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict as it was replied; ``kind`` where the prompt asked for one."""

    fresh: bool
    reason: str
    kind: str = ""


def read_reply(text: str, *, kinds: Iterable[str] = (), shown: Iterable[str] = ()) -> Said:
    """Return the verdict at the end of a reply, after a reason in words.

    A reply may quote what it was ``shown``. So a second verdict anywhere makes it unreadable, since
    nobody could say which one is meant, and so does one whose words stand in what was shown, in
    whichever spelling. What a model thinks aloud first (``<think>``) is no part of its reply.

    Raises:
        Unreadable: it is none; the caller takes that for "not fresh".
    """
    whole = said_aloud(text)
    start = start_of_last(whole, Said)
    said = _decoded(whole[start:])
    if _KEY.search(unescaped(whole[:start])):
        raise Unreadable("the reply holds more than one verdict")
    if not words(said.reason):
        raise Unreadable("the reply gives no reason")
    if len(said.reason) > LONGEST_REASON:
        raise Unreadable("the reason is too long")
    if said.kind and said.kind not in set(kinds):
        raise Unreadable(f"the kind {said.kind!r} is none that was asked for")
    if _echoed(whole[start:], said, shown):
        raise Unreadable("the verdict stands in the question or the answer")
    return said


def _decoded(text: str) -> Said:
    try:
        json.loads(text, object_pairs_hook=once_each)
    except ValueError as error:
        raise Unreadable(f"the reply ends with no verdict ({error})") from error
    return msgspec.json.decode(text, type=Said, strict=True)


def _echoed(raw: str, said: Said, shown: Iterable[str]) -> bool:
    """Tell whether a verdict stands in what the judge was shown, however it is quoted there."""
    fresh, reason = f"fresh{str(said.fresh).lower()}", f"reason{words(said.reason)}"
    ways = {*spellings(raw), fresh + reason, reason + fresh}
    there = [spelling for text in shown for spelling in spellings(text)]
    return any(spelling in text for text in there for spelling in ways)
