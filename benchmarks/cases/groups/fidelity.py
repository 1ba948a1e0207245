"""H: what a hit is made of."""

import asyncio
import re

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation
from msgspec.structs import replace

from benchmarks.cases.groups.keys import Leave, get_weather
from benchmarks.cases.groups.time import entries_of
from benchmarks.cases.rig import App, Rig, Suite, ask_in_turn, other, saying, ways
from benchmarks.cases.words import Ability, Call, Said
from stampcache.model import Entry
from stampcache.stores.memory import MemoryStore

SUITE = Suite()
ODD = (
    "", " ", "\x00", "a\x00b", "\ud800", "\U0001f600" * 50, "\u202e", "x" * 200_000, "{}", "[1, 2]",
    "---[('stop', None)]", "{question}", "'; DROP TABLE x;--", "\n\n\n", "\ufeff",
)  # fmt: skip
"""Questions that nobody asks on purpose."""


@SUITE.case("H1", "objects of a schema survive", Ability.SCHEMAS)
def structured(rig: Rig) -> None:
    """An object comes back as one of its class, sync and async."""
    app = rig.app()
    app.reply_with(saying(Said(tool=("Leave", {"days": 30}))))
    for is_async in (False, True, False):
        assert ask_in_turn(app, Call(schema=Leave), is_async=is_async).raw == Leave(days=30)
    assert app.calls == 1


class SpoiltStore(MemoryStore):
    """A store whose entries have been written by somebody else."""

    spoilt: tuple[bytes, str] | None = None

    def fetch(self, partition: str, key: str) -> Entry | None:
        """Return an entry with another payload or format, while `spoilt` is set."""
        entry = super().fetch(partition, key)
        if entry is None or self.spoilt is None:
            return entry
        payload, format_ = self.spoilt
        answer = replace(entry.answer, payload=payload, format=format_ or entry.answer.format)
        return replace(entry, answer=answer)


@SUITE.case("H1 (undecodable)", "what cannot be decoded is a miss", Ability.STAMPED)
def undecodable(rig: Rig) -> None:
    """The application is answered, and the entry is made anew."""
    store = SpoiltStore(capacity=100)
    with other(rig, store=store) as spoilt:
        if rig.has(Ability.CORE):
            return  # its answers are texts; what is stored of them is decoded by the store
        app = spoilt.app()
        app.ask(Call())
        for payload in (b"", b"\xff\x00nonsense", b'{"is": "something other"}', b"["):
            store.spoilt = (payload, "")
            for is_async in (False, True):
                calls = app.calls
                assert ask_in_turn(app, Call(), is_async=is_async).text.startswith("Answer")
                assert app.calls == calls + 1, "something undecodable was served"
        store.spoilt = None
        kept = app.ask(Call())
        assert app.ask(Call()).text == kept.text


@SUITE.case("H2/H3/H10", "generations come back as they were", Ability.GENERATIONS)
def generations(rig: Rig) -> None:
    """Of plain text and of chats, one or several, with what stands beside them."""
    cache = rig.base_cache
    kept: list[list[Generation]] = [
        [Generation(text="plain")],
        [Generation(text="one", generation_info={"finish_reason": "stop"}), Generation(text="two")],
        [ChatGeneration(message=AIMessage("chat"))],
        [ChatGeneration(message=AIMessage([{"type": "text", "text": "parts"}]))],
    ]
    for number, generation in enumerate(kept):
        llm = f"[('model', 'm-{number}'), ('stop', None)]"
        prompt = f"prompt {number}"
        assert cache.lookup(prompt, llm) is None
        cache.update(prompt, llm, generation)
        for found in (cache.lookup(prompt, llm), asyncio.run(cache.alookup(prompt, llm))):
            assert isinstance(found, list)
            assert [type(one) for one in found] == [type(one) for one in generation]
            assert [one.text for one in found] == [one.text for one in generation]


@SUITE.case("H4/H14", "calls of tools and metadata survive", Ability.MESSAGES, Ability.REPLIES)
def calls_and_metadata(rig: Rig) -> None:
    """What a model said besides its text: its reasoning, its name, the tools that it wants."""
    app = rig.app()
    app.reply_with(saying(Said(text="Thirty days.", reasoning="It says so.")))
    for is_async in (False, True, False):
        reply = ask_in_turn(app, Call(), is_async=is_async)
        assert (reply.text, reply.reasoning) == ("Thirty days.", "It says so.")
    assert app.calls == 1
    if rig.has(Ability.TOOL_TURNS):
        caller = rig.app()
        caller.reply_with(saying(Said(tool=("get_weather", {"city": "Ulm"}))))
        for is_async in (False, True, False):
            reply = ask_in_turn(caller, Call(tools=[get_weather]), is_async=is_async)
            assert list(reply.tool_calls) == [("get_weather", {"city": "Ulm"})]
        assert caller.calls == 1


@SUITE.case("H6", "calls with a bound response format are kept", Ability.OPTIONS)
def a_response_format(rig: Rig) -> None:
    """And told apart by it."""
    app = rig.app()
    json_ = Call(options={"response_format": {"type": "json_object"}})
    schema = {"name": "leave", "schema": {"type": "object"}}
    strict = Call(options={"response_format": {"type": "json_schema", "json_schema": schema}})
    first, second = app.ask(json_), app.ask(strict)
    assert first.text != second.text
    assert (app.ask(json_).text, app.ask(strict).text) == (first.text, second.text)
    assert app.calls == 2


@SUITE.case("H7", "odd inputs fail nothing")
def odd_inputs(rig: Rig) -> None:
    """They are answered as they would be without a cache; and never with the answer to another one."""
    app = rig.app()
    for is_async in (False, True):
        for number, question in enumerate(ODD):
            app.reply_with(saying(Said(text=f"Number {number} of odd ones")))
            if _vectors(rig):
                ask_in_turn(app, Call(question=question), is_async=is_async)
                continue
            reply = ask_in_turn(app, Call(question=question), is_async=is_async)
            assert reply.text == f"Number {number} of odd ones", repr(question[:20])


def _vectors(rig: Rig) -> bool:
    return rig.has(Ability.VECTORS)


@SUITE.case("H11", "what a caller does to its answer reaches no other")
def a_changed_answer(rig: Rig) -> None:
    """Neither through the answer that was made nor through one that was served, in no way of asking."""
    app = rig.app()
    for number, way in enumerate(ways(rig)):
        question = Call(question=f"Question {number}?")
        first = way(app, question)
        text, essence = first.text, way(app, question).essence
        app.spoil(first)
        for again in ways(rig)[:2] if rig.has(Ability.ONE_ANSWER) else [way]:
            served = again(app, question)
            assert served.text == text
            app.spoil(served)
        kept = way(app, question)
        assert kept.text == text and kept.essence == essence


@SUITE.case("H12", "a hit has an id of its own", Ability.MADE_ANEW)
def ids_of_hits(rig: Rig) -> None:
    """LangGraph takes two messages of one id for one message."""
    app = rig.app()
    ids = [ask_in_turn(app, Call(), is_async=is_async).id for is_async in (False, False, True)]
    given = [each for each in ids if each is not None]
    assert len(set(given)) == len(given) and app.calls == 1


@SUITE.case("H15", "what is stored carries a version", Ability.STAMPED)
def versions_of_payloads(rig: Rig) -> None:
    """An entry of a version that is unknown is a miss."""
    store = SpoiltStore(capacity=100)
    with other(rig, store=store) as versioned:
        app = versioned.app()
        app.ask(Call())
        [entry] = entries_of(store)
        if not entry.answer.payload:
            assert entry.identity.key.startswith("v1:")
            return
        assert re.search(r"[./]\d+$", entry.answer.format)
        later = re.sub(r"\d+$", "99", entry.answer.format)
        store.spoilt = (entry.answer.payload, later)
        assert _calls_after(app) == 2
        store.spoilt = None


def _calls_after(app: App) -> int:
    app.ask(Call())
    return app.calls
