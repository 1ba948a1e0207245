"""O and P: how the cache fits into an application, and what one request may say."""

import asyncio
import copy
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite, ask_in_turn, other
from benchmarks.cases.words import QUESTION, Ability, Call
from stampcache import Answer, Hit, Request

SUITE = Suite()
DOCS = Path(__file__).parents[3] / "docs"


@SUITE.case("O6", "the caller's arguments are left as they are")
def arguments_are_not_consumed(rig: Rig) -> None:
    """Neither emptied nor changed, so that they may be used again."""
    app = rig.app()
    given: dict[str, Any] = {}
    if rig.has(Ability.OPTIONS):
        given["options"] = {"stop": ["x"], "extra_body": {"a": [1]}, "max_tokens": 8}
    if rig.has(Ability.HISTORY):
        given["history"] = [("human", "Hello"), ("ai", "Hello.")]
    if rig.has(Ability.CONTROLS):
        given["controls"] = {"ttl_s": 60.0}
    before = copy.deepcopy(given)
    texts = {ask_in_turn(app, Call(**given), is_async=way).text for way in (False, True, False)}
    assert given == before and len(texts) == 1 and app.calls == 1
    if rig.has(Ability.HISTORY):
        app.follow_up(Call(), app.ask(Call()), "And for Bob?")  # which looks at its messages


@SUITE.case("O7", "sync and async both work, for each other")
def sync_and_async(rig: Rig) -> None:
    """What one has made the other is served, whichever comes first."""
    app = rig.app()
    for number, first_async in enumerate((False, True)):
        call = Call(question=f"Question {number}?")
        made = ask_in_turn(app, call, is_async=first_async)
        assert ask_in_turn(app, call, is_async=not first_async).text == made.text
        assert ask_in_turn(app, call, is_async=first_async).text == made.text
    assert app.calls == 2


@SUITE.case("O8", "nothing hangs under LlamaIndex", Ability.LLAMA)
def nothing_hangs(rig: Rig) -> None:
    """Inside of running loops, in executors under them, and with many of both at once."""
    app = rig.app()

    async def tangled() -> list[str]:
        inside = app.ask(Call()).text
        threads = [asyncio.to_thread(app.ask, Call(question=f"Thread {n}?")) for n in range(8)]
        tasks = [app.aask(Call(question=f"Task {n}?")) for n in range(8)]
        replies = await asyncio.gather(*threads, *tasks)
        return [inside, *(reply.text for reply in replies)]

    def alone() -> list[str]:
        return asyncio.run(asyncio.wait_for(tangled(), 60))

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(alone).result(90) for _ in range(2)]
    assert found[0] == found[1] and len(set(found[0])) == 17


@SUITE.case(
    "P3", "one request may say no-cache, no-store, a life and a namespace", Ability.CONTROLS
)
def told_otherwise(rig: Rig) -> None:
    """Each of them for this request only."""
    app = rig.app()
    for number, way in enumerate((False, True)):

        def ask(way: bool = way, number: int = number, **said: Any) -> str:
            call = Call(question=f"Question {number}?", **{"tenant": "ann", **said})
            return ask_in_turn(app, call, is_async=way).text

        unstored = ask(controls={"no_store": True})
        kept = ask()
        assert kept != unstored
        assert ask(controls={"no_store": True}) == kept
        fresh = ask(controls={"no_cache": True})
        assert fresh != kept
        assert ask() == fresh
        assert ask(namespace="other") != fresh
        assert ask(namespace="default") == fresh
    mortal = Call(question="How long?", tenant="ann", controls={"ttl_s": 50.0})
    first = app.ask(mortal)
    rig.spend(40.0)
    assert app.ask(mortal).text == first.text
    rig.spend(11.0)
    assert app.ask(mortal).text != first.text


@SUITE.case("P4", "a question may have several answers", Ability.CONTROLS, Ability.VARIETY)
def variety(rig: Rig) -> None:
    """As many as are wanted are made, and then given in turn."""
    app = rig.app()
    varied = Call(controls={"variety": 3})
    texts = [ask_in_turn(app, varied, is_async=number % 2 == 1).text for number in range(9)]
    assert len(set(texts)) == 3 and app.calls == 3


@SUITE.case("P5", "what is served by meaning lives no longer for it", Ability.TIME, Ability.MEANING)
def no_new_life_by_a_hit(rig: Rig) -> None:
    """A paraphrase that was served at the end of an answer's life ends with it."""
    with other(rig, ttl_s=100.0) as mortal:
        app = mortal.app()
        first = app.ask(Call())
        mortal.spend(90.0)
        assert app.ask(Call(question=PARAPHRASE)).text == first.text
        mortal.spend(11.0)
        assert app.ask(Call(question=PARAPHRASE)).text != first.text
        assert app.ask(Call()).text != first.text


@SUITE.case("P7", "a cache can be warmed ahead")
def prewarming(rig: Rig) -> None:
    """What one application was asked, another one of the same settings is served."""
    questions = [f"Question {number}?" for number in range(5)]
    ahead = rig.app()
    made = [ahead.ask(Call(question=question)).text for question in questions]
    app = rig.app()
    assert [app.ask(Call(question=question)).text for question in questions] == made
    assert app.calls == 0
    if rig.has(Ability.CORE):
        rig.cache.update(Request(question=QUESTION), Answer(text="Thirty days."))
        found = rig.cache.lookup(Request(question=PARAPHRASE))
        assert isinstance(found, Hit) and found.answer.text == "Thirty days."


@SUITE.case("P9", "the docs say that hits can be wrong, and how often they were", Ability.CORE)
def false_hits_in_the_docs(rig: Rig) -> None:  # noqa: ARG001 - of the docs
    """A page says that hits by meaning are not always right, with rates and their intervals."""
    page = (DOCS / "explanation" / "what-is-promised.md").read_text(encoding="utf-8")
    assert "wrong" in page
    assert re.search(r"\d+\.\d%? ?\(\d+\.\d%? to \d+\.\d%?\)", page)
