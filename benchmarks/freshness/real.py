"""A real local model as the judge, behind an OpenAI-compatible server: can it be read, is it right?

Each case is an answer that was true when it was stored, looked at `LATER_S` later; in half of the cases
it has changed meanwhile. The model sees the prompt and nothing else. What is measured is the whole way:
prompt, HTTP, reply, verdict.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_openai import ChatOpenAI
from msgspec import Struct

from benchmarks.freshness.facts import DAY_S, DAYS, Page
from benchmarks.freshness.play import SETTINGS, World
from benchmarks.report import Row
from benchmarks.thresholds import Share
from stampcache import Answer, Freshness, Miss, Request, open_cache
from stampcache.demo.endpoint import Endpoint
from stampcache.journal import Verdict

LATER_S = 20 * DAY_S
DEADLINE_S = 3.0
PATIENCE_S = 120.0
MOST_TOKENS = 160
_ANY_TEXT = r"root ::= [^\x00]+"
_FORM = r"""root ::= reason "\n{\"fresh\": " ("true" | "false") ", \"reason\": \"" said "\"}"
reason ::= [^\n{}"\\]{20,200} "."
said ::= [^\n{}"\\]{10,120}
"""


class Case(Struct, frozen=True):
    """An answer that was true at ``stored`` (seconds of the year) and is or is not `LATER_S` later."""

    page: Page
    stored: float
    fresh: bool


class Form(Struct, frozen=True):
    """How the reply is held to a form; ``body`` is sent along."""

    name: str
    body: Mapping[str, Any]
    json_mode: bool = False


def forms(local: bool) -> list[Form]:
    """Return the forms that an endpoint has; the local one holds replies to a grammar of its own."""
    if not local:
        return [Form("free text", {}), Form("JSON mode", {}, json_mode=True)]
    return [
        Form("free text", {"grammar": _ANY_TEXT}),
        Form("JSON mode", {}, json_mode=True),
        Form("grammar", {"grammar": _FORM}),
    ]


def cases(pages: Sequence[Page], count: int) -> list[Case]:
    """Return as many answers that have changed as such that have not, of different pages."""
    changed: list[Case] = []
    same: list[Case] = []
    for page in pages:
        due = [at for at in page.changes if LATER_S < at < DAYS * DAY_S - LATER_S]
        if due and len(changed) <= len(same):
            changed.append(Case(page, due[0] - LATER_S / 2, fresh=False))
        elif page.true_at(0) == page.true_at(LATER_S):
            same.append(Case(page, 0.0, fresh=True))
    return [*changed[: count // 2], *same[: count // 2]]


def model(endpoint: Endpoint, form: Form) -> ChatOpenAI:
    """Return the judge as a user would make it."""
    return ChatOpenAI(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=lambda: endpoint.api_key,
        temperature=0,
        extra_body={"max_tokens": MOST_TOKENS, **form.body},
        timeout=PATIENCE_S,
        max_retries=0,
    )


def verdict(judge: object, case: Case, *, json_mode: bool) -> Verdict:
    """Have a judge asked about one case on the path of a request, and return what it said."""
    world = World([case.page])
    world.move(case.stored)
    settings = Freshness(
        limit=1e-6, on_path=True, deadline_s=PATIENCE_S, json_mode=json_mode, cap_s=365 * DAY_S
    )
    request = Request(question=case.page.question, settings=SETTINGS)
    with open_cache(
        "memory://", judge=judge, freshness=settings, ttl_s=365 * DAY_S, clock=world.clock
    ) as cache:
        answer, chunk = world.answer(request.question), world.chunk(request.question)
        cache.update(request, Answer(text=answer), evidence=[chunk])
        world.move(case.stored + LATER_S)
        assert not isinstance(cache.lookup(request), Miss)
        found = cache.explain(request).verdict
    assert found is not None, "the judge was not asked"
    return found


def row(
    named: str,
    form: Form,
    judge: object,
    given: Sequence[Case],
    advance: Callable[[], object],
) -> Row:
    """Ask about all cases, and return what came of it."""
    found = []
    for case in given:
        found.append(verdict(judge, case, json_mode=form.json_mode))
        advance()
    read = [(one, case) for one, case in zip(found, given, strict=True) if not one.failure]
    spent = [one.seconds for one in found]
    failures = sorted({one.failure.partition(":")[0] for one in found if one.failure})
    served = [one.fresh for one, case in zip(found, given, strict=True) if not case.fresh]
    kept = [one.fresh for one, case in zip(found, given, strict=True) if case.fresh]
    return {
        "group": "real model",
        "model": named,
        "form": form.name,
        "cases": len(given),
        "readable": str(Share(len(read), len(given))),
        "right": str(Share(sum(one.fresh == case.fresh for one, case in read), len(read)))
        if read
        else "-",
        '"fresh" of fresh': f"{sum(kept)} of {len(kept)}",
        '"fresh" of changed': f"{sum(served)} of {len(served)}",
        "p50 s": round(statistics.median(spent), 2),
        f"within {DEADLINE_S:g} s": f"{sum(one <= DEADLINE_S for one in spent)} of {len(spent)}",
        "tokens p50": statistics.median(one.usage.total for one in found),
        "failures": "; ".join(failures),
    }
