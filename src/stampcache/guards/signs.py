"""Signs that are no words, and that may be all that two questions differ in (pure).

Operators, currencies, arrows: "x > 5" and "x < 5" are the same words. Signs that come and go in
one and the same question are left out: quotes, brackets, dashes in a sentence, ® and °.
"""

import re
import unicodedata
from collections.abc import Sequence
from types import MappingProxyType

_SIGN = re.compile(
    r"!=|[%&*/\\@#$+<=>^|¢-¥§¬±×÷‰‱\u2044\u20a0-\u20cf\u2190-\u23ff\u25a0-\u2bff\U0001f000-\U0001faff]"
    r"|(?<![A-Za-z0-9_-])[-−](?=\d)|(?<=\d)\s*[-−]\s*(?=\d)"
)
_NARROW = MappingProxyType({"!=": "≠", "−": "-"})
# Of such a kind either question says one thing; another one is another question, however it is worded.
_KINDS = (frozenset("<=>≤≥≠"), frozenset("%‰‱"), frozenset("$¢£¥₩₹€₽₺₫₴₱₿"))


def signs(question: str) -> Sequence[str]:
    """Return the signs of a text in order, in narrow form."""
    text = question if question.isascii() else unicodedata.normalize("NFKC", question)
    return [_NARROW.get(sign.strip(), sign.strip()) for sign in _SIGN.findall(text)]


def apart(one: Sequence[str], other: Sequence[str], *, same_words: bool) -> bool:
    """Tell whether two questions differ in their signs: in any, where their words are the same."""
    if one == other:
        return False
    if same_words:
        return sorted(one) != sorted(other)
    return any(_conflict(kind.intersection(one), kind.intersection(other)) for kind in _KINDS)


def _conflict(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and one != other
