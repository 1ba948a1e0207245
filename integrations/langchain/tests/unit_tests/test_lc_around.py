"""`CachedChain.around`: chains that are not looked into, of all kinds of inputs and outputs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from operator import itemgetter
from typing import Any, TypedDict

import pytest
from langchain_apps import BUILT, PROMPT, QUESTION, reported
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_fakes import CountingChat, Shelf
from langchain_streams import StreamingChat, bare, summed, thinking_reply
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

import stampcache
from langchain_stampcache import CachedChain, CachedChatModel, CachedRetriever, StampCache
from stampcache import Cache, ConfigError
from stampcache.testing import AngleEmbedder

ASKED = {"input": QUESTION}
PLEASE = f"{QUESTION} please"
CHANGED = "what it was made from changed"


class Ruling(BaseModel):
    days: int


@pytest.fixture
def model() -> StreamingChat:
    chat = StreamingChat()
    chat.answering(thinking_reply)
    return chat


@pytest.fixture
def semantic() -> Cache:
    embedder = AngleEmbedder({QUESTION: 0.0, PLEASE: 4.0})
    return stampcache.open_cache("memory://", embedder=embedder, calibration=0.95)


def retrieval(shelf: BaseRetriever, model: Any, *, text: bool = True) -> Runnable[Any, Any]:
    """What `create_retrieval_chain` makes: ``input``, ``context`` and ``answer`` in one mapping."""
    answer = PROMPT | model | StrOutputParser() if text else PROMPT | model
    return RunnablePassthrough.assign(context=itemgetter("input") | shelf).assign(answer=answer)


def plain(shelf: BaseRetriever, model: Any) -> Runnable[Any, Any]:
    """What tutorials write: a text in, a text out."""
    return {"context": shelf, "input": RunnablePassthrough()} | PROMPT | model | StrOutputParser()


def around(chain: Any, cache: Cache, **options: Any) -> CachedChain[Any, Any]:
    given = {"corpus": "handbook", "stamps": BUILT, **options}
    return CachedChain.around(chain, cache=cache, **given)


async def collected(stream: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


async def every_way(chain: Any, given: Any) -> list[Any]:
    """Ask in all ways, one after the other; the answers as `invoke` would give them."""
    return [
        chain.invoke(given),
        await chain.ainvoke(given),
        summed(chain.stream(given)),
        summed(await collected(chain.astream(given))),
        chain.batch([given])[0],
        (await chain.abatch([given]))[0],
    ]


# -- what goes in comes out ------------------------------------------------------------------------


async def test_a_retrieval_chain_keeps_its_mapping(
    opened: Cache, shelf: Shelf, model: StreamingChat
) -> None:
    chain = retrieval(shelf, model)
    rag = around(chain, opened)
    fresh = chain.invoke(ASKED)
    calls, asked = model.calls, len(shelf.asked)
    results = await every_way(rag, ASKED)
    assert [one["cache"]["hit"] for one in results] == [False, True, True, True, True, True]
    assert {tuple(one) for one in results} == {("input", "context", "answer", "cache")}
    assert all(bare(one)["context"] == fresh["context"] for one in results)
    assert len({one["answer"] for one in results}) == 1
    assert (model.calls, len(shelf.asked)) == (calls + 1, asked + 1)


async def test_a_stream_of_it_fills_what_the_others_hit(
    opened: Cache, shelf: Shelf, model: StreamingChat
) -> None:
    chain = retrieval(shelf, model)
    rag = around(chain, opened)
    theirs = [sorted(chunk) for chunk in chain.stream(ASKED)]
    chunks = list(rag.stream(ASKED))
    assert [sorted(chunk) for chunk in chunks] == [*theirs, ["cache"]]
    assert reported(summed(chunks)) == (False, None, "not found")
    results = await every_way(rag, ASKED)
    assert all(bare(one) == bare(summed(chunks)) for one in results)
    assert all(one["cache"]["hit"] for one in results)
    assert model.calls == 2


async def test_a_text_stays_a_text(opened: Cache, shelf: Shelf, model: StreamingChat) -> None:
    rag = around(plain(shelf, model), opened)
    results = await every_way(rag, QUESTION)
    assert all(isinstance(one, str) for one in results)
    assert len(set(results)) == 1
    assert model.calls == 1
    assert len(list(rag.stream(QUESTION))) > 3
    assert rag.explain(QUESTION).outcome.answer.text == results[0]
    assert "same tokens" in str(await rag.aexplain(QUESTION))


async def test_a_text_with_the_fields_beside_it(
    opened: Cache, shelf: Shelf, model: StreamingChat
) -> None:
    rag = around(plain(shelf, model), opened, with_fields=True)
    results = await every_way(rag, QUESTION)
    assert {tuple(one) for one in results} == {("answer", "cache")}
    assert [one["cache"]["hit"] for one in results] == [False, True, True, True, True, True]
    assert results[-1]["cache"]["saved"]["output_tokens"] == 7
    assert [sorted(chunk) for chunk in rag.stream(QUESTION)][-1] == ["cache"]
    assert rag.get_output_jsonschema()["type"] == "object"


@pytest.mark.parametrize("streamed_first", [False, True])
async def test_a_message_tells_it_in_its_metadata(
    opened: Cache, shelf: Shelf, model: StreamingChat, streamed_first: bool
) -> None:
    model.cache = StampCache(stampcache.open_cache("memory://"))  # with fields of its own
    rag = around({"context": shelf, "input": RunnablePassthrough()} | PROMPT | model, opened)
    first = [summed(rag.stream(QUESTION))] if streamed_first else []
    results = [*first, *await every_way(rag, QUESTION)]
    told = [one.response_metadata["cache"] for one in results]
    assert [one["hit"] for one in told] == [False] + [True] * (len(told) - 1)
    assert told[0]["reason"] == "not found"
    assert all(bare(one) == bare(results[0]) for one in results)
    assert all(one.usage_metadata["total_tokens"] == 0 for one in results[1:])
    assert results[1].id is None
    assert isinstance(summed(rag.stream(QUESTION)), AIMessageChunk)
    assert results[0].additional_kwargs["reasoning_content"] == "The context says so."


async def test_objects_and_mappings_of_parsers(opened: Cache, shelf: Shelf) -> None:
    reply = AIMessage(
        "",
        tool_calls=[{"name": "Ruling", "args": {"days": 3}, "id": "1"}],
        response_metadata={"finish_reason": "tool_calls"},
    )
    model = StreamingChat()
    model.answering(lambda messages, call: reply)
    chain = {"context": shelf, "input": RunnablePassthrough()} | PROMPT
    rag = around(chain | model.with_structured_output(Ruling), opened)
    assert await every_way(rag, QUESTION) == [Ruling(days=3)] * 6
    model.answering(lambda messages, call: AIMessage('{"days": 3, "of": ["a", "b"]}'))
    as_json = around(chain | model | JsonOutputParser(), opened, version="json")
    results = await every_way(as_json, QUESTION)
    assert all(bare(one) == {"days": 3, "of": ["a", "b"]} for one in results)
    assert results[-1]["cache"]["hit"]
    assert model.calls == 2


@pytest.mark.parametrize("key", ["input", "question", "query"])
def test_the_question_stands_under_a_key(opened: Cache, shelf: Shelf, key: str) -> None:
    model = CountingChat()
    chain = RunnableLambda(itemgetter(key)) | plain(shelf, model)
    rag = around(chain, opened, question_key="query" if key == "query" else "")
    assert rag.invoke({key: QUESTION}) == rag.invoke({key: f"  {QUESTION}\n"})
    rag.invoke({key: QUESTION, "language": "de"})
    assert model.calls == 2


def test_a_question_that_is_nowhere_is_refused_in_a_sentence(opened: Cache, shelf: Shelf) -> None:
    rag = around(plain(shelf, CountingChat()), opened)
    for given in ({}, {"query": "x"}, 3, {"input": 3}):
        with pytest.raises(ValueError, match="question_key"):
            rag.invoke(given)
    with pytest.raises(ValueError, match='"query"'):
        around(plain(shelf, CountingChat()), opened, question_key="query").invoke(ASKED)


def test_a_text_and_a_mapping_are_two_questions(opened: Cache, shelf: Shelf) -> None:
    asked: list[object] = []

    def chain(given: Any) -> dict[str, Any]:
        asked.append(given)
        return {"answer": str(type(given)), "context": [Document("a")]}

    rag = around(chain, opened)
    for given in (QUESTION, ASKED, {"question": QUESTION}):
        assert not rag.invoke(given)["cache"]["hit"]
        assert rag.invoke(given)["cache"]["hit"]
    assert asked == [QUESTION, ASKED, {"question": QUESTION}]


async def test_what_only_passes_through_is_the_callers_own(semantic: Cache, shelf: Shelf) -> None:
    model = StreamingChat()
    chains: list[tuple[Any, Callable[[str], Any]]] = [
        (retrieval(shelf, model), lambda text: {"input": text}),
        (
            {"context": shelf, "question": RunnablePassthrough(), "input": RunnablePassthrough()}
            | RunnablePassthrough.assign(answer=PROMPT | model | StrOutputParser()),
            lambda text: text,
        ),
    ]
    for chain, form in chains:
        rag = around(chain, semantic)
        made = rag.invoke(form(QUESTION))
        for hit in await every_way(rag, form(PLEASE)):
            assert reported(hit)[:2] == (True, "semantic")
            assert hit["input"] == PLEASE
            assert hit.get("question", PLEASE) == PLEASE
            assert (hit["answer"], hit["context"]) == (made["answer"], made["context"])
        assert rag.invoke(form(f"{QUESTION} "))["input"] == f"{QUESTION} "


def test_a_caller_gets_copies(opened: Cache) -> None:
    rag = around(
        lambda given: {"answer": ["a"], "context": [Document("d")], "more": {"x": []}}, opened
    )
    for _ in range(3):
        result = rag.invoke(ASKED)
        assert (result["answer"], result["more"]) == (["a"], {"x": []})
        assert result["context"][0].metadata == {}
        result["answer"].append("b")
        result["more"]["x"].append(1)
        result["context"][0].metadata["mine"] = 1


# -- what it was made from -------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [True, False])
async def test_a_changed_source_makes_its_answers_anew(
    opened: Cache, shelf: Shelf, model: StreamingChat, shown: bool
) -> None:
    shelf.k = 1
    chain = retrieval(shelf, model) if shown else retrieval(shelf, model) | itemgetter("answer")
    rag = around(chain, opened, with_fields=not shown)
    for ask in (
        lambda: asyncio.to_thread(rag.invoke, ASKED),
        lambda: rag.ainvoke(ASKED),
        lambda: asyncio.to_thread(lambda: summed(rag.stream(ASKED))),
        lambda: collected(rag.astream(ASKED)),
    ):
        await ask()
        assert opened.invalidate(corpus="other", source="leave") == 0
        assert opened.invalidate(corpus="handbook", source="travel") == 0
        assert rag.invoke(ASKED)["cache"]["hit"]
        assert opened.invalidate(corpus="handbook", source="leave") == 1
    assert reported(rag.invoke(ASKED)) == (False, None, CHANGED)


def test_documents_of_runs_beside_it_are_not_its_own(opened: Cache, shelf: Shelf) -> None:
    shelf.k = 1
    rag = around(plain(shelf, CountingChat()), opened)
    asked = [f"{word} {number}" for number in range(6) for word in ("leave", "travel", "lunch")]
    rag.batch(asked)
    assert opened.invalidate(corpus="handbook", source="travel") == 6
    assert opened.invalidate(corpus="handbook", source="lunch") == 6


@pytest.mark.parametrize(
    ("options", "is_kept"),
    [
        ({}, False),
        ({"version_of": "corpus"}, True),
        ({"version_of": "corpus", "corpus": ""}, False),
        ({"grounding": "none"}, True),
        ({"grounding": "none", "corpus": "", "stamps": None}, True),
    ],
)
def test_unknown_evidence(opened: Cache, options: dict[str, Any], is_kept: bool) -> None:
    calls: list[str] = []

    def chain(question: str) -> str:
        calls.append(question)
        return f"answer {len(calls)}"

    rag = around(chain, opened, **options)
    answers = [rag.invoke(QUESTION), "".join(rag.stream(QUESTION))]
    assert (len(set(answers)) == 1) is is_kept
    counted = opened.stats(everything=True).counters
    assert counted.get("adapter.evidence_unknown", 0) == (0 if is_kept else 2)
    if options.get("version_of") == "corpus" and is_kept:
        opened.invalidate(corpus="handbook", source="anything")
        assert rag.invoke(QUESTION) == "answer 2"


def test_a_retriever_that_failed_leaves_it_unknown(opened: Cache, shelf: Shelf) -> None:
    class Broken(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise RuntimeError("down")

    chain = plain(Broken().with_fallbacks([shelf]), CountingChat())
    rag = around(chain, opened, version="1")
    assert rag.invoke(QUESTION) != rag.invoke(QUESTION)
    assert opened.stats(everything=True).counters["adapter.evidence_unknown"] == 2


def test_no_document_found_is_known_and_depends_on_the_corpus(opened: Cache, shelf: Shelf) -> None:
    rag = around(plain(shelf, CountingChat()), opened)
    first = rag.invoke("parking rules")
    assert rag.invoke("parking rules") == first
    opened.invalidate(corpus="handbook", source="parking")
    assert rag.invoke("parking rules") != first


async def test_recheck_needs_the_retriever_and_notices_what_nobody_announced(
    opened: Cache, shelf: Shelf, model: StreamingChat
) -> None:
    with pytest.raises(ConfigError, match="retriever="):
        around(retrieval(shelf, model), opened, grounding="recheck")
    rag = around(retrieval(shelf, model), opened, grounding="recheck", retriever=shelf, stamps=None)
    made = rag.invoke(ASKED)
    assert all(one["cache"]["hit"] for one in await every_way(rag, ASKED))
    shelf.put("leave", "annual leave is thirty one days")
    changed = summed(rag.stream(ASKED))
    assert reported(changed) == (False, None, "evidence changed")
    assert changed["answer"] != made["answer"]
    assert changed["context"][0].page_content == "annual leave is thirty one days"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_change_while_it_is_made_refuses_the_fill(
    opened: Cache, shelf: Shelf, model: StreamingChat, streamed: bool
) -> None:
    left = [1]

    def change(messages: list[Any], call: int) -> AIMessage:
        if left:
            left.pop()
            opened.invalidate(corpus="handbook", source="leave")
        return thinking_reply(messages, call)

    model.answering(change)
    rag = around(retrieval(shelf, model), opened)
    summed(rag.stream(ASKED)) if streamed else rag.invoke(ASKED)
    assert opened.stats(everything=True).counters["refused.fenced"] == 1
    assert not rag.invoke(ASKED)["cache"]["hit"]


# -- which chain it is -----------------------------------------------------------------------------


def test_another_prompt_model_or_retriever_is_another_chain(opened: Cache, shelf: Shelf) -> None:
    chat = CountingChat()
    other_prompt = ChatPromptTemplate.from_template("Now use {context}. {input}")
    given = {"context": shelf, "input": RunnablePassthrough()}
    chains: list[Runnable[Any, Any]] = [
        given | PROMPT | chat | StrOutputParser(),
        given | other_prompt | chat | StrOutputParser(),
        given | PROMPT | CountingChat(temperature=0.5) | StrOutputParser(),
        {"context": Shelf(k=1), "input": RunnablePassthrough()} | PROMPT | chat | StrOutputParser(),
    ]
    for chain in chains:
        rag = around(chain, opened, with_fields=True)
        assert not rag.invoke(QUESTION)["cache"]["hit"]
        assert rag.invoke(QUESTION)["cache"]["hit"]
    chat.temperature = 0.9
    assert not around(chains[0], opened, with_fields=True).invoke(QUESTION)["cache"]["hit"]


def test_a_configured_retriever_is_keyed_as_it_is_configured(opened: Cache, shelf: Shelf) -> None:
    configurable = shelf.configurable_fields(k=ConfigurableField(id="k"))
    rag = around(retrieval(configurable, CountingChat()), opened)
    for k in (1, 2):
        config = {"configurable": {"k": k}}
        assert not rag.invoke(ASKED, config)["cache"]["hit"]
        assert rag.invoke(ASKED, config)["cache"]["hit"]


def test_what_cannot_be_identified_needs_a_version(opened: Cache) -> None:
    client = object()

    def chain(given: dict[str, Any]) -> dict[str, Any]:
        return {"answer": f"{client}", "context": [Document("a")]}

    with pytest.raises(ConfigError, match="version="):
        around(chain, opened)
    for version in ("1", "2"):
        rag = around(chain, opened, version=version)
        assert not rag.invoke(ASKED)["cache"]["hit"]
        assert rag.invoke(ASKED)["cache"]["hit"]


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_an_index_of_unknown_version_is_known_by_one_object_only(
    opened: Cache, shelf: Shelf, grounding: str
) -> None:
    """Nothing of an index is seen from outside: another object may stand for another one."""
    chat = CountingChat()
    one, other = (
        CachedChain.around(plain(shelf, chat), cache=opened, grounding=grounding) for _ in range(2)
    )
    assert one.invoke(QUESTION) == one.invoke(QUESTION) != other.invoke(QUESTION)
    assert chat.calls == 2


@pytest.mark.parametrize("known", [{"stamps": BUILT}, {"version": "1"}])
def test_an_index_of_known_version_is_shared(
    opened: Cache, shelf: Shelf, known: dict[str, Any]
) -> None:
    chat = CountingChat()
    one, other = (CachedChain.around(plain(shelf, chat), cache=opened, **known) for _ in range(2))
    assert one.invoke(QUESTION) == other.invoke(QUESTION)
    assert chat.calls == 1


def test_an_app_without_documents(opened: Cache) -> None:
    chat = CountingChat()
    chain = ChatPromptTemplate.from_template("{input}") | chat | StrOutputParser()
    rag = CachedChain.around(chain, cache=opened, grounding="none")
    assert rag.invoke(ASKED) == rag.invoke(ASKED)
    assert chat.calls == 1


def test_parts_and_around_never_share(opened: Cache, shelf: Shelf) -> None:
    answer = PROMPT | CountingChat() | StrOutputParser()
    parts = CachedChain(
        retriever=shelf,
        answer=answer,
        cache=opened,
        grounding="version",
        corpus="handbook",
        stamps=BUILT,
    )
    parts.invoke(ASKED)
    assert not around(retrieval(shelf, CountingChat()), opened).invoke(ASKED)["cache"]["hit"]


async def test_it_stands_above_other_caches(
    opened: Cache, shelf: Shelf, model: StreamingChat
) -> None:
    with stampcache.open_cache("memory://") as below:
        chat = CachedChatModel(inner=model, cache=below)
        found = CachedRetriever(
            inner=shelf, cache=below, grounding="version", corpus="handbook", stamps=BUILT
        )
        rag = around({"context": found, "input": RunnablePassthrough()} | PROMPT | chat, opened)
        results = await every_way(rag, QUESTION)
        told = [one.response_metadata["cache"] for one in results]
        assert [one["hit"] for one in told] == [False] + [True] * 5
        model.temperature = 0.9
        assert not rag.invoke(QUESTION).response_metadata["cache"]["hit"]
        assert model.calls == 2
        assert opened.invalidate(corpus="handbook", source="leave") == 2


# -- graphs ----------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    question: str
    context: list[Document]
    answer: str
    messages: list[Any]


def graph(shelf: Shelf, chat: CountingChat, *, talks: bool = False) -> Any:
    def retrieve(state: State) -> State:
        return {"context": shelf.invoke(state["question"])}

    def generate(state: State) -> State:
        reply = chat.invoke(f"{state['context']} {state['question']}")
        if talks:
            return {"messages": [HumanMessage(state["question"], id="h"), reply]}
        return {"answer": reply.text}

    built = StateGraph(State)
    built.add_node("retrieve", retrieve)
    built.add_node("generate", generate)
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "generate")
    built.add_edge("generate", END)
    return built.compile()


@pytest.mark.parametrize("talks", [False, True])
async def test_a_graph_is_a_chain_too(opened: Cache, shelf: Shelf, talks: bool) -> None:
    chat = CountingChat()
    with pytest.raises(ConfigError, match="version="):
        around(graph(shelf, chat), opened)
    rag = around(graph(shelf, chat, talks=talks), opened, version=f"1 {talks}")
    given = {"question": QUESTION}
    results = await every_way(rag, given)
    assert [one["cache"]["hit"] for one in results] == [False, True, True, True, True, True]
    assert chat.calls == 1
    key = "messages" if talks else "answer"
    texts = [[m.text for m in one[key]] if talks else one[key] for one in results]
    assert all(text == texts[0] for text in texts)
    assert all(one["context"] == results[0]["context"] for one in results)
    if talks:
        assert [m.id for m in results[1]["messages"]] == [None, None]
        assert results[1]["messages"][1].usage_metadata["total_tokens"] == 0
    [chunk, fields] = rag.stream({"question": "lunch"})  # a graph is made as one chunk
    assert set(chunk) == {"question", "context", key}
    assert set(fields) == {"cache"}
    assert rag.invoke({"question": "lunch"})["cache"]["hit"]
    [chunk, _] = await collected(rag.astream({"question": "travel"}))
    assert bare(await rag.ainvoke({"question": "travel"}))["context"] == chunk["context"]
    assert chat.calls == 3


# -- errors, spoiled answers, what cannot be stored ------------------------------------------------


async def test_errors_pass_unchanged_and_store_nothing(opened: Cache) -> None:
    failure = RuntimeError("down")

    def chain(given: Any) -> Any:
        raise failure

    rag = around(chain, opened, version="1")
    for ask in (lambda: rag.invoke(QUESTION), lambda: list(rag.stream(QUESTION))):
        with pytest.raises(RuntimeError) as caught:
            ask()
        assert caught.value is failure
    with pytest.raises(RuntimeError):
        await rag.ainvoke(QUESTION)
    assert opened.stats(everything=True).entries == 0


@pytest.mark.parametrize(
    "answer", ["", AIMessage(""), AIMessage("cut", response_metadata={"finish_reason": "length"})]
)
@pytest.mark.parametrize("shown", [True, False])
def test_spoiled_answers_are_not_stored(opened: Cache, answer: Any, shown: bool) -> None:
    def chain(given: Any) -> Any:
        return {"answer": answer, "context": [Document("a")]} if shown else answer

    rag = around(chain, opened, version="1", grounding="none")
    rag.invoke(QUESTION)
    rag.invoke(QUESTION)
    assert opened.stats(everything=True).entries == 0


def test_what_has_no_stored_form_is_returned_all_the_same(opened: Cache) -> None:
    rag = around(lambda given: {"answer": "a", "context": [], "client": id}, opened, version="1")
    for _ in range(2):
        assert rag.invoke(QUESTION)["client"] is id
    assert opened.stats(everything=True).counters["adapter.not_storable"] == 2


def test_a_generator_function_is_a_chain_that_streams(opened: Cache) -> None:
    calls: list[str] = []

    def chain(question: str) -> Iterator[str]:
        calls.append(question)
        yield from ("thirty ", "days")

    rag = around(RunnableLambda(chain), opened, grounding="none")
    assert list(rag.stream(QUESTION)) == ["thirty ", "days"]
    assert rag.invoke(QUESTION) == "thirty days"
    assert calls == [QUESTION]


async def test_equal_questions_at_once_share_one_making(opened: Cache) -> None:
    calls: list[str] = []

    async def chain(question: str) -> str:
        calls.append(question)
        await asyncio.sleep(0.01)
        return "thirty days"

    rag = around(RunnableLambda(chain), opened, grounding="none")
    assert await rag.abatch([QUESTION] * 20) == ["thirty days"] * 20
    streams = await asyncio.gather(*(collected(rag.astream("other")) for _ in range(5)))
    assert streams == [["thirty days"]] * 5
    assert calls == [QUESTION, "other"]


async def test_it_composes_and_has_schemas(opened: Cache, shelf: Shelf) -> None:
    rag = around(plain(shelf, CountingChat()), opened, name="handbook")
    whole = rag | RunnableLambda(str.upper)
    assert whole.invoke(QUESTION) == await whole.ainvoke(QUESTION)
    assert rag.get_name() == "handbook"
    assert rag.get_input_jsonschema()
    assert rag.get_graph().draw_mermaid()
