"""A question as tokens, and words in the form in which they are compared (pure)."""

import re
import unicodedata
from collections.abc import Iterator

from msgspec import Struct

from stampcache.guards import words as tables


class Token(Struct, frozen=True, gc=False):
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
    | (?P<mixed>(?<![\w-])(?![A-Za-z]+-?\d+(?:\.\d+)*(?![\w-]))[A-Za-z]+(?:-?[A-Za-z]*\d\w*)+)
    | (?P<number>(?:(?<![\w)])-)?[$€£¥₹]?
        (?:\d+(?:[-/]\d+){2,} | \d{1,3}(?:,\d{3})+(?:\.\d+)? | \d+(?:[.:]\d+)*)
        (?:(?:[kK]|st|nd|rd|th)\b|%)?)
    | (?P<quoted>(?<!\w)(?:'[a-z]+'|"[a-z]+")(?!\w))
    | (?P<word>(?:[A-Za-z]\.){2,} | (?i:covid-19) | [A-Za-z\u00c0-\u024f]+(?:'[A-Za-z]+)?(?:\+\+|\#)?)
    | (?P<stop>[.!?](?=\s) | [:;\n])
    | (?P<han>[\u3400-\u9fff]+)""",
    re.VERBOSE,
)
_PARTS = re.compile(r"[^\W_]+")
_PLAIN_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "‐": "-", "–": "-"})
_SHOUTED_SPACES = 3
_ENDING_LETTERS = 5


def plainly(text: str) -> str:
    """Return the text in one form of signs and quotes; a text that is all capitals in small ones."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_PLAIN_QUOTES)
    shouted = plain.isupper() and plain.count(" ") >= _SHOUTED_SPACES
    return plain.lower() if shouted else plain


def tokens(plain: str) -> Iterator[Token]:
    """Yield the tokens of a text that `plainly` returned: words, numbers, code, Chinese, stops."""
    opens = True
    for match in _TOKEN.finditer(plain):
        kind, text = match.lastgroup or "", match.group()
        if kind == "plain":
            kind = "word"
        if kind == "quoted":
            text = text[1:-1]
            kind = "code" if text in tables.KEYWORDS else "word"
        low = text.lower()
        yield Token(kind, text, low, fold(text) if kind == "word" else low, opens)
        opens = kind == "stop"


def fold(word: str) -> str:
    """Return the form in which words are compared: lower case, one spelling, without inflection."""
    if word[-1] == "s" and len(word) > 2 and word[:-1].isupper():
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
        low = low.removesuffix("ing").removesuffix("ed").removesuffix("ly") or low
    elif len(low) == _ENDING_LETTERS and low.endswith("ed") and low[-3] != "e":
        low = low[:-2]  # liked, loved
    if low[-1] in "ey":
        low = low[:-1].removesuffix("i")
    return low[:-1] if len(low) > 2 and low[-1] == low[-2] else low


def parts(code: str) -> list[str]:
    """Return the folded words that a piece of code is made of: none for an operator."""
    return [fold(part) for part in _PARTS.findall(code)]
