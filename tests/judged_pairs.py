"""Models that judge pairs in tests: they read a prompt as it was shown, and reply in its form."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

Judgement: TypeAlias = Callable[[str, str], bool]

_SHOWN = re.compile(
    r"^=== (?P<mark>\w{12}) \S+ (?P<number>\d{4})[,，]\s*\S+\n(?P<asked>.*?)"
    r"\n=== (?P=mark) \S+ (?P=number)[,，]\s*\S+\n(?P<stored>.*?)(?=\n=== (?P=mark))",
    re.DOTALL | re.MULTILINE,
)
KNOWN = {
    frozenset(pair)
    for pair in (
        ("How many days does a leap year have?", "What number of days is there in a leap year?"),
        ("Which city is the capital of Portugal?", "What is Portugal's capital city?"),
        ("Who wrote the novel Emma?", "Which author is the novel Emma by?"),
        ("闰年有多少天？", "一个闰年一共有几天？"),
        ("葡萄牙的首都是哪座城市？", "葡萄牙的首都在哪里？"),
        ("《红楼梦》的作者是谁？", "《红楼梦》是谁写的？"),
    )
}
"""The pairs that are shown with others and are known to be the same."""


def pairs_in(prompt: str) -> Mapping[int, tuple[str, str]]:
    """Return the pairs of a prompt by their numbers, as a model sees them."""
    return {int(one["number"]): (one["asked"], one["stored"]) for one in _SHOWN.finditer(prompt)}


def verdicts(prompt: str, same: Judgement) -> list[dict[str, object]]:
    """Return what an able model says of the pairs in a prompt; those that are known it knows."""
    return [
        {
            "pair": number,
            "reason": f"what is asked for is {'equal' if (judged := known or same(*pair)) else 'not'}",
            "same": judged,
        }
        for number, pair in pairs_in(prompt).items()
        for known in [frozenset(pair) in KNOWN]
    ]


def able(same: Judgement) -> Callable[[str], str]:
    """Return a model that judges so."""
    return lambda prompt: json.dumps({"verdicts": verdicts(prompt, same)}, ensure_ascii=False)
