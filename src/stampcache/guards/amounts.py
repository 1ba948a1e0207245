"""The numbers of a question with what they count: quantities, money, dates, versions (pure)."""

import re
from collections.abc import Sequence

from msgspec import Struct

from stampcache.guards import measures, numerals
from stampcache.guards import words as tables
from stampcache.guards.measures import CALENDAR, MEASURES, Measure
from stampcache.guards.tokens import Token

_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_YEARS = range(1800, 2101)
_CLOCK = {"am": 0, "pm": 12, "a.m.": 0, "p.m.": 12}
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)|\w+(?:first|th|third|second)|first|second|third")
_BEFORE_DAY = frozenset({"in", "on", "of", "since", "until", "till", "by", "last", "next", "this"})
_NAMED = frozenset({*numerals.WORDS, *numerals.SCALES})
_VERSIONED = frozenset({"version", "v", "release"})
_BOUNDS = {
    "over": "bound.more", "above": "bound.more", "beyond": "bound.more",
    "under": "bound.less", "below": "bound.less",
}  # fmt: skip
_HAN_UNITS = {"年": "", "月": "m", "日": "d", "号": "d", "季度": "q", "季": "q"}
_HAN_WEEKDAYS = dict(zip("一二三四五六日天", "12345677", strict=True))


class Amount(Struct, frozen=True, gc=False):
    """A number as it was written: its digits, the guard that speaks of it, its unit or ``""``."""

    shown: str
    digits: str
    guard: str
    unit: str = ""
    small: bool = False


class Amounts(Struct, frozen=True, gc=False):
    """What was read: amounts by the form that is compared, units that stand alone, and bounds."""

    numbers: dict[str, Amount]
    units: dict[str, str]
    bounds: dict[str, str]


def read(tokens: Sequence[Token]) -> Amounts:
    """Return the amounts that the tokens of a text hold."""
    found = Amounts({}, {}, {})
    at, count = 0, len(tokens)
    while at < count:
        token = tokens[at]
        if token.kind == "number" or token.low in _NAMED:
            at = _number(tokens, at, found)
        elif token.kind == "stop" or (token.low in tables.STOP and token.low not in CALENDAR):
            at += 1
        else:
            at += _other(tokens, at, found)
    return found


def read_han(plain: str, found: Amounts) -> None:
    """Add the amounts of a Chinese text to those found in it before."""
    for match in numerals.HAN_NUMBER.finditer(plain):
        shown, value, unit = match.group(), match.group("value"), match.group("unit")
        if value[0] in "星周":
            _add(found, "w" + _HAN_WEEKDAYS[value[-1]], Amount(shown, "", "date"))
            continue
        if not unit and not match.group("ordinal") and numerals.head_of(value) == value:
            continue  # a number as any other
        digits = numerals.han_value(value)
        found.numbers.pop(numerals.value([numerals.head_of(value)]), None)  # read without its unit
        measure = MEASURES.get(unit) or MEASURES.get(unit.removeprefix("个"))
        if match.group("ordinal") or not measure:
            dated = _HAN_UNITS.get(unit.removeprefix("个")) if unit else None
            form = digits if dated is None else dated + digits
            _add(found, form, Amount(shown, digits, "number" if dated is None else "date"))
        elif unit in _HAN_UNITS and (unit != "年" or _is_year(digits)):
            _add(found, _HAN_UNITS[unit] + digits, Amount(shown, digits, "date"))
        else:
            _measured(found, digits, shown, measure)


def _add(found: Amounts, form: str, amount: Amount) -> None:
    found.numbers.setdefault(form, amount)


def _measured(found: Amounts, digits: str, shown: str, measure: Measure) -> None:
    guard = "currency" if measure.dimension.startswith("currency") else "number"
    small = numerals.is_small(shown.partition(" ")[0])
    form = measures.quantity(digits, measure)
    _add(found, form, Amount(shown, digits, guard, measure.name, small))


def _other(tokens: Sequence[Token], at: int, found: Amounts) -> int:
    """Read a word that may be a date, a unit or an identifier; return how many were read."""
    token = tokens[at]
    low = token.low
    if token.kind == "mixed":
        _add(found, low.replace("-", ""), Amount(token.text, low, "version"))
    elif low in CALENDAR:
        if low not in measures.UNSURE or _is_day(tokens, at):
            _add(found, CALENDAR[low], Amount(token.text, low, "date"))
    elif low in MEASURES:
        if MEASURES[low].alone:
            found.units[MEASURES[low].name] = token.text
    elif token.text in numerals.ROMAN:
        digits = str(numerals.ROMAN[token.text])
        _add(found, digits, Amount(token.text, digits, "number"))
    elif low == "half":
        return _half(tokens, at, found)
    return 1


def _is_day(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether "may" or "sat" stands where a month or a day would: by a number or "in"."""
    before = tokens[at - 1] if at else None
    if before is not None and (before.kind == "number" or before.low in _BEFORE_DAY):
        return tokens[at].text[0].isupper()
    return at + 1 < len(tokens) and tokens[at + 1].kind == "number"


def _half(tokens: Sequence[Token], at: int, found: Amounts) -> int:
    """Read "half an hour"; return how many words were read."""
    article, unit = _low(tokens, at + 1), _low(tokens, at + 2)
    if article in ("a", "an") and unit in MEASURES:
        _measured(found, "0.5", f"half {article} {unit}", MEASURES[unit])
        return 3
    return 1


def _low(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].low if 0 <= at < len(tokens) and tokens[at].kind != "han" else ""


def _number(tokens: Sequence[Token], begin: int, found: Amounts) -> int:
    """Read the number that begins here and return the place after it and its unit."""
    end = begin + 1
    while end < len(tokens) and numerals.goes_on(tokens[end - 1].low, tokens[end].low):
        end += 1
    lows = [token.low for token in tokens[begin:end]]
    shown = " ".join([token.text for token in tokens[begin:end]])
    before, after = _low(tokens, begin - 1), _low(tokens, end)
    if before in _BOUNDS:
        found.bounds[_BOUNDS[before]] = before
    sign = "".join([one for one in lows[0] if one in measures.SIGNS])
    lows[0] = lows[0].replace(sign, "") if sign else lows[0]
    if sign or lows[0][-1] == "%":
        lows[0] = lows[0].rstrip("%")
        _measured(found, numerals.value(lows), shown, MEASURES[sign or "%"])
        return end
    digits = numerals.value(lows)
    if after in MEASURES and not _ORDINAL.fullmatch(lows[-1]) and not _is_decade(digits, after):
        _measured(found, digits, f"{shown} {tokens[end].text}", MEASURES[after])
        return end + 1
    if before in MEASURES and MEASURES[before].dimension.startswith("currency"):
        found.units.pop(MEASURES[before].name, None)
        _measured(found, digits, f"{tokens[begin - 1].text} {shown}", MEASURES[before])
        return end
    return end + _placed(found, digits, shown, before, after)


def _placed(found: Amounts, digits: str, shown: str, before: str, after: str) -> int:
    """Read a number by the words beside it; return how many of those after it were read with it."""
    dated = _DATE.fullmatch(digits)
    if dated:
        for letter, part in zip(("", "m", "d"), dated.groups(), strict=True):
            form = letter + part.lstrip("0")
            _add(found, form, Amount(shown, form, "date"))
    elif after == "quarter" or before == "q":
        _add(found, "q" + digits, Amount(f"{shown} quarter" if after else "Q" + shown, "", "date"))
        return int(after == "quarter")
    elif after in _CLOCK or ":" in digits:
        _add(found, _clock(digits, after), Amount(f"{shown} {after}".rstrip(), digits, "date"))
        return int(after in _CLOCK)
    elif _is_decade(digits, after):
        _add(found, digits + "s", Amount(shown + "s", digits, "date"))
        return 1
    elif before in CALENDAR or after in CALENDAR:
        form = digits if _is_year(digits) else "d" + digits
        _add(found, form, Amount(shown, digits, "date"))
    else:
        versioned = (
            before in _VERSIONED
            or digits.count(".") > 1
            or ("." in digits and before.isalpha() and before not in tables.STOP)
        )
        guard = (
            "version"
            if versioned
            else "date"
            if _is_year(digits) and "," not in shown
            else "number"
        )
        _add(found, digits, Amount(shown, digits, guard, small=numerals.is_small(shown)))
    return 0


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits.isdigit() and int(digits) in _YEARS


def _is_decade(digits: str, after: str) -> bool:
    return after == "s" and _is_year(digits)


def _clock(digits: str, half: str) -> str:
    """Return a time of day in one form: 3 pm and 15:00 are ``t15:00``."""
    hour, _, minute = digits.partition(":")
    if not (hour.isdigit() and half in _CLOCK):
        return f"t{digits}"
    return f"t{int(hour) % 12 + _CLOCK[half]}:{minute or '00'}"
