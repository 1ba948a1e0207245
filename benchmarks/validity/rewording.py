"""Light rewordings of real questions, made by rule, that keep what is asked.

Four ways: a courtesy before the question, a contraction made or undone, the date moved to the other
end, and words replaced from a small table. They are mild: people reword more freely.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from benchmarks.validity.texts import Question

COURTESIES = (
    "Can you tell me: {}",
    "Quick question: {}",
    "Could you please help me with this: {}",
    "I would like to know: {}",
    "Please answer this: {}",
    "Hello! {}",
)
_OPENERS = (
    " do does did is are was were can could should has have may what which who whom whose where "
    "when how why the a an in from between during to "
)
_CONTRACTED: Mapping[str, str] = MappingProxyType(
    {
        "what is": "what's",
        "who is": "who's",
        "where is": "where's",
        "do not": "don't",
        "does not": "doesn't",
        "is not": "isn't",
        "are not": "aren't",
        "can not": "can't",
        "cannot": "can't",
        "it is": "it's",
        "we are": "we're",
    }
)
_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "affect": "influence",
        "influence": "affect",
        "predict": "forecast",
        "improve": "enhance",
        "reduce": "lower",
        "useful": "helpful",
        "effective": "efficacious",
        "associated with": "linked to",
        "necessary": "needed",
        "children": "kids",
        "prior to": "before",
        "reliable": "dependable",
        "which team": "what team",
        "what team": "which team",
        "which person": "who",
        "well known": "famous",
        "located": "situated",
        "job": "occupation",
        "occupation": "profession",
        "wife": "spouse",
        "resided": "lived",
        "lived": "resided",
        "employed by": "working for",
        "organisation": "organization",
        "led by": "headed by",
        "in charge of": "responsible for",
    }
)
_MONTH = r"(?:[A-Z][a-z]{2} )?\d{4}"
_DATE_LAST = re.compile(
    rf"^(?P<rest>[^?,]+?),? (?P<date>(?:from|in|between) {_MONTH}(?: (?:to|and) {_MONTH})?)\?$"
)
_DATE_FIRST = re.compile(r"^(?P<date>(?:In|From|Between|During) [^,?]*\d{4}), +(?P<rest>[^?]+)\?$")


def rewordings(question: Question) -> Iterator[Question]:
    """Yield the question in other words, in each of the ways that apply to it."""
    ways: Mapping[str, Callable[[str], str]] = {
        "courtesy": _courtesy,
        "contraction": _contraction,
        "order": _order,
        "synonym": _synonym,
    }
    for how, way in ways.items():
        text = way(question.text)
        if text != question.text:
            yield replace(question, text=text, how=how)


def _courtesy(text: str) -> str:
    picked = COURTESIES[sum(map(ord, text)) % len(COURTESIES)]
    return picked.format(text if picked.endswith("! {}") else _small(text))


def _contraction(text: str) -> str:
    for long, short in _CONTRACTED.items():
        for old, new in ((long, short), (short, long)):
            changed = _replaced(text, old, new)
            if changed != text:
                return changed
    return text


def _order(text: str) -> str:
    last = _DATE_LAST.match(text)
    if last:
        return f"{_capital(last['date'])}, {_small(last['rest'])}?"
    first = _DATE_FIRST.match(text)
    return f"{_capital(first['rest'])} {_small(first['date'])}?" if first else text


def _synonym(text: str) -> str:
    for old, new in _SYNONYMS.items():
        changed = _replaced(text, old, new)
        if changed != text:
            return changed
    return text


def _replaced(text: str, old: str, new: str) -> str:
    """Replace the first occurrence of whole words, and keep a capital where there was one."""

    def kept(found: re.Match[str]) -> str:
        return _capital(new) if found[0][0].isupper() else new

    return re.sub(rf"\b{re.escape(old)}\b", kept, text, count=1, flags=re.IGNORECASE)


def _small(text: str) -> str:
    """Begin with a small letter, unless the first word is a name or may be one."""
    first = text.split(" ", 1)[0]
    return text[0].lower() + text[1:] if f" {first.lower()} " in _OPENERS else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
