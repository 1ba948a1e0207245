"""What the guards read in one question: its words, names, amounts, code, negations, cues (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stampcache.guards import amounts, cues, numerals
from stampcache.guards import words as tables
from stampcache.guards.amounts import Amount
from stampcache.guards.measures import CALENDAR, MEASURES
from stampcache.guards.signs import signs
from stampcache.guards.tokens import Token, parts, plainly, tokens


class Profile(Struct, frozen=True, kw_only=True):
    """What the guards read in one question; see `profile`.

    ``words`` are all its words and numbers in folded form and order, ``content`` those that say
    what it is about, ``known`` all forms under which a word of the other question may be found.
    Mappings go from the form that is compared to the text as it was written; ``cues`` holds one of
    them by guard. ``units`` are those that stand without a number. ``han`` tells of Chinese, which
    is kept in ``signs``. ``operators`` are signs that are no words, such as those of "x > 5", in order.
    """

    words: tuple[str, ...]
    content: tuple[str, ...]
    known: Mapping[str, str]
    names: Mapping[str, str]
    codes: Mapping[str, str]
    numbers: Mapping[str, Amount]
    units: Mapping[str, str]
    negations: tuple[str, ...]
    cues: Mapping[str, Mapping[str, str]]
    han: bool
    signs: str
    operators: Sequence[str]


_TITLE_WORDS = 4
_LETTERS = frozenset({"A", "I", "Q"})


def profile(text: str) -> Profile:
    """Return what the guards read in a question, to be compared with that of another one."""
    plain = plainly(text)
    read = tuple(tokens(plain))
    han = not plain.isascii() and any(token.kind == "han" for token in read)
    codes = dict(_codes(read))
    counted = amounts.read(read)
    spoken = [token for token in read if token.kind == "word"]
    found, taken = cues.read([token.low for token in read], read[0].low if read else "")
    if counted.bounds:
        found.setdefault("comparative", {}).update(counted.bounds)
    for guard in ("date", "scope"):
        _drop_units(counted.units, found.get(guard))
    if han:
        cues.read_han(plain, found)
        amounts.read_han(plain, counted)
    named = [token for at, token in enumerate(read) if token.kind == "word" and at not in taken]
    names = _names(named, spoken, everywhere=han)
    names.update(found.pop("name", {}))
    coded = [part for code in codes for part in parts(code)]
    return Profile(
        words=tuple([token.folded for token in read if token.kind != "stop"]),
        content=tuple([token.folded for token in spoken if not _ordinary(token)]),
        known={
            **dict.fromkeys(coded, ""),
            **{token.folded: token.text for token in spoken},
            **names,
        },
        names=names,
        codes=codes,
        numbers=counted.numbers,
        units=counted.units,
        negations=_negations(plain),
        cues=found,
        han=han,
        signs="".join([token.text for token in read if token.kind == "han"]) if han else "",
        operators=signs(text),
    )


def _drop_units(units: dict[str, str], cues: Mapping[str, str] | None) -> None:
    """Forget units that are part of a cue, as in "last year" and "per day"."""
    if units and cues:
        for shown in cues.values():
            for word in shown.split():
                if word in MEASURES:
                    units.pop(MEASURES[word].name, None)


def _ordinary(token: Token) -> bool:
    """Tell whether a word only frames the question (an acronym such as IT or US does not)."""
    low = token.low
    if low in tables.FRAMING or numerals.is_word(low):
        return not (token.text.isupper() and len(low) > 1)
    return "'" in low and (not low.endswith("'s") or low[:-2] in tables.STOP)


def _names(named: Sequence[Token], spoken: Sequence[Token], *, everywhere: bool) -> dict[str, str]:
    """Return capitalised words inside sentences, acronyms and words with inner capitals.

    Capitals say nothing in a text in title case. ``everywhere``: Latin words in a Chinese text are
    names wherever they stand. Units, months and weekdays are no names.
    """
    found: dict[str, str] = {}
    for token in named:
        text, low = token.text, token.low
        if text == low and not everywhere:
            continue
        if text in numerals.ROMAN or text in _LETTERS or low in MEASURES or low in CALENDAR:
            continue
        inner = text[1:] != low[1:] and not text[1:].endswith("'S")
        if inner or (not _ordinary(token) and (everywhere or not token.opens)):
            found[token.folded] = text
    if found and not everywhere and _is_title(spoken):
        return {name: text for name, text in found.items() if text[1:] != text[1:].lower()}
    return found


def _is_title(spoken: Sequence[Token]) -> bool:
    long = [token.text for token in spoken if len(token.text) > 3]
    return len(long) >= _TITLE_WORDS and all(text[0].isupper() for text in long)


def _codes(read: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for at, token in enumerate(read):
        if token.kind == "code":
            yield token.low.strip("`").removesuffix("()"), token.text
        elif token.low in tables.KEYWORDS and _is_head(read, at + 1):
            yield token.low, token.text


def _is_head(read: Sequence[Token], at: int) -> bool:
    return at < len(read) and read[at].low.removesuffix("s") in tables.KEYWORD_HEADS


def _negations(plain: str) -> tuple[str, ...]:
    low = plain.lower()
    if low.isascii() and not any(hint in low for hint in tables.NEGATION_HINTS):
        return ()
    found = tables.NEGATION.finditer(low)
    return tuple([match.group() for match in found if match.group("en") or match.group("zh")])
