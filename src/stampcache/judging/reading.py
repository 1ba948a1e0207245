"""What every reply of a judge is read by: where it begins, and whether it only quotes (pure)."""

import re
import unicodedata

import msgspec

LONGEST_REPLY = 20_000
LONGEST_REASON = 1_000
_LONGEST_THOUGHT = 200_000
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))")
_NO_WORD = re.compile(r"[\W_]+")
_THOUGHT = ("<think>", "</think>")


class Unreadable(ValueError):
    """A reply that is no verdict; the message says why."""


def said_aloud(text: str) -> str:
    """Return a reply without what a model thought first (``<think>``) and the end of a code fence.

    Raises:
        Unreadable: nothing is left, or more than anybody writes.
    """
    # Many models put a fence around an object; where it begins does not matter.
    whole = _after_thought(text.strip()).removesuffix("```").rstrip()
    if not whole:
        raise Unreadable("the reply is empty")
    if len(whole) > LONGEST_REPLY:
        raise Unreadable(f"the reply has {len(whole)} characters")
    return whole


def _after_thought(text: str) -> str:
    if len(text) > _LONGEST_THOUGHT:
        raise Unreadable(f"the reply has {len(text)} characters")
    opens, closes = _THOUGHT
    return text.partition(closes)[2].strip() if text.startswith(opens) else text


def once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that says one thing twice: readers differ in which one they take.

    Raises:
        ValueError: it does.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in the verdict")
    return found


def spellings(text: str) -> set[str]:
    """Return the words of a text, read as it stands, and read as the inside of a JSON string."""
    return {words(text), words(unescaped(text))}


def words(text: str) -> str:
    """Return letters and digits alone: the same for each way of quoting a text."""
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold())


def unescaped(text: str) -> str:
    """Return a text as the inside of a JSON string means it."""
    return _ESCAPED.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    code, _, itself = escape.groups()
    return chr(int(code, 16)) if code else itself or " "


def start_of_last(text: str, kind: type) -> int:
    """Return where the object of a kind begins that ends with the reply.

    Raises:
        Unreadable: it ends with none.
    """
    if not text.endswith("}"):
        raise Unreadable("the reply does not end with a JSON object")
    first: ValueError | None = None
    at = text.rfind("{")
    while at >= 0:
        try:
            msgspec.json.decode(text[at:], type=kind, strict=True)
        except ValueError as error:  # msgspec's own errors are among them
            first = first or error
        else:
            return at
        at = text.rfind("{", 0, at)
    raise Unreadable(f"the reply ends with no verdict ({first})")
