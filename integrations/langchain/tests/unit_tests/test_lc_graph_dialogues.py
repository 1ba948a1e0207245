"""Random conversations with agents and graphs, cached and not, each over a checkpointer of its own.

What is in the checkpoints, what streams show and what tools do must be the same. An agent behind the
middleware answers from the cache without its tools; then the conversation without their calls is.
"""

import asyncio
import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from operator import add
from random import Random
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
pytest.importorskip("langgraph")

from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import CachePolicy, Command, interrupt
from lc_dialogues import TOKENS, Filled, ScriptedChat, bare, drawn, listed, vandalise
from msgspec import Struct
from typing_extensions import TypedDict

import stampcache
from langchain_stampcache import (
    CachedChatModel,
    StampCache,
    StampCacheMiddleware,
    StampNodeCache,
    node_key,
)
from stampcache import Scope
from stampcache.testing import FakeClock

LIFE_S = 1_000.0
TENANTS = ("acme", "globex")
KINDS = (
    "plain", "thinking", "blocks", "call", "calls", "mail", "ask", "length", "refusal", "filtered",
    "empty", "fail", "breaks",
)  # fmt: skip
KEPT = frozenset({"plain", "thinking", "blocks", "call", "calls"})
WAYS = ("invoke", "ainvoke", "stream", "astream")


class Say(Struct, frozen=True):
    """Something said in a conversation, or the answer to what it waits for."""

    kind: str
    topic: str
    fresh: bool
    tenant: str
    said_by: str
    way: str
    form: str


class Turn(Struct, frozen=True):
    """Something that is done to the cache between."""

    verb: str
    tenant: str


def _say(draw: Random) -> Say:
    return Say(
        kind=draw.choice((*KINDS, *sorted(KEPT), "mail", "ask")),
        topic=draw.choice(("leave", "travel")),
        fresh=draw.random() < 0.7,
        tenant=draw.choice(("acme", "acme", "globex")),
        said_by=draw.choice(("scope", "metadata")),
        way=draw.choice(WAYS),
        form=draw.choice(("text", "text", "text", "filled")),
    )


class Nth(Struct, frozen=True):
    """The same as another one, said once more."""

    place: int
    fresh: bool
    way: str


def _step(draw: Random) -> Nth | Turn:
    if draw.random() < 0.08:
        return Turn(draw.choice(("clear", "drop", "later")), draw.choice(TENANTS))
    return Nth(draw.choice((0, 0, 0, 1, 1, 2)), draw.random() < 0.7, draw.choice(WAYS))


conversations = st.tuples(drawn(_say, 3), drawn(_step, 12))


# -- the applications -----------------------------------------------------------------------------------


class Office:
    """Tools of an agent; ``sent`` is what left the house."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def tools(self) -> list[Any]:
        @tool
        def lookup(query: str) -> str:
            """Look something up."""
            return f"found {query}"

        @tool
        def count(days: int, place: str) -> str:
            """Count days."""
            return f"{days} days in {place}"

        @tool
        def ask_person(question: str) -> str:
            """Ask a person."""
            return f"a person says {interrupt(question)}"

        @tool
        def send_mail(to: str) -> str:
            """Send a mail."""
            self.sent.append(to)
            return f"sent to {to}"

        return [lookup, count, ask_person, send_mail]


class State(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    found: list[Document]
    said: Annotated[list[str], add]


def graph(model: Any, cache: Any) -> Any:
    """Return a graph whose nodes are cached: two at once, a question to a person, and an answer."""

    def find(state: State) -> Any:
        asked = state["messages"][-1].text
        return {"found": [Document(f"about {asked}", metadata={"source": asked})]}

    def note(state: State) -> Any:
        return {"said": [f"{len(state['messages'])}: {state['messages'][-1].text}"]}

    def gate(state: State) -> Any:
        if state["messages"][-1].text.startswith("ask"):
            return {"said": [f"a person says {interrupt('may I')}"]}
        return {"said": ["on"], "messages": [HumanMessage(f"{state['messages'][-1].text} again")]}

    def answer(state: State) -> Any:
        context = HumanMessage(f"{state['messages'][-1].text}: {state['found']} {state['said']}")
        return {"messages": [model.invoke([*state["messages"], context])]}

    built = StateGraph(State)
    policy = CachePolicy(key_func=node_key)
    for node in (find, note, gate, answer):
        built.add_node(node.__name__, node, cache_policy=policy)
    for start, end in (
        (START, "find"),
        (START, "note"),
        ("find", "gate"),
        ("note", "gate"),
        ("gate", "answer"),
        ("answer", END),
    ):
        built.add_edge(start, end)
    return built.compile(cache=cache, checkpointer=InMemorySaver())


class Done(Struct, frozen=True):
    """What one step of a conversation came to."""

    values: list[Any]
    failed: Any
    asked_back: list[Any]
    state: dict[str, Any]
    new: list[BaseMessage]
    told: list[str]
    sent: list[str]


class App:
    """An agent or a graph, and its conversations, each with its own thread."""

    def __init__(self, kind: str, cache: Any) -> None:
        self.model = model = ScriptedChat(forgets=kind == "middleware")
        self.office = Office()
        self.threads = {"text": 0, "filled": 0}
        if kind == "graph":
            nodes = None if cache is None else StampNodeCache(cache)
            self.forms = dict.fromkeys(self.threads, graph(model, nodes))
            return
        chat: Any = model
        around: list[Any] = []
        if cache is not None and kind == "chat":
            chat = CachedChatModel(inner=model, cache=cache)
        if cache is not None and kind == "model":
            chat = self.model = ScriptedChat(cache=StampCache(cache))
        if cache is not None and kind == "middleware":
            named = ["lookup", "count"]  # the tools hold an office, for which the version stands
            around = [StampCacheMiddleware(cache, cacheable_tools=named, version="1")]
        self.forms = {
            form: create_agent(
                chat,
                tools=self.office.tools(),
                response_format=None if form == "text" else ToolStrategy(Filled),
                middleware=around,
                checkpointer=InMemorySaver(),
            )
            for form in self.threads
        }

    def say(self, say: Say, config: Mapping[str, Any]) -> Done:
        self.threads[say.form] += say.fresh
        app = self.forms[say.form]
        thread = {"thread_id": f"{say.form} {self.threads[say.form]}"}
        whole = {**config, "configurable": thread}
        before = app.get_state(whole)
        given: Any = {"messages": [HumanMessage(f"{say.kind} about {say.topic}")]}
        if before.interrupts:
            given = Command(resume=say.topic)
        told, sent = len(self.model.told), len(self.office.sent)
        values: list[Any] = []
        failed = None
        try:
            _run(app, say.way, given, whole, values)
        except Exception as error:
            failed = bare(error)
        kept = [bare(each) for each in values]
        for each in values:
            vandalise(each)
        after = app.get_state(whole)
        return Done(
            values=kept,
            failed=failed,
            asked_back=[each.value for each in after.interrupts],
            state=copy.deepcopy(after.values),
            new=after.values["messages"][len(before.values.get("messages", ())) :],
            told=self.model.told[told:],
            sent=self.office.sent[sent:],
        )


def _run(app: Any, way: str, given: Any, config: Any, values: list[Any]) -> None:
    """Run a graph; append what it shows of its state, and the text that its model says."""
    modes = ["values", "messages"]
    match way:
        case "invoke":
            values.append(app.invoke(given, config))
        case "ainvoke":
            values.append(asyncio.run(app.ainvoke(given, config)))
        case "stream":
            values += _shown(list(app.stream(given, config, stream_mode=modes)))
        case _:
            values += _shown(asyncio.run(_read(app.astream(given, config, stream_mode=modes))))


async def _read(stream: Any) -> list[Any]:
    return [each async for each in stream]


def _shown(stream: Sequence[Any]) -> list[Any]:
    """Return the states that a stream shows, and last the text of all that was said in it."""
    said = [each[0] for mode, each in stream if mode == "messages"]
    texts = [each.text for each in said if isinstance(each, AIMessage)]
    return [*(each for mode, each in stream if mode == "values"), "".join(texts)]


# -- both side by side ----------------------------------------------------------------------------------


class Twins:
    """A cached application beside an uncached one, in the same conversations."""

    def __init__(self, kind: str, tally: Counter[str]) -> None:
        self.kind, self.tally = kind, tally
        self.clock = FakeClock()
        self.cache = stampcache.open_cache("memory://", ttl_s=LIFE_S, clock=self.clock)
        self.uncached, self.cached = App(kind, None), App(kind, self.cache)
        self.may: set[tuple[str, str]] = set()
        self.must: set[tuple[str, str]] = set()
        self.ids: set[str] = set()

    def go(self, said: Sequence[Say], steps: Sequence[Nth | Turn]) -> None:
        with self.cache:
            for step in steps if said else ():
                if isinstance(step, Turn):
                    self.turn(step)
                else:
                    say = said[step.place % len(said)]
                    self.say(_again(say, step))
            counters = self.cache.stats(everything=True).counters
            assert not [each for each in counters if each.startswith("error.")]

    def turn(self, turn: Turn) -> None:
        gone = {turn.tenant}
        match turn.verb:
            case "clear":
                with stampcache.scope(tenant=turn.tenant):
                    self.cache.clear()
            case "drop":
                self.cache.invalidate(scope=Scope(tenant=turn.tenant))
            case _:
                self.clock.advance(LIFE_S)
                gone = set(TENANTS)
        self.may = {each for each in self.may if each[0] not in gone}
        self.must = {each for each in self.must if each[0] not in gone}

    def say(self, say: Say) -> None:
        config: dict[str, Any] = {}
        around: Any = nullcontext()
        if say.said_by == "scope" or self.kind == "graph":  # which does not see its own config
            around = stampcache.scope(tenant=say.tenant)
        else:
            config = {"metadata": {"tenant": say.tenant}}
        expected = self.uncached.say(say, config)
        with around:
            got = self.cached.say(say, config)
        self.tally["said"] += 1
        assert got.failed == expected.failed
        assert got.asked_back == expected.asked_back
        assert got.sent == expected.sent
        assert Counter(got.told) <= Counter(expected.told)
        skipped = self.kind == "middleware" and got.told != expected.told
        self.same(expected, got, skipped=skipped)
        self.cheap(expected, got)
        self.book(say, expected, got)

    def same(self, expected: Done, got: Done, *, skipped: bool) -> None:
        """Checkpoints and streams are the same; but for the calls of tools that were skipped."""
        if self.kind != "middleware":
            assert bare(got.state) == bare(expected.state)
            shown = [each for each in got.values if isinstance(each, dict)]
            assert shown == [each for each in expected.values if isinstance(each, dict)]
            if (
                self.kind != "graph" or got.told == expected.told
            ):  # a node that does not run says nothing
                assert got.values == expected.values
            return
        assert bare(_talk(got.state)) == bare(_talk(expected.state))
        assert got.state.get("structured_response") == expected.state.get("structured_response")
        if not skipped:
            assert bare(got.new) == bare(expected.new)

    def cheap(self, expected: Done, got: Done) -> None:
        """What was not asked of the model cost nothing, and each message has an id of its own."""
        spent = [each.usage_metadata for each in got.new if isinstance(each, AIMessage)]
        tokens = sum(each["total_tokens"] for each in spent if each)
        if got.failed is None:
            assert tokens == TOKENS * len(got.told)
        ids = [each.id for each in got.new]
        assert None not in ids
        assert len(set(ids)) == len(ids)
        assert self.ids.isdisjoint(map(str, ids))
        self.ids.update(map(str, ids))

    def book(self, say: Say, expected: Done, got: Done) -> None:
        """What was not asked of the model was made before for the same tenant; what must hit does."""
        saved = Counter(expected.told) - Counter(got.told)
        asked = expected.told[:1] if self.kind == "middleware" else list(saved)
        for digest in asked if saved else ():
            assert (say.tenant, digest) in self.may
            self.tally.update(["hits", f"hits by {say.way}", f"hits in form {say.form}"])
            self.tally[f"hits of {say.kind}"] += 1
            self.tally["hits in later turns"] += len(got.state["messages"]) > len(got.new)
        for digest in got.told if self.kind != "middleware" else got.told[:1]:
            assert (say.tenant, digest) not in self.must
        made = {(say.tenant, digest) for digest in got.told}
        if got.failed is None:
            self.may |= made
        if self.kept(say, expected, got):
            self.must |= made

    def kept(self, say: Say, expected: Done, got: Done) -> bool:
        """Tell whether what was made must be found again."""
        if got.failed is not None or got.asked_back or say.kind not in KEPT:
            return False
        if self.kind == "middleware":  # of a later turn the history may be another one
            return len(got.state["messages"]) == len(got.new)
        return self.kind == "graph" or (self.kind == "chat" or say.way in ("invoke", "ainvoke"))


def _again(say: Say, step: Nth) -> Say:
    return Say(say.kind, say.topic, step.fresh, say.tenant, say.said_by, step.way, say.form)


def _talk(state: Mapping[str, Any]) -> list[BaseMessage]:
    """Return what people and the agent said to each other, without its tools."""
    return [
        each
        for each in state["messages"]
        if not isinstance(each, ToolMessage) and not getattr(each, "tool_calls", None)
    ]


SEEDS = 10
QUICK = settings(
    max_examples=12,
    deadline=None,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=list(HealthCheck),
)
APPS = pytest.mark.parametrize("kind", ["chat", "model", "middleware", "graph"])


@APPS
def test_cached_conversations_are_the_uncached_ones(kind: str) -> None:
    @QUICK
    @hypothesis_given(conversations)
    def check(conversation: Any) -> None:
        Twins(kind, Counter()).go(*conversation)

    check()


@APPS
def test_the_conversations_do_hit(kind: str) -> None:
    tally: Counter[str] = Counter()
    for draw in map(Random, range(SEEDS)):
        Twins(kind, tally).go(listed(_say, 3, draw), listed(_step, 12, draw))
    kinds = [*(f"by {way}" for way in WAYS), "in form text", "of call"]
    assert [kind for kind in kinds if not tally[f"hits {kind}"]] == []
    assert tally["hits"] >= 20
    assert tally["hits in later turns"] >= 1
