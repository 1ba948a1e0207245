"""N: what is never stored."""

from benchmarks.cases.rig import Rig, Suite, ask_in_turn, other, saying, ways
from benchmarks.cases.words import Ability, Call, Model, Said

SUITE = Suite()
REFUSALS = (
    Said(text="I cannot tell.", finish="content_filter"),
    Said(text="I'm sorry, but I can't help with that request."),
    Said(text="I am unable to assist with that."),
    Said(text="\u62b1\u6b49\uff0c\u6211\u65e0\u6cd5\u56de\u7b54\u8fd9\u4e2a\u95ee\u9898\u3002"),
)
APOLOGIES = (
    Said(text="Sorry, something went wrong. Please try again later."),
    Said(text="Internal Server Error"),
    Said(text="An error occurred while processing your request."),
)
UNFINISHED = (Said(text="Annual leave is", finish="length"), Said(text=""), Said(text="  \n"))


def _not_kept(rig: Rig, *replies: Said) -> None:
    for said in replies:
        for way in ways(rig):
            app = rig.app()
            app.reply_with(saying(said))
            question = Call(question=f"Is it {said.text[:40]!r} by {said.finish}?")
            calls = [way(app, question) and app.calls for _ in range(2)]
            assert calls == [1, 2], f"{said.text[:40]!r} ({said.finish}) was stored"


@SUITE.case("N1", "refusals are not stored", Ability.ADMITS)
def refusals(rig: Rig) -> None:
    """Neither what a provider's filter stopped, nor a text that declines."""
    _not_kept(rig, *REFUSALS)


@SUITE.case("N3/N6", "errors and apologies are not stored", Ability.ADMITS)
def failures(rig: Rig) -> None:
    """An error is the caller's, each time anew; so is a text that stands for one."""
    for number, is_async in enumerate((False, True)):
        app = rig.app()

        def fail(question: str, call: int) -> Said:
            if call == 1:
                raise TimeoutError("the model is down")
            return Said(text=f"Answer {call} to: {question}")

        app.reply_with(fail)
        call = Call(question=f"Question {number}?")
        try:
            ask_in_turn(app, call, is_async=is_async)
        except TimeoutError:
            pass
        else:
            raise AssertionError("the failure did not reach the caller")
        assert ask_in_turn(app, call, is_async=is_async).text.startswith("Answer 2")
    _not_kept(rig, *APOLOGIES)


@SUITE.case("N4", "empty and unfinished answers are not stored", Ability.ADMITS)
def empty_answers(rig: Rig) -> None:
    """Nor what was cut off."""
    _not_kept(rig, *UNFINISHED)


@SUITE.case(
    "N5", "only answers of deterministic settings, if that is wanted", Ability.STAMPED,
    Ability.PARAMETERS, Ability.ADMITS,
)  # fmt: skip
def deterministic_settings(rig: Rig) -> None:
    """A temperature of 0 is kept; another one, or none that is known, is not."""
    with other(rig, deterministic_only=True) as strict:
        for temperature, calls in ((0.0, 1), (0.7, 2), (None, 2)):
            app = strict.app(Model(temperature=temperature))
            app.ask(Call())
            app.ask(Call())
            assert app.calls == calls, temperature
    app = rig.app(Model(temperature=0.7))
    assert app.ask(Call()).text == app.ask(Call()).text
