"""Turns a question into one that is near to it and has another answer."""

import random
import re
from collections.abc import Callable, Mapping, Sequence

Corruption = Callable[[str, random.Random], str | None]

_OPPOSITES = """
with/without|before/after|enable/disable|open/close|increase/decrease|minimum/maximum|cheap/expensive
|start/stop|buy/sell|add/remove|install/uninstall|accept/decline|approved/rejected|receive/send
|send/receive|deposit/withdraw|lock/unlock|first/last|more/less|most/least|best/worst|high/low
|higher/lower|old/new|new/old|upload/download|import/export|allow/block|include/exclude|inside/outside
|above/below|long/short|fast/slow|large/small|incoming/outgoing|domestic/international|public/private
|advantages/disadvantages|benefits/risks|can/can't|is/isn't|should/shouldn't|does/doesn't|activate/deactivate
|physical/virtual|credit/debit|debit/credit|past/future|next/previous|current/previous|early/late
|arrive/leave|join/leave|gain/lose|win/lose|hot/cold|safe/dangerous|legal/illegal|create/delete
|working/not working|can/cannot|upgrade/downgrade|lend/borrow|pass/fail|to/from|from/to|in/out|on/off
|up/down|over/under|max/min|least/most|wrong/right|left/right|north/south|parents/children|husband/wife
|employer/employee|teacher/student|lost/found|strengths/weaknesses|causes/effects|temporary/permanent
|paid/unpaid|indoor/outdoor|oldest/youngest|largest/smallest|highest/lowest|longest/shortest
|before/during|after/during|monthly/yearly|daily/weekly|weekly/monthly|free/paid|full/partial
|beginner/advanced|men/women|boys/girls|summer/winter|morning/evening|weekdays/weekends
""".replace("\n", "").split("|")
_FLIPS = [(a, b) for one in _OPPOSITES for a, b in [one.split("/"), one.split("/")[::-1]]]
_PLACES = """
Germany|France|Canada|Japan|Texas|California|the UK|Brazil|India|Spain|Italy|Australia|Mexico|London
|Berlin|Tokyo|Chicago|New York|Kenya|Norway|China|Poland|Ohio|Florida|Ireland|Sweden|Turkey|Egypt
""".replace("\n", "").split("|")
_LIMITS = """
for a business account|for children|on weekends|on my phone|for students|without a receipt|on Android
|on an iPhone|on Windows|on a Mac|for seniors|in the evening|if I am abroad|online|by mail|in person
|for the second time|for a joint account|for free|on a public holiday|for beginners|during pregnancy
|for large orders|in the winter|at night|for the enterprise plan|on the free plan|by phone
|for international orders|for non-members|with a gift card|for a used car|for digital products
|without an account|in the mobile app|for new hires|for contractors|under 18|over 65|with kids
""".replace("\n", "").split("|")
_SCOPES = "all|only|any|every|some|both|the first|the last|most of|half of|none of"
_SCOPE = _SCOPES.split("|")
_SCOPED = re.compile(r"\b(the|my|a|an|all|any|every|some|each|both)\b (?=[a-z]{3,})", re.I)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_WORDS = "two three four five six seven eight nine ten twelve twenty thirty fifty hundred"
_MONTHS = """
January February March April May June July August September October November December
"""
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_DATED = """
last year|next year|this year|last month|next month|yesterday|tomorrow|today|this week|next week
|in 2019|in 2021|in 2024|in the 1990s|since 2020
"""
_WORD_NUMBERS = _WORDS.split()
_DATES = [*_MONTHS.split(), *_DAYS.split()]
_TIMES = _DATED.replace("\n", "").split("|")
_HOW = re.compile(
    r"^(?:how (?:do|can|should|would) (?:i|we|you)|how to) (?P<what>.+?)[?.! ]*$", re.I
)
_CAN = re.compile(r"^(?:can|could|may|should|do) (?:i|we) (?P<what>.+?)[?.! ]*$", re.I)
_OTHERS_HOW = """
How long does it take to {}?|How much does it cost to {}?|Why should I {}?|When can I {}?|
Where can I {}?|Can I {}?|Who can {}?|How often can I {}?|What happens if I {}?|Do I have to {}?|
How do I avoid having to {}?|How do I not {}?|How can I stop someone who wants to {}?|
What happens if I don't {}?|Why can't I {}?|Is it free to {}?|Is it safe to {}?
""".replace("\n", "").split("|")
_WHAT = re.compile(r"^what (?:is|are|was|were) (?P<what>.+?)[?.! ]*$", re.I)
_OTHERS_WHAT = """
Who invented {}?|Why is {} important?|How does {} work?|When was {} introduced?|Where can I find {}?|
How much does {} cost?|What are the risks of {}?|What is not {}?|What are alternatives to {}?|
Who uses {}?|What is the history of {}?|How do I change {}?
""".replace("\n", "").split("|")
_ROUTE = re.compile(r"\bfrom (?P<a>(?:the |my |a )?\w+) to (?P<b>(?:the |my |a )?\w+)", re.I)
_AROUND = re.compile(
    r"\b(?P<a>\w{3,}) (?P<m>before|after|instead of|than|into|over|without|for) "
    r"(?P<b>(?:the |my |a )?\w{3,})",
    re.I,
)
_NEGATED = re.compile(
    r"\b(do|does|did|can|could|should|would|will|is|are|was|were) "
    r"(i|you|we|it|they|he|she|the \w+|my \w+|this|that|there)\b",
    re.I,
)


def opposite(text: str, chance: random.Random) -> str | None:
    """Replace one word by its opposite."""
    known = [one for one in _FLIPS if re.search(rf"\b{re.escape(one[0])}\b", text, re.I)]
    strong = [one for one in known if len(one[0]) > 4] or known
    if not strong:
        return None
    word, other = chance.choice(strong)
    return re.sub(rf"\b{re.escape(word)}\b", other, text, count=1, flags=re.I)


def negated(text: str, chance: random.Random) -> str | None:
    """Put a negation in, or take it out."""
    without = re.sub(r"\b(?:not|never) |n't\b", "", text, count=1)
    if without != text:
        return without
    found = _HOW.match(text)
    if found and chance.random() < 0.6:
        form = chance.choice(
            [
                "How do I not {}?",
                "How do I avoid it if I don't want to {}?",
                "How can I keep from being made to {}?",
                "How to not {}?",
                "How do I never {}?",
                "Why can I not {}?",
            ]
        )
        return form.format(found["what"])
    found = _NEGATED.search(text)
    if not found:
        return f"{text.rstrip('?.! ')} not?" if chance.random() < 0.1 else None
    return f"{text[: found.end()]} not{text[found.end() :]}"


def number(text: str, chance: random.Random) -> str | None:
    """Change one number or date."""
    found = [*_NUMBER.finditer(text)]
    if found:
        one = chance.choice(found)
        return text[: one.start()] + _other(one[0], chance) + text[one.end() :]
    for words in (_WORD_NUMBERS, _DATES):
        there = [word for word in words if re.search(rf"\b{word}\b", text)]
        if there:
            other = chance.choice([word for word in words if word not in there])
            return re.sub(rf"\b{there[0]}\b", other, text, count=1)
    return None


def _other(number_: str, chance: random.Random) -> str:
    digits = re.sub(r"\D", "", number_)
    if len(digits) == 4 and digits[:2] in ("19", "20") and number_.isdigit():
        return str(int(digits) + chance.choice([-10, -4, -2, -1, 1, 2, 3, 5, 10]))
    changed = number_
    while changed == number_:
        kind = chance.randrange(3)
        if kind == 0:
            at = chance.choice([at for at, sign in enumerate(number_) if sign.isdigit()])
            changed = number_[:at] + str(chance.randint(1, 9)) + number_[at + 1 :]
        elif kind == 1 and number_.isdigit():
            changed = str(int(number_) + chance.choice([1, 2, 5, 10, 100]))
        elif number_.isdigit() and len(number_) < 6:
            changed = number_ + "0"
    return changed


def scope(text: str, chance: random.Random) -> str | None:
    """Widen or narrow what is asked about."""
    found = [*_SCOPED.finditer(text)]
    if not found:
        return None
    one = chance.choice(found)
    word = chance.choice([word for word in _SCOPE if word != one[1].lower()])
    keep = (
        f" {one[1]}"
        if one[1].lower() in ("my", "the")
        and word in ("all", "only", "both", "half of", "most of", "none of")
        else ""
    )
    return f"{text[: one.start()]}{word}{keep} {text[one.end() :]}"


def limited(text: str, chance: random.Random) -> str | None:
    """Ask about a special case of it."""
    limit = chance.choice([*_LIMITS, *_TIMES, *(f"in {place}" for place in _PLACES)])
    if chance.random() < 0.25:
        return f"{limit[0].upper()}{limit[1:]}, {text[0].lower()}{text[1:]}"
    return f"{text.rstrip('?.! ')} {limit}?"


def kind(text: str, chance: random.Random) -> str | None:
    """Ask something else about the same."""
    found = _HOW.match(text) or _CAN.match(text)
    if found:
        forms = [one for one in _OTHERS_HOW if not (_CAN.match(text) and one.startswith("Can I"))]
        return chance.choice(forms).format(found["what"])
    found = _WHAT.match(text)
    return chance.choice(_OTHERS_WHAT).format(found["what"]) if found else None


def turned(text: str, chance: random.Random) -> str | None:
    """Let two things change places."""
    del chance
    for pattern in (_ROUTE, _AROUND):
        found = pattern.search(text)
        if found and found["a"].lower() != found["b"].lower():
            one, other = found.span("a"), found.span("b")
            return (
                text[: one[0]]
                + found["b"]
                + text[one[1] : other[0]]
                + found["a"]
                + text[other[1] :]
            )
    return None


EVERY: Sequence[Corruption] = (
    opposite,
    opposite,
    negated,
    number,
    number,
    scope,
    limited,
    limited,
    kind,
    kind,
    turned,
)


class Substituting:
    """Replaces a thing by another of its kind: a name by a name, a word by a related one."""

    def __init__(self, related: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
        self._related = related
        self._names = names

    def word(self, text: str, chance: random.Random) -> str | None:
        """Replace a word of content by a related word that does not mean the same."""
        found = [one for one in re.finditer(r"[a-z]{4,}", text) if one[0] in self._related]
        if not found:
            return None
        one = chance.choice(found)
        return text[: one.start()] + chance.choice(self._related[one[0]]) + text[one.end() :]

    def name(self, text: str, chance: random.Random) -> str | None:
        """Replace a name by another one."""
        found = [*re.finditer(r"(?<=[a-z,] )[A-Z]\w{2,}(?: [A-Z]\w+)*", text)]
        if not found:
            return None
        one = chance.choice(found)
        other = chance.choice(self._names)
        return None if other == one[0] else text[: one.start()] + other + text[one.end() :]


def pairwise(text: str, chance: random.Random) -> tuple[str, str] | None:
    """Return two special cases of a question that are not the same."""
    what = text.rstrip("?.! ")
    draw = chance.randrange(4)
    if draw == 0:
        one, other = chance.sample([f"in {place}" for place in _PLACES], 2)
    elif draw == 1:
        one, other = chance.sample(_LIMITS, 2)
    elif draw == 2:
        one, other = chance.sample(_TIMES, 2)
    else:
        unit = chance.choice(
            [
                "days",
                "months",
                "years",
                "hours",
                "people",
                "dollars",
                "euros",
                "km",
                "users",
                "items",
            ]
        )
        first, second = chance.sample(
            [1, 2, 3, 4, 5, 7, 10, 12, 14, 15, 20, 30, 45, 50, 60, 90, 100, 200, 500], 2
        )
        joint = chance.choice(["after", "for", "within", "with"])
        one, other = f"{joint} {first} {unit}", f"{joint} {second} {unit}"
    return f"{what} {one}?", f"{what} {other}?"
