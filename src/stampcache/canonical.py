"""The one canonical form of texts and values, and the digests taken over it (pure).

Two things that are equal for the application have one form, two that differ have two forms:

* texts: Unicode NFC; outer and repeated white space folded, unless the text carries code, where
  indentation is meaning; case kept (``None`` is not ``none``);
* values: JSON with sorted keys and numbers as RFC 8785 writes them (``1.0`` is ``1``);
* several parts: each with its length before it, so that ``("ab", "c")`` is not ``("a", "bc")``.

What has no such form (an object, NaN) raises `CanonicalError`: it is never keyed by its ``repr``,
which may be a memory address. See ADR 0003.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from stampcache.errors import CanonicalError

DIGEST_BYTES = 16
FORMAT = "v1:"
MAX_DEPTH = 64
_EXACT_INTEGER = 2**53
_INTEGER_BITS = 8_192
_INDENTED_LINE = re.compile(r"\n[ \t]{2,}\S|\n\t\S|```")
_SPACES_AT_LINE_END = re.compile(r"[ \t\r\f\v]+(?=\n|\Z)")


def text(raw: str) -> str:
    """Return the canonical form of a natural-language text.

    A text with a fenced or indented block keeps its lines and indentation (only ends of lines are
    trimmed), since a Python block means something else when its indentation changes.
    """
    if raw.isascii():
        if raw.isprintable() and "  " not in raw and raw == raw.strip(" "):
            return raw  # the common case: its only white space are single blanks
        composed = raw
    else:
        composed = unicodedata.normalize("NFC", raw)
    if "\n" in composed:
        lines = _SPACES_AT_LINE_END.sub("", composed).strip("\n")
        if "\n" in lines and _INDENTED_LINE.search(lines):
            return lines
    return " ".join(composed.split())


def encode(raw: str) -> bytes:
    """Return UTF-8 bytes; lone surrogates are kept apart instead of raising, so any name has a key."""
    return raw.encode("utf-8", "surrogatepass")


def value(raw: object) -> bytes:
    """Return canonical JSON bytes of a JSON-like value.

    Mappings need string keys; tuples count as lists.

    Raises:
        CanonicalError: the value, or something inside it, is not JSON; the message names where.
    """
    plain = _plain(raw, "value", ())
    return encode(json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _plain(raw: object, where: str, around: tuple[int, ...]) -> object:
    """Return builtin data only; ``around`` holds the ids of the containers that we are inside of."""
    if len(around) > MAX_DEPTH or id(raw) in around:
        raise CanonicalError(
            f"{where} contains itself or is nested deeper than {MAX_DEPTH} levels; flatten it."
        )
    if type(raw) is dict:  # the same as below, which takes longer to find out
        return _plain_mapping(raw, where, (*around, id(raw)))
    match raw:
        case None | bool() | str():
            return str.__str__(raw) if isinstance(raw, str) else raw  # an Enum's own str() lies
        case int():
            return _integer(raw, where)
        case float():
            return _number(raw, where)
        case Mapping():
            return _plain_mapping(raw, where, (*around, id(raw)))
        case list() | tuple():
            inside = (*around, id(raw))
            return [_plain(item, f"{where}[{at}]", inside) for at, item in enumerate(raw)]
        case _:
            kind = type(raw).__qualname__
            raise CanonicalError(
                f"{where} is a {kind}, which has no canonical JSON form; pass plain JSON data."
            )


def _plain_mapping(
    raw: Mapping[object, object], where: str, inside: tuple[int, ...]
) -> dict[str, object]:
    plain: dict[str, object] = {}
    for name, item in raw.items():
        if not isinstance(name, str):
            raise CanonicalError(
                f"{where} has the key {name!r}, which is no string; use string keys."
            )
        is_text = type(item) is str and len(inside) <= MAX_DEPTH
        plain[name] = item if is_text else _plain(item, f"{where}.{name}", inside)
    return plain


def _integer(raw: int, where: str) -> int:
    if raw.bit_length() > _INTEGER_BITS:
        raise CanonicalError(
            f"{where} is an integer of over {_INTEGER_BITS} bits; pass it as text."
        )
    return int(raw)


def _number(raw: float, where: str) -> float | int:
    if raw != raw or raw in (float("inf"), float("-inf")):
        raise CanonicalError(f"{where} is {raw}, which JSON cannot carry; give a finite number.")
    return int(raw) if raw.is_integer() and abs(raw) < _EXACT_INTEGER else raw


def joined(parts: Iterable[bytes]) -> bytes:
    """Return the parts as one byte string from which they could be told apart again."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def digest(parts: Sequence[bytes], *, key: bytes = b"", person: bytes = b"") -> str:
    """Return a 128-bit BLAKE2b digest (RFC 7693) of the parts as ``v1:`` and 32 hex digits.

    ``key`` (at most 64 bytes) makes it a keyed digest; ``person`` (at most 16 bytes) separates uses.
    """
    whole = b"%d:%b" % (len(parts[0]), parts[0]) if len(parts) == 1 else joined(parts)
    hashed = hashlib.blake2b(whole, digest_size=DIGEST_BYTES, key=key, person=person)
    return FORMAT + hashed.hexdigest()
