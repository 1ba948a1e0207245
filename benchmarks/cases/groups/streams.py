"""I: streams."""

import asyncio
import contextlib
import warnings

from benchmarks.cases.rig import Rig, Suite, ask_in_turn, saying
from benchmarks.cases.words import Ability, Call, Said

SUITE = Suite()
STREAMED = Call(stream=True)


@SUITE.case("I1/I2/I4/I7", "streams read and fill", Ability.STREAMS)
def streams_read_and_fill(rig: Rig) -> None:
    """Sync and async ones fill for each other; plain calls, too, where both give the same answer."""
    app = rig.app()
    first = app.ask(STREAMED)
    assert app.ask(STREAMED).text == first.text
    assert asyncio.run(app.aask(STREAMED)).text == first.text
    assert app.calls == 1
    other = Call(question="And another one?", stream=True)
    second = asyncio.run(app.aask(other))
    assert app.ask(other).text == second.text and app.calls == 2
    if rig.has(Ability.ONE_ANSWER):
        assert app.ask(Call()).text == first.text
        plain = app.ask(Call(question="A plain one?"))
        assert app.ask(Call(question="A plain one?", stream=True)).text == plain.text
        assert app.calls == 3


@SUITE.case("I3/I6", "a hit is replayed in pieces, and callbacks are told", Ability.STREAMS)
def pieces(rig: Rig) -> None:
    """What shows tokens as they come shows those of a hit, too."""
    app = rig.app()
    first = app.ask(STREAMED)
    found = app.pieces(Call())
    assert len(found) > 1 and "".join(found) == first.text
    if rig.has(Ability.CALLBACKS):
        told = app.tokens_called_back(Call())
        assert len([token for token in told if token]) > 1 and "".join(told) == first.text
    assert app.calls == 1


@SUITE.case("I8", "sync code runs no event loop")
def sync_inside_of_a_loop(rig: Rig) -> None:
    """A sync call works where a loop is running, and leaves none behind."""
    app = rig.app()

    async def inside() -> list[str]:
        found = [app.ask(Call()).text, app.ask(Call()).text]
        if rig.has(Ability.STREAMS):
            found += [app.ask(STREAMED).text, app.ask(STREAMED).text]
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a coroutine that nobody awaited
        texts = asyncio.run(inside())
    assert texts[0] == texts[1]
    assert app.calls == 1 if rig.has(Ability.ONE_ANSWER) else app.calls <= 2


@SUITE.case("I (cut)", "a stream that has no end stores nothing", Ability.STREAMS)
def streams_without_an_end(rig: Rig) -> None:
    """Whether its reader left, the model failed, or it was cut off."""
    app = rig.app()
    if rig.has(Ability.LEAVING):
        app.abandon(Call())
        assert rig.size == 0
        app.break_streams(at=2)
        for is_async in (False, True):
            with contextlib.suppress(ConnectionError):
                ask_in_turn(app, STREAMED, is_async=is_async)
                raise AssertionError("the failure did not reach the caller")
        assert rig.size == 0
        app.break_streams(at=None)
    app.reply_with(saying(Said(text="Annual leave is", finish="length")))
    app.ask(STREAMED)
    asyncio.run(app.aask(STREAMED))
    assert rig.size == 0
