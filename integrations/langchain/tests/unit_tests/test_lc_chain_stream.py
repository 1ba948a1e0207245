"""Streams of `CachedChain`: as LangChain's own, replayed equal, made once for all that ask at once."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_apps import BUILT, PROMPT, QUESTION, App, reported, versioned
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import (
    CommaSeparatedListOutputParser,
    JsonOutputParser,
    StrOutputParser,
)
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from langchain_core.runnables.utils import AddableDict
from langchain_fakes import CountingChat, Shelf, plain_reply
from langchain_streams import StreamingChat, bare, summed, thinking_reply
from pydantic import BaseModel

import stampcache
from langchain_stampcache import CachedChain, StampCache
from langchain_stampcache.pieces import Piece
from stampcache import Cache
from stampcache.testing import AngleEmbedder, FailingStore

ASKED = {"input": QUESTION}
GROUNDINGS: list[dict[str, Any]] = [
    {"grounding": "recheck"},
    {"grounding": "version", "corpus": "handbook", "stamps": BUILT},
    {"grounding": "version", "version_of": "corpus", "corpus": "handbook", "stamps": BUILT},
    {"grounding": "none", "stamps": BUILT},
]


class Days(BaseModel):
    days: int


def streaming(cache: Any, shelf: Shelf, *, text: bool = True, **options: Any) -> App:
    model = StreamingChat()
    model.answering(thinking_reply)
    answer = options.pop("answer", PROMPT | model | StrOutputParser() if text else PROMPT | model)
    app = App(cache, shelf, answer=answer, **options)
    app.model = model
    return app


async def collected(stream: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


# -- the chunks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", GROUNDINGS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_chunks_are_those_of_a_retrieval_chain_and_add_up_to_what_invoke_returns(
    opened: Cache, shelf: Shelf, options: dict[str, Any], is_async: bool
) -> None:
    app = streaming(opened, shelf, **options)
    for turn in range(2):
        if is_async:
            chunks = await collected(app.chain.astream(ASKED))
        else:
            chunks = list(app.chain.stream(ASKED))
        assert [sorted(chunk) for chunk in chunks[:2]] == [["input"], ["context"]]
        assert [sorted(chunk) for chunk in chunks[2:-1]] == [["answer"]] * (len(chunks) - 3)
        assert len(chunks) > 5
        total = summed(chunks)
        assert reported(total)[0] is (turn == 1)
        assert bare(total) == bare(app.ask())
    assert app.model.calls == 1
    assert len(shelf.asked) == (4 if options["grounding"] == "recheck" else 1)


@pytest.mark.parametrize("first", ["invoke", "stream"])
def test_messages_are_replayed_with_their_reasoning(
    opened: Cache, shelf: Shelf, first: str
) -> None:
    app = streaming(opened, shelf, text=False)
    app.ask() if first == "invoke" else list(app.chain.stream(ASKED))
    chunks = list(app.chain.stream(ASKED))
    total = summed(chunks)
    assert total["cache"]["hit"]
    answer = total["answer"]
    assert isinstance(answer, AIMessageChunk)
    assert answer.additional_kwargs["reasoning_content"] == "The context says so."
    assert answer.usage_metadata["total_tokens"] == 0
    assert answer.response_metadata["cache"] == total["cache"]
    assert answer.response_metadata["finish_reason"] == "stop"
    assert total["cache"]["saved"]["output_tokens"] == 7
    assert len([chunk for chunk in chunks if "answer" in chunk and chunk["answer"].text]) > 2
    invoked = app.ask()["answer"]
    assert type(invoked) is AIMessage
    assert bare(answer) == bare(invoked)


@pytest.mark.parametrize("first", ["invoke", "stream"])
def test_the_fields_of_a_cache_below_are_not_mixed_with_its_own(
    opened: Cache, shelf: Shelf, first: str
) -> None:
    model = CountingChat(cache=StampCache(stampcache.open_cache("memory://")))
    app = App(opened, shelf, answer=PROMPT | model.answering(thinking_reply))
    app.ask() if first == "invoke" else list(app.chain.stream(ASKED))
    for _ in range(2):
        hit = summed(app.chain.stream(ASKED))
        assert hit["answer"].response_metadata["cache"] == hit["cache"]
        assert hit["cache"]["hit"]
    assert app.ask()["answer"].response_metadata["cache"]["hit"]


def test_a_models_chunks_pass_as_they_come(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)
    chunks = app.chain.stream(ASKED)
    for chunk in chunks:
        if chunk.get("answer"):  # its reasoning has no text
            break
    given = len(app.model.given)
    list(chunks)
    assert given < len(app.model.given)


def test_further_inputs_come_first_and_stay(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)
    inputs = {**ASKED, "language": "en", "context": "mine", "cache": 1}
    first, *_ = chunks = list(app.chain.stream(inputs))
    assert first == {**ASKED, "language": "en"}
    assert bare(summed(chunks)) == bare(app.chain.invoke(inputs))


async def test_growing_objects_replace_each_other(opened: Cache, shelf: Shelf) -> None:
    replies = ['{"days": 30, "kinds": ["annual", "sick"]}', '["a", "b", "c"]', '"thirty days"']
    expected: list[Any] = [
        {"days": 30, "kinds": ["annual", "sick"]},
        ["a", "b", "c"],
        "thirty days",
    ]
    for reply, value in zip(replies, expected, strict=True):
        model = StreamingChat().answering(lambda messages, call, said=reply: AIMessage(said))
        app = App(opened, shelf, answer=PROMPT | model | JsonOutputParser(), version=reply)
        made = list(app.chain.stream(ASKED))
        assert summed(made)["answer"] == value
        hit = summed(await collected(app.chain.astream(ASKED)))
        assert reported(hit)[0]
        assert hit["answer"] == value == app.ask()["answer"]
        assert model.calls == 1


def test_structured_output_streams_as_objects(opened: Cache, shelf: Shelf) -> None:
    reply = AIMessage(
        "",
        tool_calls=[{"name": "Days", "args": {"days": 3}, "id": "1"}],
        response_metadata={"finish_reason": "tool_calls"},
    )
    model = StreamingChat().answering(lambda messages, call: reply)
    app = App(opened, shelf, answer=PROMPT | model.with_structured_output(Days))
    assert summed(app.chain.stream(ASKED))["answer"] == Days(days=3)
    assert summed(app.chain.stream(ASKED))["answer"] == Days(days=3)
    assert model.calls == 1


def test_lists_are_added_where_the_parser_cuts_them(opened: Cache, shelf: Shelf) -> None:
    model = StreamingChat().answering(lambda messages, call: AIMessage("red, green, blue"))
    app = App(opened, shelf, answer=PROMPT | model | CommaSeparatedListOutputParser())
    for _ in range(2):
        assert summed(app.chain.stream(ASKED))["answer"] == ["red", "green", "blue"]
    assert app.ask()["answer"] == ["red", "green", "blue"]
    assert model.calls == 1


@pytest.mark.parametrize("first", ["invoke", "stream"])
def test_a_mapping_with_an_answer_streams_in_any_order(
    opened: Cache, shelf: Shelf, first: str
) -> None:
    model = StreamingChat()
    answer = RunnableParallel(
        sources=lambda inputs: [each.id for each in inputs["context"]],
        answer=PROMPT | model | StrOutputParser(),
    )
    app = App(opened, shelf, answer=answer)
    made = app.ask() if first == "invoke" else summed(app.chain.stream(ASKED))
    hit = summed(app.chain.stream(ASKED))
    assert hit["cache"]["hit"]
    assert bare(hit) == bare(made) == bare(app.ask())
    assert hit["sources"] == [each.id for each in hit["context"]]


@pytest.mark.parametrize("first", ["invoke", "stream"])
def test_an_object_with_an_answer_is_split_as_invoke_does(
    opened: Cache, shelf: Shelf, first: str
) -> None:
    said = AIMessage('{"answer": "thirty days", "sources": ["a", "b"]}')
    model = StreamingChat().answering(lambda messages, call: said)
    app = App(opened, shelf, answer=PROMPT | model | JsonOutputParser())
    made = app.ask() if first == "invoke" else summed(app.chain.stream(ASKED))
    hit = summed(app.chain.stream(ASKED))
    assert hit["cache"]["hit"]
    assert bare(hit) == bare(made) == bare(app.ask())
    assert (hit["answer"], hit["sources"]) == ("thirty days", ["a", "b"])


def test_chunks_add_up_with_those_of_other_chains() -> None:
    assert AddableDict(a="x", b=1) + Piece({"a": "y"}) == {"a": "xy", "b": 1}
    assert Piece({"a": "x"}) + AddableDict(a=None, b=None) == {"a": "x", "b": None}
    assert Piece({"a": None}) + Piece({"a": {"b": 1}}) + Piece({"a": 2}) == {"a": 2}
    assert Piece({"a": "x"}) + Piece({"a": "xy"}, whole=True) == {"a": "xy"}
    assert Piece({"a": AIMessage("x")}) + Piece({"a": AIMessage("y")}) == {"a": AIMessage("y")}


def test_chunks_that_cannot_be_copied_are_given_and_not_stored(opened: Cache, shelf: Shelf) -> None:
    lock = threading.Lock()
    app = App(opened, shelf, answer=RunnableLambda(lambda inputs: [lock]), version="1")
    for _ in range(2):
        total = summed(app.chain.stream(ASKED))
        assert total["answer"] == [lock]
        assert not total["cache"]["hit"]


def test_a_mapping_without_an_answer_is_the_answer(opened: Cache, shelf: Shelf) -> None:
    answer = RunnableParallel(a=lambda inputs: "x", b=lambda inputs: ["y"])
    app = App(opened, shelf, answer=answer)
    for _ in range(2):
        assert summed(app.chain.stream(ASKED))["answer"] == {"a": "x", "b": ["y"]}
    assert app.ask()["cache"]["hit"]


def test_chunks_of_which_nobody_knows_the_sum_are_given_and_not_stored(
    opened: Cache, shelf: Shelf
) -> None:
    def numbers(inputs: Iterator[Any]) -> Iterator[list[int]]:
        yield from ([1], [1, 2])

    app = App(opened, shelf, answer=RunnableGenerator(numbers))
    for _ in range(2):
        chunks = list(app.chain.stream(ASKED))
        assert [chunk["answer"] for chunk in chunks[2:-1]] == [[1], [1, 2]]
        assert reported(summed(chunks))[0] is False
    counted = opened.stats(everything=True)
    assert counted.entries == 0
    assert counted.counters["adapter.not_storable"] == 2


def test_a_semantic_hit_shows_the_documents_it_was_made_from(shelf: Shelf) -> None:
    embedder = AngleEmbedder({QUESTION: 0.0, f"{QUESTION} please": 4.0})
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.95)
    app = streaming(cache, shelf)
    made = summed(app.chain.stream(ASKED))
    shelf.put("zoo", "please feed no animals")
    hit = summed(app.chain.stream({"input": f"{QUESTION} please"}))
    assert reported(hit)[:2] == (True, "semantic")
    assert hit["input"] == f"{QUESTION} please"
    assert (hit["answer"], hit["context"]) == (made["answer"], made["context"])


async def test_a_stale_answer_is_streamed_where_that_is_allowed(
    opened: Cache, shelf: Shelf
) -> None:
    app = streaming(opened, shelf, allow_stale=True)
    made = summed(app.chain.stream(ASKED))
    shelf.put("leave", "annual leave is thirty one days")
    for stale in (
        summed(app.chain.stream(ASKED)),
        summed(await collected(app.chain.astream(ASKED))),
    ):
        assert reported(stale) == (False, "exact", "evidence changed")
        assert bare(stale) == bare(made)
    assert app.model.calls == 1


# -- what is not stored ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_abandoned_stream_stores_nothing(
    opened: Cache, shelf: Shelf, is_async: bool
) -> None:
    app = streaming(opened, shelf)
    if is_async:
        async for chunk in (stream := app.chain.astream(ASKED)):
            if "answer" in chunk:
                break
        await stream.aclose()
        await asyncio.sleep(0.01)
    else:
        stream = app.chain.stream(ASKED)
        while "answer" not in next(stream):
            pass
        stream.close()
        del stream
    assert opened.stats(everything=True).entries == 0
    assert not app.ask()["cache"]["hit"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("where", ["retriever", "model"])
async def test_a_failure_passes_unchanged_and_stores_nothing(
    opened: Cache, shelf: Shelf, where: str, is_async: bool
) -> None:
    app = streaming(opened, shelf)
    failure = RuntimeError("down")

    def fail(*args: Any, **options: Any) -> Any:
        raise failure

    if where == "retriever":
        object.__setattr__(shelf, "_get_relevant_documents", fail)
    else:
        app.model.pausing(lambda place: fail() if place == 6 else None)
    with pytest.raises(RuntimeError) as caught:
        if is_async:
            await collected(app.chain.astream(ASKED))
        else:
            list(app.chain.stream(ASKED))
    assert caught.value is failure
    assert opened.stats(everything=True).entries == 0


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_cut_stream_is_not_stored(opened: Cache, shelf: Shelf, finish: str) -> None:
    app = streaming(opened, shelf)
    reply = AIMessage("cut o", response_metadata={"finish_reason": finish})
    app.model.answering(lambda messages, call: reply)
    for _ in range(2):
        assert not summed(app.chain.stream(ASKED))["cache"]["hit"]
    assert opened.stats(everything=True).entries == 0


def test_a_change_while_it_streams_refuses_the_fill(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf, grounding="version", corpus="handbook", stamps=BUILT)
    left = [1]

    def change(place: int) -> None:
        if left and place == 3:
            left.pop()
            opened.invalidate(corpus="handbook", source="leave")

    app.model.pausing(change)
    summed(app.chain.stream(ASKED))
    assert opened.stats(everything=True).counters["refused.fenced"] == 1
    assert not app.ask()["cache"]["hit"]


def test_what_a_caller_does_to_chunks_reaches_nobody(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf, text=False)
    expected = None
    for _ in range(3):
        words: list[str] = []
        for chunk in app.chain.stream(ASKED):
            if "context" in chunk:
                chunk["context"][0].metadata["mine"] = 1
            if "answer" in chunk:
                words.append(chunk["answer"].text)
                chunk["answer"].content = "spoiled"
        expected = expected or "".join(words)
        assert "".join(words) == expected
    hit = app.ask()
    assert hit["cache"]["hit"]
    assert hit["answer"].text == expected
    assert "mine" not in hit["context"][0].metadata


# -- one making for all ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", GROUNDINGS)
def test_equal_streams_of_threads_read_along(
    opened: Cache, shelf: Shelf, options: dict[str, Any]
) -> None:
    app = streaming(opened, shelf, text=False, **options)
    together = threading.Barrier(6)

    def ask(_: int) -> Any:
        chunks = app.chain.stream(ASKED)
        first = next(chunks)
        together.wait(timeout=20)
        return summed([first, *chunks])

    app.model.pausing(lambda place: None if place else threading.Event().wait(0.05))
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(ask, range(6)))
    assert app.model.calls == 1
    assert len({bare(result["answer"])[0] for result in results}) == 1
    reasons = [result["cache"]["reason"] for result in results]
    assert reasons.count("not found") == 1
    spent = [result["answer"].usage_metadata["total_tokens"] for result in results]
    assert sorted(spent)[-2:] == [0, 18]
    shared = [one["cache"] for one in results if one["cache"]["reason"] != "not found"]
    assert all(one["saved"]["output_tokens"] == 7 for one in shared)


@pytest.mark.parametrize("options", GROUNDINGS)
async def test_equal_streams_of_tasks_read_along_and_one_may_leave(
    opened: Cache, shelf: Shelf, options: dict[str, Any]
) -> None:
    app = streaming(opened, shelf, **options)
    streams = [app.chain.astream(ASKED) for _ in range(5)]
    first = [[await anext(stream), await anext(stream)] for stream in streams]
    await streams[0].aclose()
    results = await asyncio.gather(*(collected(stream) for stream in streams[1:]))
    assert app.model.calls == 1
    totals = [summed([*a, *b]) for a, b in zip(first[1:], results, strict=True)]
    assert len({total["answer"] for total in totals}) == 1
    assert app.ask()["cache"]["hit"]


async def test_items_of_one_stream_are_everybodys_own(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf, text=False)
    streams = [app.chain.astream(ASKED) for _ in range(2)]
    chunks = [[await anext(one) for _ in range(3)] for one in streams]
    assert chunks[0][1]["context"] == chunks[1][1]["context"]
    assert chunks[0][1]["context"][0] is not chunks[1][1]["context"][0]
    assert chunks[0][2]["answer"] is not chunks[1][2]["answer"]
    for stream in streams:
        await stream.aclose()


# -- callbacks, scopes, the cache out of order -----------------------------------------------------


def test_the_usage_of_a_stream_is_counted_once(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)
    handler = UsageMetadataCallbackHandler()
    for _ in range(3):
        total = summed(app.chain.stream(ASKED, config={"callbacks": [handler]}))
    assert handler.usage_metadata["fake-1"]["total_tokens"] == 18
    assert total["cache"]["saved"]["output_tokens"] == 7
    assert total["cache"]["saved"]["latency_s"] > 0


class Runs(BaseCallbackHandler):
    def __init__(self) -> None:
        self.began: list[str] = []
        self.outputs: list[Any] = []
        self.failed: list[BaseException] = []
        self._roots: set[Any] = set()

    def on_chain_start(self, *args: Any, name: str = "", **kwargs: Any) -> None:
        self.began.append(name)
        if kwargs.get("parent_run_id") is None:
            self._roots.add(kwargs["run_id"])

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self.began.append("retriever")

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.began.append("model")

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        if kwargs["run_id"] in self._roots:
            self.outputs.append((outputs, kwargs.get("inputs")))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        if kwargs["run_id"] in self._roots:
            self.failed.append(error)


async def test_a_streams_run_is_traced_with_its_inputs_and_its_sum(
    opened: Cache, shelf: Shelf
) -> None:
    app = streaming(opened, shelf, name="handbook")
    for is_hit in (False, True):
        runs = Runs()
        total = summed(app.chain.stream(ASKED, config={"callbacks": [runs]}))
        assert runs.began[:2] == ["handbook", "retriever"]
        assert ("model" in runs.began) is not is_hit
        [(output, inputs)] = runs.outputs
        assert (output, inputs) == (total, ASKED)
        assert not runs.failed
    runs = Runs()
    object.__setattr__(shelf, "_get_relevant_documents", None)
    with pytest.raises(TypeError):
        await collected(app.chain.astream(ASKED, config={"callbacks": [runs]}))
    assert [type(error) for error in runs.failed] == [TypeError]


async def test_events_of_a_stream(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf, name="handbook")
    for is_hit in (False, True):
        events = await collected(app.chain.astream_events(ASKED, version="v2"))
        kinds = {event["event"] for event in events}
        assert ("on_chat_model_stream" in kinds) is not is_hit
        assert "on_retriever_end" in kinds
        mine = [event for event in events if event["name"] == "handbook"]
        assert [mine[0]["event"], mine[-1]["event"]] == ["on_chain_start", "on_chain_end"]
        chunks = [each["data"]["chunk"] for each in mine if each["event"] == "on_chain_stream"]
        assert reported(summed(chunks))[0] is is_hit
        assert mine[-1]["data"]["output"] == summed(chunks)


def test_a_stream_belongs_to_who_asked_for_it_and_not_to_who_reads_it(
    opened: Cache, shelf: Shelf
) -> None:
    app = streaming(opened, shelf)
    for tenant in ("acme", "other"):
        with stampcache.scope(tenant=tenant):
            stream = app.chain.stream(ASKED)
        assert reported(summed(stream))[2] == "not found"
    with stampcache.scope(tenant="acme"):
        stream = app.chain.stream(ASKED)
    with stampcache.scope(tenant="third"):
        assert summed(stream)["cache"]["hit"]
        assert not app.ask()["cache"]["hit"]


async def test_the_same_in_tasks(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)
    with stampcache.scope(tenant="acme", no_store=True):
        stream = app.chain.astream(ASKED)
    assert summed(await collected(stream))["answer"]
    assert opened.stats(everything=True).entries == 0
    with stampcache.scope(tenant="acme"):
        stream = app.chain.astream(ASKED)
    summed(await collected(stream))
    with stampcache.scope(tenant="acme"):
        assert app.ask()["cache"]["hit"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_caches_below_a_stream_see_who_asked_for_it(
    opened: Cache, shelf: Shelf, is_async: bool
) -> None:
    with stampcache.open_cache("memory://") as below:
        model = CountingChat(cache=StampCache(below)).answering(thinking_reply)
        talk = RunnableLambda(lambda inputs: model.invoke("always the same").text)
        for number, tenant in enumerate(("acme", "other"), start=1):
            app = App(opened, shelf, answer=talk, version=tenant)
            with stampcache.scope(tenant=tenant):
                stream = app.chain.astream(ASKED) if is_async else app.chain.stream(ASKED)
            total = summed(await collected(stream) if is_async else stream)
            assert total["answer"].startswith(f"answer {number}")
            assert stampcache.adapters.surroundings() is None
        assert below.stats(everything=True).entries == 2


@pytest.mark.parametrize("is_async", [False, True])
async def test_who_bypasses_the_cache_has_a_stream_all_the_same(
    opened: Cache, shelf: Shelf, is_async: bool
) -> None:
    app = streaming(opened, shelf)
    inputs = {**ASKED, "thing": object()}
    for _ in range(2):
        if is_async:
            total = summed(await collected(app.chain.astream(inputs)))
        else:
            total = summed(app.chain.stream(inputs))
        assert reported(total) == (False, None, "uncacheable")
        assert total["context"]
    assert app.model.calls == 2


async def test_a_store_that_is_down_costs_the_hit_only(shelf: Shelf) -> None:
    store = FailingStore()
    app = streaming(stampcache.open_cache(store), shelf)
    store.down = True
    assert reported(summed(app.chain.stream(ASKED)))[2] == "store failed"
    assert summed(await collected(app.chain.astream(ASKED)))["answer"]
    store.down = False
    list(app.chain.stream(ASKED))
    assert app.ask()["cache"]["hit"]


def test_an_unreadable_entry_is_made_anew(opened: Cache, shelf: Shelf, monkeypatch) -> None:
    app = streaming(opened, shelf)
    list(app.chain.stream(ASKED))
    monkeypatch.setattr("langchain_stampcache.payload.CHAIN", "lc.chain.2")
    assert not summed(app.chain.stream(ASKED))["cache"]["hit"]
    assert opened.stats(everything=True).counters["error.adapter.undecodable"] >= 1


# -- with other runnables --------------------------------------------------------------------------


async def test_it_streams_inside_of_other_chains(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)
    whole = {"input": RunnableLambda(lambda text: text)} | app.chain.pick("answer")
    made = list(whole.stream(QUESTION))
    hit = await collected(whole.astream(QUESTION))
    assert "".join(made) == "".join(hit)
    assert min(len(made), len(hit)) > 3
    assert app.model.calls == 1


async def test_inputs_may_come_in_chunks(opened: Cache, shelf: Shelf) -> None:
    app = streaming(opened, shelf)

    async def letters() -> AsyncIterator[dict[str, str]]:
        yield ASKED

    made = summed(app.chain.transform(iter([ASKED])))
    hit = summed(await collected(app.chain.atransform(letters())))
    assert hit["cache"]["hit"]
    assert bare(made) == bare(hit)


def test_wrong_calls_are_refused_when_the_stream_is_read(app_: App) -> None:
    with pytest.raises(ValueError, match="question"):
        next(app_.chain.stream({"question": "x"}))
    with pytest.raises(TypeError, match="bind"):
        app_.chain.stream(ASKED, temperature=1)


@pytest.fixture
def app_(opened: Cache, shelf: Shelf) -> App:
    return streaming(opened, shelf)


def test_a_model_that_does_not_stream_gives_its_answer_at_once(opened: Cache, shelf: Shelf) -> None:
    model = CountingChat().answering(plain_reply)
    app = App(opened, shelf, answer=PROMPT | model)
    made = summed(app.chain.stream(ASKED))
    assert made["answer"].text == summed(app.chain.stream(ASKED))["answer"].text
    assert model.calls == 1


def test_an_app_without_documents_streams(opened: Cache) -> None:
    model = StreamingChat()
    chain = CachedChain(
        retriever=None, answer=PROMPT | model | StrOutputParser(), cache=opened, grounding="none"
    )
    for _ in range(2):
        total = summed(chain.stream(ASKED))
        assert total["context"] == []
    assert total["cache"]["hit"]


def test_versioned_streams_retrieve_on_a_miss_only(opened: Cache, shelf: Shelf) -> None:
    app = versioned(opened, shelf)
    made = summed(app.chain.stream(ASKED))
    hit = summed(app.chain.stream(ASKED))
    assert len(shelf.asked) == 1
    assert hit["context"] == made["context"]
    opened.invalidate(corpus="handbook", source="leave")
    assert reported(summed(app.chain.stream(ASKED)))[2] == "what it was made from changed"
