"""Of which kind of data a question asks, by rule, in English and Chinese (pure; ADR 0022).

The rules look for words that name what changes at a known pace: prices, news, one's own things. They are
few and plain; where they are silent, an answer lives as long as one of no kind. A guess only ever makes a
life shorter.
"""

import re
from collections.abc import Mapping

from stampcache.ttl import Lifetime

_RULES = (
    (
        "news",
        r"\b(?:today|tonight|right now|currently|at the moment|latest|breaking|news|this (?:morning|"
        r"week|evening)|live score|weather|forecast)\b",
        "今天|现在|目前|最新|新闻|天气|刚刚|本周",
    ),
    (
        "price",
        r"\b(?:price[sd]?|pricing|costs?|how much (?:is|are|does|do)|exchange rates?|stock price|quote|"
        r"in stock|availability|available seats)\b",
        "价格|多少钱|汇率|股价|库存|费用",
    ),
    (
        "personal",
        r"\b(?:my (?:own )?(?:account|balance|order|orders|ticket|tickets|invoice|salary|payslip|leave|"
        r"days|schedule|calendar|booking|appointment|card|subscription)|am i|do i have|have i)\b",
        "我的|我有多少|我还有",
    ),
    (
        "policy",
        r"\b(?:policy|policies|rules?|allowed|entitled|handbook|terms|guidelines?|procedure|complian"
        r"ce|regulations?)\b",
        "政策|规定|制度|条款|手册|是否允许",
    ),
    (
        "catalogue",
        r"\b(?:catalog(?:ue)?|models? (?:do you|are)|products?|features?|specifications?|versions?|"
        r"which plans?)\b",
        "产品|型号|规格|功能|套餐|版本",
    ),
)
_COMPILED = tuple(
    (kind, re.compile(english, re.IGNORECASE), re.compile(chinese))
    for kind, english, chinese in _RULES
)


def kind_of(question: str) -> str:
    """Return the kind of data that a question asks for; empty where no rule says so."""
    for kind, english, chinese in _COMPILED:
        if english.search(question) or chinese.search(question):
            return kind
    return ""


def shorter(kind: str, lifetimes: Mapping[str, Lifetime]) -> str:
    """Return the kind if its answers live shorter than those of none; else none."""
    guessed, common = lifetimes.get(kind), lifetimes.get("")
    if not kind or guessed is None or guessed.ttl_s is None or common is None:
        return ""
    return kind if common.ttl_s is None or guessed.ttl_s < common.ttl_s else ""
