"""What the guards read in one question: its words, names, numbers, code and negations (pure)."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from stampcache.guards import words as tables


class Profile(Struct, frozen=True, kw_only=True):
    """What the guards read in one question.

    ``words`` are all its words and numbers in folded form and order, ``content`` those that say
    what it is about, ``known`` all forms under which a word of the other question may be found.
    Mappings go from the form that is compared to the text as it was written. ``small_numbers``
    were spelled out and may be no count at all ("two of them", "first"). ``han`` tells of Chinese.
    """

    words: tuple[str, ...]
    content: tuple[str, ...]
    known: Mapping[str, str]
    names: Mapping[str, str]
    codes: Mapping[str, str]
    numbers: Mapping[str, str]
    small_numbers: frozenset[str]
    negations: tuple[str, ...]
    han: bool


class _Token(Struct, frozen=True, gc=False):
    """A piece of the text; ``opens`` where it is the first of a sentence."""

    kind: str
    text: str
    low: str
    folded: str
    opens: bool


_TOKEN = re.compile(
    r"""(?P<plain>[A-Za-z]++(?=[ ?,]|\Z))
    | (?P<code>`[^`\n]+`
        | (?<![\w-])--[A-Za-z][\w-]+ | (?<!\S)-[A-Za-z](?!\S)
        | [A-Za-z]\w{0,40}_\w* | __\w+__ | [A-Za-z]\w{0,40}\(\)
        | [A-Za-z]\w{1,40}(?:\.[a-z_]\w+)+(?:\(\))?
        | [=!]==? | <=|>=|&&|\|\||[-=]>|\+=|-=|\*\*|::|\?\?)
    | (?P<number>(?:(?<![\w)])-)?
        (?:\d+(?:[-/]\d+){2,} | \d{1,3}(?:,\d{3})+(?:\.\d+)? | \d+(?:[.:]\d+)*)
        (?:(?:[kK]|st|nd|rd|th)\b)?)
    | (?P<quoted>(?<!\w)(?:'[a-z]+'|"[a-z]+")(?!\w))
    | (?P<word>(?:[A-Za-z]\.){2,} | [A-Za-z\u00c0-\u024f]+(?:'[A-Za-z]+)?(?:\+\+|\#)?)
    | (?P<stop>[.!?](?=\s) | [:;\n])
    | (?P<han>[\u3400-\u9fff]+)""",
    re.VERBOSE,
)
_PARTS = re.compile(r"[^\W_]+")
_PLAIN_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "‐": "-", "–": "-"})
_NUMBER_WORDS: Mapping[str, int] = {**tables.UNITS, **tables.TENS}
_SPELLED_OUT_LIMIT = 12
_TITLE_WORDS = 4
_SHOUTED_SPACES = 3
_ENDING_LETTERS = 5


def profile(text: str) -> Profile:
    """Return what the guards read in a question, to be compared with that of another one."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_PLAIN_QUOTES)
    if plain.isupper() and plain.count(" ") >= _SHOUTED_SPACES:
        plain = plain.lower()
    tokens = tuple(_tokens(plain))
    han = any(token.kind == "han" for token in tokens)
    codes = dict(_codes(tokens))
    numbers = dict(_numbers(tokens))
    small = frozenset([value for value in numbers if _is_small(value, numbers[value])])
    if han:
        numbers.update(_han_numbers(plain))
    spoken = [token for token in tokens if token.kind == "word"]
    coded = [part for code in codes for part in parts(code)]
    return Profile(
        words=tuple([token.folded for token in tokens if token.kind != "stop"]),
        content=tuple([token.folded for token in spoken if not _ordinary(token)]),
        known={**dict.fromkeys(coded, ""), **{token.folded: token.text for token in spoken}},
        names=_names(spoken, everywhere=han),
        codes=codes,
        numbers=numbers,
        small_numbers=small,
        negations=_negations(plain),
        han=han,
    )


def fold(word: str) -> str:
    """Return the form in which words are compared: lower case, one spelling, without inflection."""
    if word[-1] == "s" and word[:-1].isupper():
        word = word[:-1]
    low = word.lower()
    if not low.isalpha():
        low = low.removesuffix("'s").replace("'", "").replace(".", "")
    low = tables.ALIASES.get(low, low)
    if len(low) < 4:
        return low
    if low[-1] == "s" and low[-2] not in "sui":
        low = low[:-2] if low.endswith(("sses", "xes", "ches", "shes")) else low[:-1]
    if len(low) > _ENDING_LETTERS and low[-1] in "gyd":
        low = low.removesuffix("ing").removesuffix("ed").removesuffix("ly")
    if low[-1] in "ey":
        low = low[:-1].removesuffix("i")
    return low[:-1] if len(low) > 2 and low[-1] == low[-2] else low


def parts(code: str) -> list[str]:
    """Return the folded words that a piece of code is made of: none for an operator."""
    return [fold(part) for part in _PARTS.findall(code)]


def _tokens(plain: str) -> Iterator[_Token]:
    opens = True
    for match in _TOKEN.finditer(plain):
        kind, text = match.lastgroup or "", match.group()
        if kind == "plain":
            kind = "word"
        if kind == "quoted":
            text = text[1:-1]
            kind = "code" if text in tables.KEYWORDS else "word"
        low = text.lower()
        yield _Token(kind, text, low, fold(text) if kind == "word" else low, opens)
        opens = kind == "stop"


def _frames(token: _Token) -> bool:
    """Tell whether a word only frames the question (an acronym such as IT or US does not)."""
    low = token.low
    if low in tables.STOP or low in _NUMBER_WORDS or low in tables.SCALES:
        return not (token.text.isupper() and len(low) > 1)
    return "'" in low and (not low.endswith("'s") or low[:-2] in tables.STOP)


def _names(spoken: Sequence[_Token], *, everywhere: bool) -> Mapping[str, str]:
    """Return capitalised words inside sentences, acronyms and words with inner capitals.

    Capitals say nothing in a text in title case. ``everywhere``: Latin words in a Chinese text are
    names wherever they stand.
    """
    long = [token.text for token in spoken if len(token.text) > 3]
    title = len(long) >= _TITLE_WORDS and all(text[0].isupper() for text in long)
    found: dict[str, str] = {}
    for token in spoken:
        text = token.text
        if text in tables.ROMAN or text in ("A", "I"):
            continue
        inner = text[1:] != token.low[1:] and not text[1:].endswith("'S")
        capital = text[0].isupper() and not (token.opens or title or _ordinary(token))
        if inner or capital or (everywhere and not _ordinary(token)):
            found[token.folded] = text
    return found


def _ordinary(token: _Token) -> bool:
    return _frames(token) or token.low in tables.ASKING


def _codes(tokens: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    for token, after in zip(tokens, (*tokens[1:], None), strict=False):
        if token.kind == "code":
            yield token.low.strip("`").removesuffix("()"), token.text
        elif (
            token.low in tables.KEYWORDS
            and after
            and after.low.removesuffix("s") in tables.KEYWORD_HEADS
        ):
            yield token.low, token.text


def _numbers(tokens: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    run: list[_Token] = []
    for token in tokens:
        if run and not _continues(run[-1], token):
            yield _value(run), " ".join([part.text for part in run])
            run = []
        if token.kind == "number" or token.low in _NUMBER_WORDS or token.low in tables.SCALES:
            run.append(token)
        elif token.text in tables.ROMAN:
            yield str(tables.ROMAN[token.text]), token.text
    if run:
        yield _value(run), " ".join([part.text for part in run])


def _continues(last: _Token, token: _Token) -> bool:
    """Tell whether a word goes on with the number before it: "twenty" "four", "1.5" "million"."""
    if token.low in tables.SCALES:
        return last.kind != "number" or last.text.replace(".", "", 1).isdigit()
    if token.low not in _NUMBER_WORDS:
        return False
    return last.low in tables.SCALES or (last.low in tables.TENS and token.low in tables.UNITS)


def _value(run: Sequence[_Token]) -> str:
    if len(run) == 1 and run[0].kind == "number":
        return _digits(run[0].low)
    total, part = Decimal(0), Decimal(0)
    for token in run:
        scale = tables.SCALES.get(token.low, 0)
        if scale > 100:
            total, part = total + (part or Decimal(1)) * scale, Decimal(0)
        elif scale:
            part = (part or Decimal(1)) * scale
        else:
            part += Decimal(_NUMBER_WORDS[token.low] if token.kind == "word" else token.text)
    return _digits(format(total + part, "f"))


def _digits(low: str) -> str:
    """Return one spelling of a number in digits; versions and dates keep all their parts."""
    low = low.rstrip("stndrh").replace(",", "")
    if low[-1] == "k" and low[:-1].lstrip("-").replace(".", "", 1).isdigit():
        low = format(Decimal(low[:-1]) * 1000, "f")
    whole, _, rest = low.partition(".")
    return low if rest.strip("0") else whole


def _is_small(value: str, shown: str) -> bool:
    return shown.lower() in tables.UNITS and int(value) <= _SPELLED_OUT_LIMIT


def _han_numbers(plain: str) -> Iterator[tuple[str, str]]:
    for match in tables.HAN_NUMBER.finditer(plain):
        yield _han_value(match.group()), match.group()


def _han_value(numeral: str) -> str:
    """Read 二十四 as 24 and 二〇二四, which has no scale, digit by digit."""
    if not any(sign in tables.HAN_SCALES for sign in numeral):
        return "".join([str(tables.HAN_DIGITS[sign]) for sign in numeral])
    total = part = digit = 0
    for sign in numeral:
        scale = tables.HAN_SCALES.get(sign, 0)
        if scale >= 10**4:
            total, part, digit = (total + part + digit) * scale, 0, 0
        elif scale:
            part, digit = part + (digit or 1) * scale, 0
        else:
            digit = tables.HAN_DIGITS[sign]
    return str(total + part + digit)


def _negations(plain: str) -> tuple[str, ...]:
    low = plain.lower()
    if low.isascii() and not any(hint in low for hint in tables.NEGATION_HINTS):
        return ()
    found = tables.NEGATION.finditer(low)
    return tuple([match.group() for match in found if match.group("en") or match.group("zh")])
