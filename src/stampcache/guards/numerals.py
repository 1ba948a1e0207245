"""What a number is, however it is written: digits, English words, Roman or Chinese signs (pure)."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

UNITS: Mapping[str, int] = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen":
    14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "dozen": 12,
}  # fmt: skip
TENS: Mapping[str, int] = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
ROMAN: Mapping[str, int] = {
    "II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9, "XI": 11, "XII": 12,
    "XIII": 13, "XIV": 14,
}  # fmt: skip
WORDS: Mapping[str, int] = {**UNITS, **TENS}
_NAMED = frozenset({*WORDS, *SCALES})
_SPELLED_OUT_LIMIT = 12

_HAN_DIGITS: Mapping[str, int] = {
    "零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3,
    "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
}  # fmt: skip
_HEAD = re.compile(r"\d+(?:\.\d+)?")
_HAN_SCALES: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_HAN = "零〇一二两三四五六七八九十百千万亿"
# A lone numeral is often part of a word (一般, 统一): it counts before a measure word or after 第.
# Typography often sets a space between digits and Chinese signs, and it changes no meaning: 3 天 is 3天.
HAN_NUMBER = re.compile(
    rf"""(?P<ordinal>第?)\ ?(?P<value>
      (?<=第)[{_HAN}]{{1,16}}
    | \d+(?:\.\d+)?[{_HAN[11:]}]*
    | (?:星期|周)[一二三四五六日天]
    | [{_HAN}]{{1,16}}(?=\ ?(?:[个年月日号天周次元块岁倍步种条位名层章页米升斤克度点季]
      |小时|分钟|公里|美元))
    | [零〇一二两三四五六七八九][{_HAN}]{{1,15}})
    \ ?(?P<unit>个?(?:小时|分钟|秒钟?|星期|月|年|季度|周|天|日|号|公里|千米|厘米|毫米|米|公斤|千克|克|吨
      |毫升|升|斤|元|块|美元|欧元|英镑|日元|度)?)""",
    re.VERBOSE,
)


def is_word(low: str) -> bool:
    """Tell whether a word in small letters is a number."""
    return low in _NAMED


def is_small(shown: str) -> bool:
    """Tell whether a number was spelled out and may be no count at all ("two of them", "first")."""
    return UNITS.get(shown.lower(), _SPELLED_OUT_LIMIT + 1) <= _SPELLED_OUT_LIMIT


def goes_on(last: str, low: str) -> bool:
    """Tell whether a word goes on with the number before it: "twenty" "four", "1.5" "million"."""
    if low in SCALES:
        return last in _NAMED or last.lstrip("-$€£¥₹").replace(".", "", 1).isdigit()
    if low not in WORDS:
        return False
    return last in SCALES or (last in TENS and low in UNITS)


def value(run: Sequence[str]) -> str:
    """Return one spelling, in digits, of a number given as words and digits in small letters."""
    if len(run) == 1 and run[0] not in _NAMED:
        return _digits(run[0])
    total, part = Decimal(0), Decimal(0)
    for low in run:
        scale = SCALES.get(low, 0)
        if scale > 100:
            total, part = total + (part or Decimal(1)) * scale, Decimal(0)
        elif scale:
            part = (part or Decimal(1)) * scale
        else:
            part += Decimal(WORDS.get(low, low))
    return _digits(format(total + part, "f"))


def _digits(low: str) -> str:
    """Return one spelling of a number in digits; versions and dates keep all their parts."""
    low = low.rstrip("stndrh").replace(",", "")
    if low[-1] == "k" and low[:-1].lstrip("-").replace(".", "", 1).isdigit():
        low = format(Decimal(low[:-1]) * 1000, "f")
    whole, _, rest = low.partition(".")
    return low if rest.strip("0") else whole


def head_of(numeral: str) -> str:
    """Return the digits that a Chinese numeral begins with, or ``"0"``: 3 of 3万."""
    head = _HEAD.match(numeral)
    return head.group() if head else "0"


def han_value(numeral: str) -> str:
    """Read 二十四 as 24, 3万 as 30000, and 二〇二四, which has no scale, sign by sign."""
    head = _HEAD.match(numeral)
    if head:
        scale = Decimal(1)
        for sign in numeral[head.end() :]:
            scale *= _HAN_SCALES[sign]
        return _digits(format(Decimal(head.group()) * scale, "f"))
    if not any(sign in _HAN_SCALES for sign in numeral):
        return "".join([str(_HAN_DIGITS[sign]) for sign in numeral])
    total = part = digit = 0
    for sign in numeral:
        scale_of = _HAN_SCALES.get(sign, 0)
        if scale_of >= 10**4:
            total, part, digit = (total + part + digit) * scale_of, 0, 0
        elif scale_of:
            part, digit = part + (digit or 1) * scale_of, 0
        else:
            digit = _HAN_DIGITS[sign]
    return str(total + part + digit)
