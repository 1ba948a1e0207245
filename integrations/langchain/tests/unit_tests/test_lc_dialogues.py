"""Random dialogues with a cached and with an uncached model: the caller cannot tell them apart.

Beside that a ledger holds what may be in the cache: so nothing is served that was not made for that very
tenant, was left half-way, has ended, or was dropped; and what must be there is there.
"""

import copy
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from operator import itemgetter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from lc_dialogues import (
    BATCHES,
    LEFT,
    SCRIPT,
    STORABLE,
    STREAMS,
    TOKENS,
    WAYS,
    Filled,
    LendingShelf,
    Recorder,
    ScriptedChat,
    are_apart,
    bare,
    call,
    drawn,
    listed,
    summed,
    vandalise,
)
from msgspec import Struct, structs

import stampcache
from langchain_stampcache import CachedChain, CachedChatModel, StampCache
from stampcache import Scope, Stamps
from stampcache.testing import FakeClock

LIFE_S = 1_000.0
SHORT_S = 60.0
TENANTS = ("acme", "globex")


@tool
def lookup(query: str) -> str:
    """Look something up."""
    return f"found {query}"


@tool
def count(days: int, place: str) -> str:
    """Count days."""
    return f"{days} days in {place}"


class Prompt(Struct, frozen=True):
    """What is asked, and in which form the answer is wanted."""

    kind: str
    topic: str
    form: str
    option: str


class Ask(Struct, frozen=True):
    """One call: how it is made, who makes it, and what the cache is told.

    ``form`` and ``option`` are set where they are otherwise than those of the prompt.
    """

    prompt: int
    way: str
    chunks: int
    follows: bool
    tenant: str
    said_by: str
    control: str
    form: str | None = None
    option: str | None = None

    def of(self, prompts: Sequence[Prompt]) -> Prompt:
        """Return what it asks."""
        prompt = prompts[self.prompt % len(prompts)]
        form = prompt.form if self.form is None else self.form
        option = prompt.option if self.option is None else self.option
        return structs.replace(prompt, form=form, option=option)


class Turn(Struct, frozen=True):
    """Something that is done to the application between calls."""

    verb: str
    argument: Any


OPTIONS: Mapping[str, dict[str, Any]] = {
    "": {}, "stop": {"stop": ["."]}, "warm": {"temperature": 0.9}, "seed": {"seed": 7},
    "body": {"extra_body": {"thinking": {"type": "disabled"}}},
}  # fmt: skip
CONTROLS: Mapping[str, dict[str, Any]] = {
    "": {}, "no_cache": {"no_cache": True}, "no_store": {"no_store": True},
    "short": {"ttl_s": SHORT_S}, "varied": {"variety": 2},
}  # fmt: skip
FORMS = ("chat", "tools", "filled", "raw", "json", "json raw")


def _prompt(draw: Random) -> Prompt:
    return Prompt(
        kind=draw.choice((*SCRIPT, *sorted(STORABLE), *sorted(STORABLE))),
        topic=draw.choice(("leave", "travel")),
        form=draw.choice(("chat", "tools", *FORMS)),
        option=draw.choice(("", "", "", *OPTIONS)),
    )


def _ask(draw: Random) -> Ask:
    return Ask(
        prompt=draw.choice((0, 0, 0, 1, 1, 2)),
        way=draw.choice(WAYS),
        chunks=draw.choice((1, 3)),
        follows=draw.random() < 0.6,
        tenant=draw.choice(("acme", "acme", "globex")),
        said_by=draw.choice(("scope", "metadata")),
        control=draw.choice((*CONTROLS, "", "", "", "", "")),
        form=draw.choice(("chat", "tools")) if draw.random() < 0.15 else None,
        option=draw.choice(tuple(OPTIONS)) if draw.random() < 0.25 else None,
    )


def _step(draw: Random) -> Ask | Turn:
    if draw.random() < 0.75:
        return _ask(draw)
    verb = draw.choice(
        ("again",) * 5
        + ("otherwise",) * 3
        + ("temperature", "later", "clear", "drop", "drop entry")
    )
    arguments = {
        "again": ("", "", "", *WAYS),
        "otherwise": tuple(OPTIONS),
        "temperature": (0.0, 0.5),
        "later": (1.0, SHORT_S, LIFE_S),
    }
    return Turn(verb, draw.choice(arguments.get(verb, TENANTS)))


dialogues = st.tuples(drawn(_prompt, 3), drawn(_step, 16))


# -- one application, cached or not ---------------------------------------------------------------------


class Done(Struct, frozen=True):
    """What a caller got of a call, what else is seen of it, and what the model was told."""

    got: list[Any]
    failed: Any
    events: list[Any]
    seen: Recorder
    told: list[str]
    replied: list[str]
    asked: int

    def compared(self, *, raw: bool) -> Any:
        """What must be equal."""
        return [self.failed, self.events, self.seen.by_run("model" if raw else "")]


class App:
    """A chat model with all that is made of it, and a conversation that goes on with its own replies."""

    def __init__(self, chat: Any, model: ScriptedChat) -> None:
        self.chat, self.model = chat, model
        in_form = chat.with_structured_output
        self.forms: dict[str, Any] = {
            "chat": chat,
            "tools": chat.bind_tools([lookup, count]),
            "filled": in_form(Filled),
            "raw": in_form(Filled, include_raw=True),
            "json": in_form(Filled, method="json_mode"),
            "json raw": in_form(Filled, method="json_mode", include_raw=True),
        }
        self.history: list[BaseMessage] = []

    def ask(self, ask: Ask, prompt: Prompt, config: Mapping[str, Any]) -> Done:
        recorder = Recorder()
        told, replied = len(self.model.told), len(self.model.replied)
        inputs = self._inputs(ask, prompt)
        options = OPTIONS[prompt.option] if prompt.form in ("chat", "tools") else {}
        got: list[Any] = []
        failed, events = None, []
        try:
            events = call(
                self.forms[prompt.form],
                ask.way,
                inputs,
                {**config, "callbacks": [recorder]},
                options=options,
                got=got,
                chunks=ask.chunks,
            )
        except Exception as error:
            failed = bare(error)
        assert ask.way in STREAMS or are_apart(got)
        kept = copy.deepcopy(got)
        self._goes_on(inputs[0], kept, ask)
        for one in got:
            vandalise(one)
        told_now, replied_now = self.model.told[told:], self.model.replied[replied:]
        return Done(kept, failed, events, recorder, told_now, replied_now, len(inputs[0]))

    def _inputs(self, ask: Ask, prompt: Prompt) -> list[list[BaseMessage]]:
        if not ask.follows:
            self.history = []
        topics = (prompt.topic, "lunch", prompt.topic)
        return [[*self.history, *self._next(f"{prompt.kind} about {each}")] for each in topics]

    def _next(self, text: str) -> list[BaseMessage]:
        """Return what follows the last reply: the results of its tools, or the next question."""
        calls = getattr(self.history[-1], "tool_calls", ()) if self.history else ()
        results: list[BaseMessage] = [
            ToolMessage(f"result of {each['name']}", tool_call_id=str(each["id"])) for each in calls
        ]
        return results or [HumanMessage(text)]

    def _goes_on(self, asked: list[BaseMessage], got: list[Any], ask: Ask) -> None:
        """Keep the conversation for a next turn, if there is a reply to go on with."""
        reply = summed(got) if ask.way in STREAMS else (got or [None])[0]
        goes_on = isinstance(reply, AIMessage) and ask.way not in LEFT and len(asked) < 8
        self.history = [*asked, reply] if goes_on else []


def given(done: Done, ask: Ask) -> Any:
    """Return what the caller got, as it is compared."""
    return bare(summed(done.got)) if ask.way in STREAMS else bare(done.got)


class Ledger:
    """What may be in the cache, and what must be; until when."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._may: dict[tuple[str, str], float] = {}
        self._must: dict[tuple[str, str], float] = {}
        self._varied: set[tuple[str, str]] = set()
        self.last: tuple[str, str] | None = None

    def made(self, ask: Ask, replied: Sequence[str], *, keeps: bool) -> None:
        life_s = SHORT_S if ask.control == "short" else LIFE_S
        for digest in replied if ask.control != "no_store" else ():
            key = (ask.tenant, digest)
            self._may[key] = max(self._may.get(key, 0.0), self._clock.now() + life_s)
            if ask.control == "varied":  # the one that was served may be there beside it
                self._varied.add(key)
                continue
            if key == self.last:  # another entry took the place of the one that was served
                self.last = None
            if keeps:
                self._must[key] = self._clock.now() + life_s * 0.9

    def served(self, tenant: str, digest: str) -> None:
        self.last = (tenant, digest)
        assert self._clock.now() < self._may.get(self.last, -math.inf)

    def may(self, tenant: str, digest: str) -> bool:
        return self._clock.now() < self._may.get((tenant, digest), -math.inf)

    def must(self, tenant: str, digest: str) -> bool:
        return self._clock.now() < self._must.get((tenant, digest), -math.inf)

    def drop(self, tenant: str) -> None:
        for known in (self._may, self._must):
            for key in [key for key in known if key[0] == tenant]:
                del known[key]

    def changed(self) -> None:
        """What was made before may no longer be served, or may again."""
        self._must.clear()

    def drop_last(self) -> None:
        if self.last is not None:
            self._must.pop(self.last, None)
            if self.last not in self._varied:
                self._may.pop(self.last, None)


class Twins:
    """A cached application beside an uncached one, in the same dialogue."""

    def __init__(self, tally: Counter[str], *, seam: str) -> None:
        self.tally = tally
        self.streams = seam == "chat"
        self.clock = FakeClock()
        self.cache = stampcache.open_cache("memory://", ttl_s=LIFE_S, clock=self.clock)
        plain, model = ScriptedChat(), ScriptedChat()
        if seam == "chat":
            chat: Any = CachedChatModel(inner=model, cache=self.cache)
        else:
            chat = model = ScriptedChat(cache=StampCache(self.cache))
        self.uncached, self.cached = App(plain, plain), App(chat, model)
        self.ledger = Ledger(self.clock)
        self.ids: set[str] = set()
        self.entry: str | None = None
        self.said: list[tuple[Ask, Prompt]] = []

    def go(self, prompts: Sequence[Prompt], steps: Sequence[Ask | Turn]) -> None:
        with self.cache:
            for step in steps if prompts else ():
                if isinstance(step, Ask):
                    self.ask(step, step.of(prompts))
                else:
                    self.turn(step)
            counters = self.cache.stats(everything=True).counters
            failed = {each for each in counters if each.startswith("error.")}
            assert failed <= {"error.adapter.not_storable"}  # a stream that gave nothing

    def turn(self, turn: Turn) -> None:
        match turn.verb, turn.argument:
            case "again", way:
                for ask, prompt in list(self.said):
                    self.ask(structs.replace(ask, way=way or ask.way), prompt)
            case "otherwise", option:
                for ask, prompt in list(self.said):
                    self.ask(ask, structs.replace(prompt, option=option))
            case "temperature", value:
                self.uncached.chat.temperature = self.cached.chat.temperature = value
            case "later", seconds:
                self.clock.advance(seconds)
            case "clear", tenant:
                with stampcache.scope(tenant=tenant):
                    self.cache.clear()
                self.ledger.drop(tenant)
            case "drop", tenant:
                self.cache.invalidate(scope=Scope(tenant=tenant))
                self.ledger.drop(tenant)
            case _ if self.entry is not None:
                self.cache.invalidate(entry=self.entry)
                self.ledger.drop_last()

    def ask(self, ask: Ask, prompt: Prompt) -> None:
        if "raw" in prompt.form and ask.way in LEFT:  # which LangChain's own maps do not survive
            ask = structs.replace(ask, way="astream" if ask.way == "aleft" else "stream")
        controls = CONTROLS[ask.control]
        config: dict[str, Any] = {}
        around: Any = nullcontext()
        if ask.said_by == "scope":
            around = stampcache.scope(tenant=ask.tenant, **controls)
        else:
            config = {"metadata": {"tenant": ask.tenant, "stampcache": controls}}
        self.said = [*(self.said if ask.follows else ()), (ask, prompt)]
        expected = self.uncached.ask(ask, prompt, config)
        with around:
            got = self.cached.ask(ask, prompt, config)
        self.same(ask, prompt, expected, got)
        self.truthful(ask, expected, got)
        self.booked(ask, prompt, expected, got)

    def same(self, ask: Ask, prompt: Prompt, expected: Done, got: Done) -> None:
        """The caller cannot tell the two applications apart."""
        if ask.way not in LEFT:
            assert given(got, ask) == given(expected, ask)
            raw = "raw" in prompt.form  # runs in threads that LangChain may not have begun
            assert got.compared(raw=raw) == expected.compared(raw=raw)
            return
        assert got.failed == expected.failed
        if prompt.form in ("chat", "tools"):
            texts = [str(getattr(summed(each.got), "text", "")) for each in (got, expected)]
            shorter, longer = sorted(texts, key=len)
            assert longer.startswith(shorter)
            if len(got.got) == len(expected.got) == ask.chunks:
                assert got.seen.by_run() == expected.seen.by_run()

    def truthful(self, ask: Ask, expected: Done, got: Done) -> None:
        """The model is told nothing else, tokens are those of its replies, and ids are new."""
        assert Counter(got.told) <= Counter(expected.told)
        if self.streams:  # the other seam is not asked for a stream
            assert len(got.seen.reports) == len(got.seen.replies)
        if ask.way not in LEFT:
            assert got.seen.tokens_used == TOKENS * len(got.replied)
        for reply in got.seen.replies:
            assert reply.id not in self.ids
            if reply.id is not None:  # LangChain gives none to a hit of its ``cache=``
                self.ids.add(reply.id)

    def booked(self, ask: Ask, prompt: Prompt, expected: Done, got: Done) -> None:
        """Each hit is of something that was made for this tenant, and what was made is a hit."""
        reports = got.seen.reports
        hits = [each for each in reports if each["hit"]]
        keeps = all(map(_keeps, got.seen.replies))
        if any(_is_cut(each) for each in got.seen.replies):
            assert got.told
            return
        if ask.way in BATCHES:  # one of it may be answered by another one
            self.ledger.made(ask, got.replied, keeps=keeps)
            assert len(hits) <= sum(self.ledger.may(ask.tenant, each) for each in expected.told)
        elif expected.told:
            self.booked_one(ask, expected.told[0], hits, hit=not got.told)
            if got.told and self.must(ask, prompt):
                assert not self.ledger.must(ask.tenant, got.told[0])
            if not got.told:
                self.count(ask, prompt, expected)
            if self.streams or ask.way not in STREAMS:
                self.ledger.made(ask, got.replied, keeps=keeps and ask.way not in LEFT)

    def booked_one(self, ask: Ask, digest: str, hits: list[Any], *, hit: bool) -> None:
        if ask.way not in LEFT:
            assert bool(hits) == hit
        if hit:
            self.ledger.served(ask.tenant, digest)
            assert ask.control != "no_cache"
            self.entry = hits[0]["entry_id"] if hits else None

    def must(self, ask: Ask, prompt: Prompt) -> bool:
        """Tell whether what is in the cache must be found."""
        if ask.control in ("no_cache", "varied") or prompt.option == "warm":
            return False  # a temperature of a call may be keyed beside that of the model
        if self.streams:
            return True
        return ask.way not in STREAMS and not ask.follows  # it keys streamed turns otherwise

    def count(self, ask: Ask, prompt: Prompt, expected: Done) -> None:
        self.tally.update(["hits", f"hits by {ask.way}", f"hits in form {prompt.form}"])
        if expected.asked > 1:
            self.tally["hits in later turns"] += 1
        if any(each.tool_calls for each in expected.seen.replies) and prompt.form == "tools":
            self.tally["hits with calls of tools"] += 1


def _is_cut(reply: AIMessage) -> bool:
    """Tell whether a reply is one that must not be stored."""
    return reply.response_metadata.get("finish_reason") in ("length", "content_filter")


def _keeps(reply: AIMessage) -> bool:
    """Tell whether a reply is one that is stored."""
    finish = reply.response_metadata.get("finish_reason")
    whole = finish in ("stop", "tool_calls") and "refusal" not in reply.additional_kwargs
    return whole and bool(reply.text or reply.tool_calls) and not reply.invalid_tool_calls


SEEDS = 25
QUICK = settings(
    max_examples=30,
    deadline=None,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=list(HealthCheck),
)
SEAMS = pytest.mark.parametrize("seam", ["chat", "model"])


@SEAMS
def test_a_cached_dialogue_is_the_uncached_one(seam: str) -> None:
    @QUICK
    @hypothesis_given(dialogues)
    def check(dialogue: Any) -> None:
        Twins(Counter(), seam=seam).go(*dialogue)

    check()


def test_an_answer_beside_the_one_that_was_served_leaves_it_to_be_dropped() -> None:
    ask = Ask(0, "left", chunks=1, follows=True, tenant="acme", said_by="metadata", control="")
    beside = structs.replace(ask, way="abatch", said_by="scope", control="varied")
    prompt = Prompt("call", "leave", form="json raw", option="body")
    steps = [ask, ask, beside, Turn("drop entry", "acme"), ask]
    Twins(Counter(), seam="chat").go([prompt], steps)


@SEAMS
def test_the_dialogues_do_hit(seam: str) -> None:
    """Else the comparison would say nothing."""
    tally: Counter[str] = Counter()
    for draw in map(Random, range(SEEDS if seam == "chat" else 2 * SEEDS)):
        Twins(tally, seam=seam).go(listed(_prompt, 3, draw), listed(_step, 16, draw))
    kinds = [f"by {way}" for way in WAYS if way not in BATCHES]
    kinds += [f"in form {form}" for form in FORMS]
    if seam == "model":  # streams are not seen there
        kinds = ["by invoke", "by ainvoke"]
    assert [kind for kind in kinds if not tally[f"hits {kind}"]] == []
    assert tally["hits"] >= 10
    assert tally["hits with calls of tools"] >= 1
    assert tally["hits in later turns"] >= (seam == "chat")


# -- chains over documents that change ------------------------------------------------------------------

PROMPT = ChatPromptTemplate.from_template("{input} with {context}")
CHAIN_WAYS = tuple(way for way in WAYS if way != "events")
CHAIN_KINDS = tuple(kind for kind in SCRIPT if kind not in ("call", "calls", "wrong"))


class Question(Struct, frozen=True):
    """What one cached chain is asked."""

    chain: str
    kind: str
    topic: str


class Change(Struct, frozen=True):
    """A document is written, or removed where it has no text."""

    name: str
    text: str


def _question(draw: Random) -> Question:
    return Question(
        chain=draw.choice(("recheck", "version", "around")),
        kind=draw.choice(("plain", "plain", "thinking", "blocks", *CHAIN_KINDS)),
        topic=draw.choice(("leave", "travel")),
    )


def _chain_step(draw: Random) -> Ask | Change | Turn:
    if draw.random() < 0.15:
        name = draw.choice(("leave", "leave", "one"))
        return Change(name, draw.choice(("", "leave rules", "travel leave", "about leave")))
    if draw.random() < 0.1:
        return Turn("temperature", draw.choice((0.0, 0.5)))
    return structs.replace(_ask(draw), way=draw.choice(CHAIN_WAYS))


chains = st.tuples(drawn(_question, 3), drawn(_chain_step, 16))


class ChainTwins:
    """Cached chains beside the uncached one, over one shelf; each change is announced."""

    def __init__(self, tally: Counter[str]) -> None:
        self.tally = tally
        self.shelf, self.clock = LendingShelf(k=2), FakeClock()
        for each in ("leave", "travel", "lunch"):
            self.shelf.put(each, f"{each} rules")
        self.cache = stampcache.open_cache("memory://", ttl_s=LIFE_S, clock=self.clock)
        self.models = [ScriptedChat(), ScriptedChat()]
        self.uncached, whole = map(self.chain, self.models)
        announced: dict[str, Any] = {
            "cache": self.cache,
            "corpus": "handbook",
            "version_of": "corpus",
            "stamps": Stamps(index="1"),
        }
        answer: Any = PROMPT | self.models[1]
        self.chains = {
            "recheck": CachedChain(retriever=self.shelf, answer=answer, cache=self.cache),
            "version": CachedChain(
                retriever=self.shelf, answer=answer, grounding="version", **announced
            ),
            "around": CachedChain.around(whole, **announced),
        }
        self.ledger = Ledger(self.clock)

    def chain(self, model: ScriptedChat) -> Any:
        found = RunnablePassthrough.assign(context=itemgetter("input") | self.shelf)
        return found.assign(answer=PROMPT | model)

    def go(self, questions: Sequence[Question], steps: Sequence[Ask | Change | Turn]) -> None:
        for step in steps if questions else ():
            self.step(questions, step)

    def step(self, questions: Sequence[Question], step: Ask | Change | Turn) -> None:
        match step:
            case Ask():
                self.ask(step, questions[step.prompt % len(questions)])
            case Change(name, ""):
                self.shelf.remove(name)
            case Change(name, text):
                self.shelf.put(name, text)
            case Turn():
                for model in self.models:
                    model.temperature = step.argument
        if isinstance(step, Change):
            self.cache.invalidate(corpus="handbook", source=step.name)
            self.ledger.changed()

    def ask(self, ask: Ask, question: Question) -> None:
        topics = (question.topic, "lunch", question.topic)
        inputs = [{"input": f"{question.kind} about {each}"} for each in topics]
        controls = CONTROLS[ask.control]
        config: dict[str, Any] = {}
        around: Any = nullcontext()
        if ask.said_by == "scope":
            around = stampcache.scope(tenant=ask.tenant, **controls)
        else:
            config = {"metadata": {"tenant": ask.tenant, "stampcache": controls}}
        expected = self.given(self.uncached, self.models[0], ask, inputs, config)
        with around:
            got = self.given(self.chains[question.chain], self.models[1], ask, inputs, config)
        assert got.failed == expected.failed
        if ask.way not in LEFT:  # chains read ahead in threads
            assert Counter(got.told) <= Counter(expected.told)
            assert got.failed or given(got, ask) == given(expected, ask)
        self.book(ask, question, expected, got)

    def given(
        self, chain: Any, model: ScriptedChat, ask: Ask, inputs: list[Any], config: Any
    ) -> Done:
        told, replied = len(model.told), len(model.replied)
        got: list[Any] = []
        failed = None
        try:
            call(chain, ask.way, inputs, config, options={}, got=got, chunks=ask.chunks)
        except Exception as error:
            failed = bare(error)
        assert ask.way in STREAMS or are_apart(got)
        kept = copy.deepcopy(got)
        for one in got:
            vandalise(one)
        return Done(kept, failed, [], Recorder(), model.told[told:], model.replied[replied:], 1)

    def book(self, ask: Ask, question: Question, expected: Done, got: Done) -> None:
        ask = structs.replace(ask, tenant=f"{ask.tenant} {question.chain}")
        if ask.way in BATCHES:
            self.ledger.made(ask, got.replied, keeps=False)
            may = sum(self.ledger.may(ask.tenant, each) for each in expected.told)
            assert sum(each["cache"]["hit"] for each in got.got if isinstance(each, dict)) <= may
            return
        if ask.way not in LEFT:  # of such a stream it may be too early to say
            self.booked(question, ask, expected, got)
        keeps = got.failed is None and ask.way not in LEFT and question.kind in STORABLE
        self.ledger.made(ask, got.replied, keeps=keeps)

    def booked(self, question: Question, ask: Ask, expected: Done, got: Done) -> None:
        for digest in expected.told[: not got.told]:
            self.ledger.served(ask.tenant, digest)
            assert ask.control != "no_cache"
            self.tally.update(["hits", f"hits by {ask.way}", f"hits of {question.chain}"])
        if got.told and ask.control not in ("no_cache", "varied"):
            assert not self.ledger.must(ask.tenant, got.told[0])
        if got.failed is None:
            result = summed(got.got)
            assert result["cache"]["hit"] == (not got.told)
            spent = result["answer"].usage_metadata["total_tokens"]
            assert spent == TOKENS * len(got.replied)


@settings(QUICK)
@hypothesis_given(chains)
def test_a_cached_chain_is_the_uncached_one(history: Any) -> None:
    ChainTwins(Counter()).go(*history)


def test_the_chains_do_hit() -> None:
    tally: Counter[str] = Counter()
    for draw in map(Random, range(SEEDS)):
        ChainTwins(tally).go(listed(_question, 3, draw), listed(_chain_step, 16, draw))
    kinds = ["by invoke", "by ainvoke", "by stream", "by astream"]
    kinds += ["of recheck", "of version", "of around"]
    assert [kind for kind in kinds if not tally[f"hits {kind}"]] == []
    assert tally["hits"] >= 20
