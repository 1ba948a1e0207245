"""D: conversations."""

from collections.abc import Sequence

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite, ask_in_turn
from benchmarks.cases.words import QUESTION, Ability, Call

SUITE = Suite()
WHO = "What is my name?"
LAST_WORDS = (
    ("cancel it", ["I never use my Filmly plan.", "My gym is too far away.", ""]),
    ("and for a year?", ["How long is leave?", "What is the price?"]),
    ("how do I fix it", ["The lamp flickers.", "The tap drips."]),
)
"""Last messages, each after several beginnings."""


@SUITE.case("D1", "another system prompt is another partition", Ability.SYSTEM)
def another_system_prompt(rig: Rig) -> None:
    """The same question to a lawyer and to a pirate is not the same, nor is its paraphrase."""
    app = rig.app()
    lawyer, pirate = app.ask(Call(system="You are a lawyer.")), app.ask(Call(system="Arr."))
    assert lawyer.text != pirate.text
    assert app.ask(Call(system="You are a lawyer.")).text == lawyer.text
    other = app.ask(Call(question=PARAPHRASE, system="You are a judge."))
    assert other.text not in (lawyer.text, pirate.text)


@SUITE.case("D3", "what one user is told about itself is told to no other", Ability.TENANTS)
def what_is_my_name(rig: Rig) -> None:
    """Nor to another audience inside of the same tenant."""
    app = rig.app()
    for is_async in (False, True):
        replies = [
            ask_in_turn(
                app, Call(question=WHO, tenant=tenant, audience=audience), is_async=is_async
            )
            for tenant, audience in (
                ("acme", "ann"),
                ("acme", "bob"),
                ("acme", None),
                ("other", "ann"),
            )
        ]
        assert len({reply.text for reply in replies}) == 4
    assert app.calls == 4


@SUITE.case("D4/D8", "the same last words after another history never share", Ability.HISTORY)
def another_history(rig: Rig) -> None:
    """They mean nothing without what was said before; a paraphrase of them does not, either."""
    app = rig.app()
    for words, beginnings in LAST_WORDS:
        told = [
            app.ask(Call(question=words, history=_after(beginning))).text
            for beginning in beginnings
        ]
        assert len(set(told)) == len(beginnings)
    first = app.ask(Call(history=_after("The lamp flickers.")))
    second = app.ask(Call(question=PARAPHRASE, history=_after("The tap drips.")))
    assert second.text != first.text


def _after(beginning: str) -> list[tuple[str, str]]:
    return [("human", beginning), ("ai", "I see.")] if beginning else []


@SUITE.case("D5", "a hit leaves the history alone", Ability.HISTORY)
def the_history_after_a_hit(rig: Rig) -> None:
    """The turns that an application passed are those that it still holds."""
    said = [("human", "Hello"), ("ai", "Hello.")]
    app = rig.app()
    call = Call(history=said)
    for _ in range(3):
        reply = app.ask(call)
    assert said == [("human", "Hello"), ("ai", "Hello.")] and app.calls == 1
    first = app.ask(Call())
    app.follow_up(Call(), first, "And for Bob?")
    hit = app.ask(Call())
    app.follow_up(Call(), hit, "And for Bob?")
    assert reply.text


@SUITE.case("D7", "a conversation may be condensed to a question", Ability.CONDENSES)
def condensed_questions(rig: Rig) -> None:
    """What stands alone is looked up: it is shared where it is the same, and not where it is not."""
    app = rig.condensing(_alone)
    filmly, gym = (_after(one) for one in ("About Filmly.", "About Liftwell."))
    first = app.ask(Call(question="cancel it", history=filmly))
    assert app.ask(Call(question="cancel it", history=gym)).text != first.text
    longer = [*_after("Hello."), *filmly]
    for is_async in (False, True):
        call = Call(question="how do I end it", history=longer)
        assert ask_in_turn(app, call, is_async=is_async).text == first.text
    assert app.calls == 2
    assert app.ask(Call(question=QUESTION, history=filmly, tenant="ann")).text != first.text


def _alone(history: Sequence[tuple[str, str]], question: str) -> str:
    about = "Filmly" if "Filmly" in str(history) else "Liftwell"
    return question if question == QUESTION else f"How is {about} cancelled?"
