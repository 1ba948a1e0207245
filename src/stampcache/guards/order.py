"""What changes when words change places, or one stands where another stood (pure)."""

import re
from collections.abc import Sequence

from stampcache.guards.alike import common
from stampcache.guards.profile import Profile
from stampcache.guards.tokens import fold
from stampcache.guards.words import ARTICLES, SYMMETRIC, VOICE

_WIDEST = 2
_WIDEST_TURN = 3
_SYMMETRIC = frozenset([fold(word) for word in SYMMETRIC])
_VOICE = frozenset([fold(word) for word in VOICE])
_BE = frozenset([fold(word) for word in ("is", "are", "was", "were", "been", "being", "be")])
_HAN_ROLES = re.compile(
    r"从(?P<a>.{1,8}?)(?:到|去|飞往|转到|换到)(?P<b>.{1,8}?)(?=[的要需怎如有多吗?，。]|$)"
    r"|(?P<c>[^，。?的]{1,8}?)比(?P<d>[^，。?]{1,8}?)(?=[更还要大小高低好快慢多少贵便])"
    r"|把(?P<e>.{1,8}?)(?:换|转|变|翻译|转换|兑换)[成为](?P<f>.{1,8}?)(?=[的要需怎如有多吗?，。]|$)"
)
_HAN_MORE = "更还要"
_HAN_OPPOSED = frozenset(
    ["大小", "小大", "高低", "低高", "快慢", "慢快", "多少", "少多", "贵便", "便贵"]
)
"""How the words begin that two comparisons end in and that are opposites: 贵, 便宜."""


def turned(asked: Profile, stored: Profile) -> bool:
    """Tell whether two parts change places around a third: "from A to B", "from B to A"."""
    if asked.han and stored.han:
        return _turned_han(asked.signs, stored.signs)
    one = [word for word in asked.words if word not in ARTICLES]
    other = [word for word in stored.words if word not in ARTICLES]
    if len(one) == len(other) and sorted(one) == sorted(other):
        return _SYMMETRIC.isdisjoint(one) and _rotated(one, other)
    return _roles_swapped(asked, stored)


def _rotated(one: Sequence[str], other: Sequence[str]) -> bool:
    before = common(one, other)
    after = common(one[before:][::-1], other[before:][::-1])
    one, other = one[before : len(one) - after], other[before : len(other) - after]
    for left in range(1, min(_WIDEST_TURN + 1, len(one))):
        for right in range(1, min(_WIDEST_TURN + 1, len(one) - left)):
            x, middle, y = one[:left], one[left:-right], one[-right:]
            if other == [*y, *middle, *x]:
                return True
    return False


def _roles_swapped(asked: Profile, stored: Profile) -> bool:
    """See "Did A pay B?" beside "Was A paid by B?": the same order, but one of them is passive."""
    if _is_passive(asked) == _is_passive(stored):
        return False
    one = [word for word in asked.words if word not in _VOICE]
    other = [word for word in stored.words if word not in _VOICE]
    return len(one) > _WIDEST and one == other and len(set(one)) == len(one)


def _is_passive(side: Profile) -> bool:
    """Tell whether somebody does something "by" whom, after a word such as "was"."""
    if "by" not in side.words:
        return False
    at = side.words.index("by")
    return side.words[at + 1 :][1:2] != ("way",) and not _BE.isdisjoint(side.words[:at])


def _turned_han(one: str, other: str) -> bool:
    mine, theirs = _HAN_ROLES.search(one), _HAN_ROLES.search(other)
    if not mine or not theirs or mine.lastgroup != theirs.lastgroup:
        return False
    here = [part for part in mine.groups() if part]
    there = [part for part in theirs.groups() if part]
    if here[0] == here[1] or (here[0], here[1]) != (there[1], there[0]):
        return False
    left, right = one[mine.end() :].lstrip(_HAN_MORE), other[theirs.end() :].lstrip(_HAN_MORE)
    return mine.lastgroup != "d" or left[:1] + right[:1] not in _HAN_OPPOSED


def put_in_place(asked: Profile, stored: Profile) -> tuple[Sequence[str], Sequence[str]]:
    """Return what stands in one question where other words stand in the other, or two empties.

    Only where everything around is the same, and at most two words were put in the place of two.
    """
    one, other = asked.content, stored.content
    before = common(one, other)
    one, other = one[before:], other[before:]
    after = common(one[::-1], other[::-1])
    width = max(len(one), len(other)) - after
    if width > _WIDEST or (before + after < width and not _same_frame(asked, stored, width)):
        return (), ()
    return one[: len(one) - after], other[: len(other) - after]


def _same_frame(asked: Profile, stored: Profile, width: int) -> bool:
    """Tell whether two short questions differ in so many words and in nothing else."""
    if len(asked.words) != len(stored.words):
        return False
    pairs = zip(asked.words, stored.words, strict=True)
    return sum(one != other for one, other in pairs) == width < len(asked.words)


def narrowed(asked: Profile, stored: Profile) -> bool:
    """Tell whether one question is "is it so?" and the other the same with one more word in it."""
    if "asks.whether" not in asked.cues.get("question", {}):
        return False
    one = [word for word in asked.words if word not in ARTICLES]
    other = [word for word in stored.words if word not in ARTICLES]
    if abs(len(one) - len(other)) != 1:
        return False
    short, long = (one, other) if len(one) < len(other) else (other, one)
    at = common(short, long)
    content = asked.content if long is one else stored.content
    return short[at:] == long[at + 1 :] and long[at] in content and at < len(short)
