"""What a judge replied on pairs of questions, read strictly: one verdict for each, or none (pure)."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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
from stampcache.ports import Sameness

_KEY = re.compile(r"(?:verdicts|same)\\*[\"'”’]\s*:", re.IGNORECASE)


class _Said(Struct, frozen=True, forbid_unknown_fields=True):
    """One verdict as it was replied, by the number that the prompt gave to its pair."""

    pair: int
    same: bool
    reason: str


class _Reply(Struct, frozen=True, forbid_unknown_fields=True):
    verdicts: list[_Said]


def read_sameness(
    text: str, numbers: Sequence[int], *, shown: Iterable[str] = ()
) -> Mapping[int, Sameness]:
    """Return for each number the verdict at the end of a reply, or why there is none.

    A number that is missing or stands twice costs its own pair the verdict. One that nobody gave
    costs all of them theirs, since a judge that loses count may have lost it before. So does a second
    object of verdicts: nobody could say which one is meant. A verdict whose reason only quotes what the
    judge was ``shown``, questions or prompt, is none.

    Raises:
        Unreadable: there is no such object; the caller takes that for "not the same", for all pairs.
    """
    whole = said_aloud(text)
    start = start_of_last(whole, _Reply)
    said = _decoded(whole[start:])
    if _KEY.search(unescaped(whole[:start])):
        raise Unreadable("the reply holds more than one list of verdicts")
    strange = {one.pair for one in said} - set(numbers)
    if strange:
        raise Unreadable(f"the reply names pair {min(strange)}, which is none of those shown")
    times = Counter(one.pair for one in said)
    there = {spelling for text in shown for spelling in spellings(text)}
    by_number = {one.pair: _one(one, there) for one in said}
    return {number: _counted(by_number, number, times[number]) for number in numbers}


def _counted(found: Mapping[int, Sameness], number: int, times: int) -> Sameness:
    if times == 1:
        return found[number]
    return _none("the reply leaves this pair out" if not times else "this pair has two verdicts")


def _one(said: _Said, there: Iterable[str]) -> Sameness:
    reason = words(said.reason)
    if not reason:
        return _none("the verdict gives no reason")
    if len(said.reason) > LONGEST_REASON:
        return _none("the reason is too long")
    if any(reason in text for text in there):
        return _none("the reason only quotes what was shown")
    return Sameness(said.same, said.reason.strip())


def _none(failure: str) -> Sameness:
    return Sameness(False, "", failure)


def _decoded(text: str) -> Sequence[_Said]:
    try:
        json.loads(text, object_pairs_hook=once_each)
    except ValueError as error:
        raise Unreadable(f"the reply ends with no verdicts ({error})") from error
    return msgspec.json.decode(text, type=_Reply, strict=True).verdicts
