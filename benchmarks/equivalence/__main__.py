"""A language model as the judge of pairs: can it be read, is it right, is it believed?

``python -m benchmarks.equivalence`` asks the small local model of the demo, or the endpoint that
``DEEPSEEK_API_KEY`` or ``DEEPSEEK_BASE_URL`` names, through the whole way: prompt, HTTP, reply,
verdicts. Each form of reply is one row. "Believed" are batches in which the judge was right about the
two pairs that are known; verdicts of others count for nothing.
"""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.messages import BaseMessage
from langchain_openai import ChatOpenAI
from msgspec import Struct

from benchmarks import report
from benchmarks.equivalence.questions import Pair, shown
from benchmarks.report import Row
from benchmarks.thresholds import Share
from stampcache.demo.endpoint import Endpoint, chosen, model_endpoint
from stampcache.judging import PairJudge, as_model
from stampcache.judging.equivalence import MOST_PAIRS

PATIENCE_S = 600.0
MOST_TOKENS = 700
_ANY_TEXT = r"root ::= [^\x00]+"
_NUMBER = re.compile(r"^=== \w{12} \S+ (\d{4})[,，]", re.MULTILINE)
_VERDICT = r"""
verdict%s ::= "{\"pair\": %s, \"reason\": \"" reason "\", \"same\": " ("true" | "false") "}"
"""
_REASON = r'reason ::= [^\n{}"\\]{20,90} "."'


class Form(Struct, frozen=True):
    """How the reply is held to a form: what is sent along with a prompt."""

    name: str
    body: Callable[[str], Mapping[str, Any]]
    json_mode: bool = False


def forms(local: bool) -> Sequence[Form]:
    """Return the forms that an endpoint has; the local one holds replies to a grammar of its own."""
    if not local:
        return [Form("free text", lambda _: {}), Form("JSON mode", lambda _: {}, json_mode=True)]
    return [
        Form("free text", lambda _: {"grammar": _ANY_TEXT}),
        Form("JSON mode", lambda _: {}, json_mode=True),
        Form("grammar", lambda prompt: {"grammar": grammar(prompt)}),
    ]


def grammar(prompt: str) -> str:
    """Return a grammar by which each pair of a prompt gets one verdict, in the order shown."""
    numbers = list(dict.fromkeys(_NUMBER.findall(prompt)))
    verdicts = ' ", " '.join(f"verdict{number}" for number in numbers)
    rules = "".join(_VERDICT % (number, number) for number in numbers)
    return f'root ::= "{{\\"verdicts\\": [" {verdicts} "]}}"\n{_REASON}{rules}'


class Asked:
    """A model in a form, whose replies are kept."""

    def __init__(self, endpoint: Endpoint, form: Form) -> None:
        self._form = form
        self._model = ChatOpenAI(
            model=endpoint.model,
            base_url=endpoint.base_url,
            api_key=lambda: endpoint.api_key,
            temperature=0,
            timeout=PATIENCE_S,
            max_retries=0,
        )
        self.said: Counter[bool] = Counter()

    def __call__(self, prompt: str) -> BaseMessage:
        """Return the reply to a prompt."""
        body = {"max_tokens": MOST_TOKENS, **self._form.body(prompt)}
        if self._form.json_mode:
            body["response_format"] = {"type": "json_object"}
        reply = self._model.invoke(prompt, extra_body=body)
        text = str(reply.content)
        for same in (True, False):
            self.said[same] += text.count(f'"same": {msgspec.json.encode(same).decode()}')
        return reply


def row(endpoint: Endpoint, form: Form, given: Sequence[tuple[Pair, bool]]) -> Row:
    """Ask about all pairs in one form, and return what came of it."""
    counts: Counter[str] = Counter()

    def add(name: str, count: int) -> None:
        counts[name] += count

    asked = Asked(endpoint, form)
    judge = PairJudge(
        as_model(asked), deadline_s=PATIENCE_S, calls_per_minute=1_000, now=time.time, event=add
    )
    found = judge.compare([pair for pair, _ in given])
    told = [
        (one.same, same) for one, (_, same) in zip(found, given, strict=True) if not one.failure
    ]
    failures = Counter(one.failure.partition("(")[0].strip() for one in found if one.failure)
    return {
        "model": endpoint.model,
        "form": form.name,
        "pairs": len(given),
        "believed": str(Share(len(told), len(given))),
        "right of believed": str(Share(sum(a == b for a, b in told), len(told))) if told else "-",
        '"same" of different': f"{sum(a for a, b in told if not b)} of {sum(not b for _, b in told)}",
        'said "same" / "not"': f"{asked.said[True]} / {asked.said[False]}",
        "s per call": round(counts["pairs.ms"] / 1_000 / max(counts["pairs.calls"], 1), 1),
        "tokens per pair": round(counts["pairs.tokens"] / len(given)),
        "failures": "; ".join(f"{count} x {name}" for name, count in failures.items()),
    }


def main() -> int:
    """Ask, print one table and write it."""
    given = report.arguments("A language model as the judge of pairs of questions.")
    pairs = shown(MOST_PAIRS if given.quick else 40)
    local = chosen(os.environ) is None
    with model_endpoint() as endpoint:
        rows = [row(endpoint, form, pairs) for form in forms(local)]
    report.show(f"{len(pairs)} pairs, half of them the same, {MOST_PAIRS} a call", rows)
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
