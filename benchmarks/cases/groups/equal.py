"""B: requests that ask the same are the same."""

import asyncio
from collections.abc import Mapping
from typing import Any

from benchmarks.cases.groups.keys import get_weather, tool
from benchmarks.cases.meaning import SAME
from benchmarks.cases.rig import Rig, Suite, ask_in_turn
from benchmarks.cases.words import QUESTION, Ability, Call, Model

SUITE = Suite()
PARAPHRASE = SAME[QUESTION]


@SUITE.case("B1", "ids of messages, runs and calls are not keyed", Ability.HISTORY)
def other_ids(rig: Rig) -> None:
    """Equal chats hit, sync and async, whatever ids they were given."""
    app = rig.app()
    said = [("human", "Hello"), ("ai", "Hello, what would you like to know?")]
    if rig.has(Ability.TOOL_TURNS):
        said += [("human", "The weather in Ulm?"), ("call", "get_weather"), ("tool", "Sunny.")]
    first = app.ask(Call(history=said, ids="one"))
    assert app.ask(Call(history=said, ids="two")).text == first.text
    again = asyncio.run(app.aask(Call(history=said, ids="three")))
    assert again.text == first.text and app.calls == 1


def _turned(given: Any) -> Any:
    """Return the same data, its mappings in another order."""
    if isinstance(given, Mapping):
        return {name: _turned(given[name]) for name in reversed(list(given))}
    return [_turned(one) for one in given] if isinstance(given, list) else given


@SUITE.case("B2/B3", "the order of a mapping does not matter", Ability.PARAMETERS)
def another_order(rig: Rig) -> None:
    """Neither in parameters and what they hold, nor in tools and schemas."""
    params = {"a": {"x": 1, "y": {"p": 1, "q": 2}}, "b": 1, "stop": ["x", "y"]}
    one, two = rig.app(Model(params=params)), rig.app(Model(params=_turned(params)))
    assert one.ask(Call()).text == two.ask(Call()).text
    assert one.calls + two.calls == 1
    if rig.has(Ability.TOOLS):
        given = tool(text="string", limit="integer")
        first = one.ask(Call(tools=[given]))
        assert one.ask(Call(tools=[_turned(given)])).text == first.text


@SUITE.case("B7", "calls with tools can hit", Ability.TOOLS)
def with_tools(rig: Rig) -> None:
    """A plain answer of a model that has tools is kept."""
    app = rig.app()
    first = app.ask(Call(tools=[get_weather]))
    for is_async in (False, True):
        assert ask_in_turn(app, Call(tools=[get_weather]), is_async=is_async).text == first.text
    assert app.calls == 1


@SUITE.case("B8", "turn two is the same after a hit and after a miss", Ability.HISTORY)
def the_second_turn(rig: Rig) -> None:
    """What a hit adds to a message must not reach the key of the next turn."""
    app = rig.app()
    made = app.ask(Call())
    after_miss = app.follow_up(Call(), made, "And for Bob?")
    hit = app.ask(Call())
    assert app.calls == 2
    assert app.follow_up(Call(), hit, "And for Bob?").text == after_miss.text
    again = app.ask(Call())
    assert app.follow_up(Call(), again, "And for Bob?").text == after_miss.text
    assert app.calls == 2


@SUITE.case("B9", "a paraphrase hits inside of a tenant", Ability.MEANING)
def a_paraphrase(rig: Rig) -> None:
    """Isolation is by who asks, not by what the text looks like."""
    app = rig.app()
    for question, other in SAME.items():
        first = app.ask(Call(question=question, tenant="ann"))
        for is_async in (False, True):
            near = ask_in_turn(app, Call(question=other, tenant="ann"), is_async=is_async)
            assert near.text == first.text
    assert app.calls == len(SAME)
    app.ask(Call(question=PARAPHRASE, tenant="bob"))
    assert app.calls == len(SAME) + 1


LEAVE = "Annual leave is thirty days."
TRAVEL = "Travel costs are paid by train."


@SUITE.case("B11/B12", "the question in a rendered prompt is found", Ability.PROMPTS)
def the_question_in_a_prompt(rig: Rig) -> None:
    """By a function and by the template read backwards; other chunks around it do not hide it."""
    for how in ("template", "extractor"):
        app = rig.another().prompted(how, grounding="none")
        first = app.ask(Call(parts=[LEAVE]))
        assert app.ask(Call(question=PARAPHRASE, parts=[LEAVE])).text == first.text, how
        other = app.ask(Call(question=PARAPHRASE, parts=[TRAVEL, LEAVE]))
        assert other.text == first.text and app.calls == 1, how
        checked = rig.another().prompted(how, grounding="recheck")
        first = checked.ask(Call(parts=[LEAVE]))
        assert checked.ask(Call(question=PARAPHRASE, parts=[LEAVE])).text == first.text, how
        changed = checked.ask(Call(parts=[TRAVEL]))
        assert changed.told["reason"] == "evidence changed" and checked.calls == 2, how


@SUITE.case("B13", "who wants fewer generations is given as many", Ability.SEVERAL)
def fewer_generations(rig: Rig) -> None:
    """Of three that are kept two are served, never three; and who wants more makes more."""
    app = rig.app()
    three = list(app.several(Call(), 3))
    two = list(app.several(Call(), 2))
    assert len(two) == 2
    assert two == three[:2] or app.calls == 2
    assert len(app.several(Call(), 4)) == 4
    assert len(app.several(Call(), 1)) == 1
