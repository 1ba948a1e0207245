"""Conversations: history is part of the question, unless it was condensed to one that stands alone."""

import asyncio
from operator import itemgetter
from typing import Any

import pytest
from langchain_apps import BUILT, App, reported
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_fakes import CountingChat, Shelf
from langchain_streams import StreamingChat, bare, summed

import stampcache
from langchain_stampcache import CachedChain
from stampcache import Cache
from stampcache.testing import AngleEmbedder

TALKING = ChatPromptTemplate.from_messages(
    [MessagesPlaceholder("chat_history", optional=True), ("human", "{context} {input}")]
)
# Two conversations that end in the same words and mean different things, and two that end in different
# words and mean the same.
PAIRS: list[dict[str, Any]] = [
    {
        "same_answer": False,
        "a": [
            {"role": "user", "content": "I never use my Filmly subscription."},
            {"role": "assistant", "content": "Your Filmly plan renews on the 3rd at 9 euro."},
            {"role": "user", "content": "cancel it"},
        ],
        "b": [
            {"role": "user", "content": "The Liftwell gym is too far away."},
            {"role": "assistant", "content": "Your Liftwell contract has 30 days of notice."},
            {"role": "user", "content": "cancel it"},
        ],
        "alone": ("how to cancel Filmly", "how to cancel Liftwell"),
    },
    {
        "same_answer": True,
        "a": [
            {"role": "user", "content": "How old is the moon?"},
            {"role": "assistant", "content": "About 4.5 billion years."},
            {"role": "user", "content": "and how far away is it"},
        ],
        "b": [
            {"role": "user", "content": "Who walked on the moon first?"},
            {"role": "assistant", "content": "Neil Armstrong."},
            {"role": "user", "content": "What is its distance from here?"},
        ],
        "alone": ("how far away is the moon", "how far away is the moon"),
    },
]


def inputs_of(turns: list[dict[str, str]], form: str) -> dict[str, Any]:
    *before, last = turns
    if form == "dicts":
        return {"input": last["content"], "chat_history": before}
    if form == "pairs":
        return {
            "input": last["content"],
            "chat_history": [(t["role"], t["content"]) for t in before],
        }
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    messages = [kinds[turn["role"]](turn["content"]) for turn in before]
    if form == "text":
        text = "\n".join(f"|{turn['role']}|: {turn['content']}" for turn in before)
        return {"input": last["content"], "history": text}
    return {"input": last["content"], "past" if form == "any name" else "chat_history": messages}


FORMS = ["messages", "dicts", "pairs", "text", "any name"]


def answered(cache: Any, shelf: Shelf, **options: Any) -> App:
    model = StreamingChat()
    app = App(cache, shelf, answer=_forgetful(model), **options)
    app.model = model
    return app


def _forgetful(model: CountingChat) -> Any:
    return ChatPromptTemplate.from_template("{context} {input}") | model | StrOutputParser()


# -- history in the key ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_same_last_words_after_another_history_never_share(
    shelf: Shelf, pair: dict[str, Any], form: str
) -> None:
    last = pair["a"][-1]["content"]
    embedder = AngleEmbedder({last: 0.0, pair["b"][-1]["content"]: 1.0})
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.95)
    app = answered(cache, shelf)
    a, b = (inputs_of(pair[side], form) for side in "ab")
    b["input"] = last
    alone = {"input": last}
    for inputs in (a, b, alone):
        assert not app.chain.invoke(inputs)["cache"]["hit"]
    assert all(app.chain.invoke(inputs)["cache"]["hit"] for inputs in (a, b, alone))
    assert all(summed(app.chain.stream(inputs))["cache"]["hit"] for inputs in (a, b, alone))
    assert app.model.calls == 3


# -- condensed -------------------------------------------------------------------------------------


class Condenser:
    """Gives the question that stands alone for a conversation's last words."""

    def __init__(self) -> None:
        self.alone: dict[str, str] = {}
        self.asked: list[dict[str, Any]] = []

    def knows(self, inputs: dict[str, Any], question: str) -> None:
        self.alone[str(inputs)] = question

    def __call__(self, inputs: dict[str, Any]) -> str:
        self.asked.append(inputs)
        return self.alone[str(inputs)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("grounding", ["recheck", "version"])
async def test_condensed_questions_share_exactly_where_they_are_the_same(
    opened: Cache, shelf: Shelf, pair: dict[str, Any], form: str, grounding: str
) -> None:
    shelf.put("moon", "the moon is far away")
    condense = Condenser()
    sides = [inputs_of(pair[side], form) for side in "ab"]
    for inputs, alone in zip(sides, pair["alone"], strict=True):
        condense.knows(inputs, alone)
    options = {"grounding": grounding, "corpus": "handbook", "stamps": BUILT}
    app = answered(opened, shelf, condense=condense, **options)
    first = app.chain.invoke(sides[0])
    second = await app.chain.ainvoke(sides[1])
    assert first["input"] == sides[0]["input"]
    assert (first["question"], second["question"]) == pair["alone"]
    assert second["cache"]["hit"] is pair["same_answer"]
    assert (first["answer"] == second["answer"]) is pair["same_answer"]
    assert second["input"] == sides[1]["input"]
    assert {**second, **sides[1]} == second  # the inputs as they were given
    plain = app.chain.invoke({"input": pair["alone"][0]})
    assert plain["cache"]["hit"]
    assert plain["question"] == pair["alone"][0]
    assert set(shelf.asked) == set(pair["alone"])
    assert len(condense.asked) == 2


def test_streams_and_batches_condense_too(opened: Cache, shelf: Shelf) -> None:
    pair, condense = PAIRS[1], Condenser()
    a, b = (inputs_of(pair[side], "messages") for side in "ab")
    condense.knows(a, pair["alone"][0])
    condense.knows(b, pair["alone"][1])
    app = answered(opened, shelf, condense=condense)
    made = summed(app.chain.stream(a))
    hit = summed(app.chain.stream(b))
    assert (made["question"], hit["question"]) == pair["alone"]
    assert hit["cache"]["hit"]
    assert bare(hit)["answer"] == made["answer"]
    assert hit["chat_history"] == b["chat_history"]
    assert all(one["cache"]["hit"] for one in app.chain.batch([a, b, b]))
    assert app.chain.explain(b).outcome.answer.text == made["answer"]
    assert app.model.calls == 1


def test_the_answer_is_made_without_the_history(opened: Cache, shelf: Shelf) -> None:
    seen: list[list[BaseMessage]] = []

    def reply(messages: list[BaseMessage], call: int) -> AIMessage:
        seen.append(messages)
        return AIMessage("made")

    model = CountingChat().answering(reply)
    condense = RunnableLambda(lambda inputs: AIMessage("stands alone"))
    app = App(opened, shelf, answer=TALKING | model | StrOutputParser(), condense=condense)
    inputs = inputs_of(PAIRS[0]["a"], "messages")
    app.chain.invoke(inputs)
    [messages] = seen
    assert [message.text for message in messages] == ["[] stands alone"]
    assert inputs["chat_history"]  # the caller's own stays


def test_a_condensed_question_hits_by_meaning(shelf: Shelf) -> None:
    shelf.put("moon", "the moon is far away")
    embedder = AngleEmbedder(
        {"how far away is the moon": 0.0, "how far away is the moon please": 4.0}
    )
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.95)
    app = answered(cache, shelf, condense=lambda inputs: "how far away is the moon please")
    app.ask("how far away is the moon")
    hit = app.chain.invoke(inputs_of(PAIRS[1]["a"], "messages"))
    assert reported(hit)[:2] == (True, "semantic")
    assert hit["input"] == "and how far away is it"


@pytest.mark.parametrize("history", [[], (), "", None])
def test_without_history_nothing_is_condensed(opened: Cache, shelf: Shelf, history: object) -> None:
    def condense(inputs: dict[str, Any]) -> str:
        raise AssertionError(inputs)

    app = answered(opened, shelf, condense=condense)
    app.ask("annual leave")
    hit = app.chain.invoke({"input": "annual leave", "chat_history": history})
    assert hit["cache"]["hit"]
    assert hit["question"] == "annual leave"


async def test_a_failure_of_the_condenser_is_the_callers(opened: Cache, shelf: Shelf) -> None:
    failure = RuntimeError("down")

    def condense(inputs: dict[str, Any]) -> str:
        raise failure

    inputs = inputs_of(PAIRS[0]["a"], "messages")
    app = answered(opened, shelf, condense=condense)
    for ask in (app.chain.invoke, lambda given: list(app.chain.stream(given))):
        with pytest.raises(RuntimeError) as caught:
            ask(inputs)
        assert caught.value is failure
    with pytest.raises(RuntimeError):
        await app.chain.ainvoke(inputs)
    assert app.model.calls == 0
    wrong = answered(opened, shelf, condense=lambda inputs: {"question": "x"})
    with pytest.raises(TypeError, match="condense="):
        wrong.chain.invoke(inputs)


def test_an_app_that_bypasses_the_cache_condenses_all_the_same(shelf: Shelf) -> None:
    cache = stampcache.open_cache("memory://", tenants="required")
    app = answered(cache, shelf, condense=lambda inputs: "annual leave")
    result = app.chain.invoke(inputs_of(PAIRS[0]["a"], "messages"))
    assert reported(result)[2] == "no tenant in scope"
    assert (result["question"], result["answer"]) == ("annual leave", result["answer"])
    assert shelf.asked == ["annual leave"]


@pytest.mark.parametrize("whole", [True, False])
async def test_around_an_opaque_chain(opened: Cache, shelf: Shelf, whole: bool) -> None:
    shelf.put("moon", "the moon is far away")
    model = StreamingChat()
    chain: Any = RunnablePassthrough.assign(context=itemgetter("input") | shelf).assign(
        answer=TALKING | model | StrOutputParser()
    )
    chain = chain if whole else chain | itemgetter("answer")
    rag = CachedChain.around(
        chain,
        cache=opened,
        stamps=BUILT,
        corpus="handbook",
        condense=lambda inputs: "how far away is the moon",
        with_fields=True,
    )
    a, b = (inputs_of(PAIRS[1][side], "messages") for side in "ab")
    made = rag.invoke(a)
    for hit in (rag.invoke(b), summed(rag.stream(b)), await rag.ainvoke(b)):
        assert hit["cache"]["hit"]
        assert hit["answer"] == made["answer"]
        assert hit["question"] == "how far away is the moon"
        if whole:
            assert (hit["input"], hit["chat_history"]) == (b["input"], b["chat_history"])
    assert summed(rag.stream({"input": "moon"}))["question"] == "moon"
    assert shelf.asked == ["how far away is the moon", "moon"]
    assert model.calls == 2


async def test_the_condenser_runs_once_per_call_and_its_runs_are_children(
    opened: Cache, shelf: Shelf
) -> None:
    calls: list[int] = []

    async def condense(inputs: dict[str, Any]) -> str:
        calls.append(1)
        await asyncio.sleep(0)
        return "annual leave"

    app = answered(opened, shelf, condense=RunnableLambda(condense))
    inputs = inputs_of(PAIRS[0]["a"], "messages")
    results = await app.chain.abatch([inputs] * 8)
    assert (len(calls), app.model.calls) == (8, 1)
    assert len({result["answer"] for result in results}) == 1
    events = [one async for one in app.chain.astream_events(inputs, version="v2")]
    [event] = [e for e in events if e["event"] == "on_chain_end" and e["name"] == "condense"]
    assert event["parent_ids"] == [events[0]["run_id"]]
