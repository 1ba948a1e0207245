"""`CachedChain`: hits and misses, what they return, and the cases of public bug reports."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from langchain_apps import PROMPT, QUESTION, App, reported
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_fakes import CountingChat, Shelf, broken_flow, plain_reply
from pydantic import BaseModel

import stampcache
from langchain_stampcache import CachedChain
from stampcache import Answer, Cache, ConfigError, Stamps
from stampcache.adapters import Core
from stampcache.testing import AngleEmbedder, FailingStore


class Ruling(BaseModel):
    days: int


@pytest.fixture
def app(opened: Cache, shelf: Shelf) -> App:
    return App(opened, shelf)


# -- hit and miss ----------------------------------------------------------------------------------


def test_a_second_equal_question_is_a_hit_that_skips_the_generation_only(app: App) -> None:
    first = app.ask()
    assert first.keys() == {"input", "context", "answer", "cache"}
    assert reported(first) == (False, None, "not found")
    second = app.ask(f"  {QUESTION} \n")
    assert reported(second) == (True, "exact", "same tokens")
    assert second["answer"] == first["answer"]
    assert second["context"] == first["context"]
    assert app.model.calls == 1
    assert len(app.shelf.asked) == 2


async def test_o7_sync_and_async_share_their_entries(app: App) -> None:
    made = await app.chain.ainvoke({"input": QUESTION})
    assert app.ask()["answer"] == made["answer"]
    assert (await app.chain.ainvoke({"input": QUESTION}))["cache"]["hit"]
    assert app.model.calls == 1


def test_f1_f2_f9_edited_added_and_removed_documents(app: App) -> None:
    app.ask()
    app.ask("lunch noon")
    app.shelf.put("leave", "annual leave is thirty one days")
    assert reported(app.ask()) == (False, None, "evidence changed")
    assert app.ask("lunch noon")["cache"]["hit"]
    app.shelf.put("more", "annual leave is longer for parents")
    assert not app.ask()["cache"]["hit"]
    app.shelf.remove("more")
    app.ask()
    assert app.ask()["cache"]["hit"]


def test_f3_no_idea_from_before_the_ingest_is_not_served(app: App) -> None:
    assert app.ask("parking rules")["context"] == []
    app.shelf.put("parking", "parking rules are strict")
    assert not app.ask("parking rules")["cache"]["hit"]


def test_f5_invalidation_by_corpus_source_and_chunk(opened: Cache, shelf: Shelf) -> None:
    app = App(opened, shelf, corpus="handbook")
    for change in ({"source": "leave"}, {"chunk": "id-leave"}, {"corpus": "handbook"}):
        app.ask()
        assert opened.invalidate(**change) == 1
    app.ask()
    assert opened.invalidate(corpus="other") == 0


def test_f16_ids_and_scores_of_documents_do_not_matter(app: App) -> None:
    app.ask()
    document = app.shelf._documents["leave"]
    document.id = "new"
    document.metadata["relevance_score"] = 0.123
    assert app.ask()["cache"]["hit"]
    document.metadata["page"] = 3
    assert not app.ask()["cache"]["hit"]


def test_metadata_that_is_no_json_is_unknown_evidence(app: App) -> None:
    app.shelf.put("leave", "annual leave", when=object())
    for _ in range(2):
        assert reported(app.ask()) == (False, None, "evidence unknown")
    assert app.model.calls == 2


def semantic(**options: Any) -> Cache:
    embedder = AngleEmbedder({QUESTION: 0.0, f"{QUESTION} please": 4.0, f"say {QUESTION}": 60.0})
    return stampcache.open_cache("memory://", embedder=embedder, calibration=0.95, **options)


async def test_a_semantic_hit_shows_the_documents_it_was_made_from(shelf: Shelf) -> None:
    app = App(semantic(), shelf)
    first = app.ask()
    shelf.put("zoo", "please feed no animals")
    for found in (
        app.ask(f"{QUESTION} please"),
        await app.chain.ainvoke({"input": f"{QUESTION} please"}),
    ):
        assert reported(found)[:2] == (True, "semantic")
        assert found["answer"] == first["answer"]
        assert found["context"] == first["context"]
        assert found["cache"]["similarity"] == pytest.approx(0.9976, abs=1e-3)
    assert not app.ask(f"say {QUESTION}")["cache"]["hit"]


def test_a_semantic_hit_is_rechecked_for_the_entrys_own_question(shelf: Shelf) -> None:
    app = App(semantic(), shelf)
    app.ask()
    shelf.put("leave", "annual leave is thirty one days")
    assert not app.ask(f"{QUESTION} please")["cache"]["hit"]


async def test_grounding_none_without_a_retriever(opened: Cache) -> None:
    model = CountingChat()
    chain = CachedChain(
        retriever=None, answer=PROMPT | model | StrOutputParser(), cache=opened, grounding="none"
    )
    chain.invoke({"input": "a"})
    assert (await chain.ainvoke({"input": "a"}))["context"] == []
    assert model.calls == 1


def test_retrievers_may_be_functions_and_runnables(opened: Cache, shelf: Shelf) -> None:
    def function(question: str) -> list[Document]:
        return shelf.invoke(question)

    for retriever in (function, shelf.invoke, RunnableLambda(itemgetter("input")) | shelf):
        model = CountingChat()
        chain = CachedChain(retriever=retriever, answer=PROMPT | model, cache=opened, version="1")
        assert chain.invoke({"input": QUESTION})["context"] == shelf.invoke(QUESTION)
        assert chain.invoke({"input": QUESTION})["cache"]["hit"]


# -- A: what changes the answer is in the key ------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda app: setattr(app.model, "temperature", 0.7),
        lambda app: setattr(app.model, "model", "fake-2"),
        lambda app: setattr(app.model, "base_url", "http://elsewhere"),
    ],
)
def test_a2_a3_a_changed_live_model_is_a_miss(app: App, change) -> None:
    app.ask()
    change(app)
    assert not app.ask()["cache"]["hit"]
    assert app.ask()["cache"]["hit"]


def test_a2_a_changed_prompt_is_a_miss(app: App, opened: Cache) -> None:
    app.ask()
    prompt = ChatPromptTemplate.from_template("Now use {context}. {input}")
    other = App(opened, app.shelf, answer=prompt | app.model | StrOutputParser())
    assert not other.ask()["cache"]["hit"]


def test_a6_bound_options_are_keyed(opened: Cache, shelf: Shelf) -> None:
    answers = [
        PROMPT | CountingChat().bind(thinking={"type": kind}) | StrOutputParser()
        for kind in ("enabled", "disabled")
    ]
    for answer in answers:
        assert not App(opened, shelf, answer=answer).ask()["cache"]["hit"]


def test_api_keys_are_not_keyed(opened: Cache, shelf: Shelf) -> None:
    for key in ("sk-1", "sk-2"):
        hit = App(opened, shelf, answer=PROMPT | CountingChat(api_key=key)).ask()["cache"]["hit"]
    assert hit


def test_further_inputs_are_part_of_the_question(shelf: Shelf) -> None:
    app = App(semantic(), shelf)
    app.ask(language="en")
    assert not app.ask(language="de")["cache"]["hit"]
    assert not app.ask(f"{QUESTION} please", language="fr")["cache"]["hit"]
    assert app.ask(f"{QUESTION} please", language="en")["cache"]["hit"]
    for _ in range(2):
        assert reported(app.ask(thing=object()))[2] == "uncacheable"


def test_two_stamps_never_share(opened: Cache, shelf: Shelf) -> None:
    for index in ("v1", "v2"):
        assert not App(opened, shelf, stamps=Stamps(index=index)).ask()["cache"]["hit"]


# -- D, E ------------------------------------------------------------------------------------------


def test_d4_d8_history_makes_it_another_question_and_exact_only(shelf: Shelf) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history", optional=True), ("human", "{context} {input}")]
    )
    model = CountingChat()
    app = App(semantic(), shelf, answer=prompt | model | StrOutputParser())
    turns = [HumanMessage("hello", id="1"), AIMessage("hi", id="2")]
    app.ask()
    app.ask(chat_history=turns)
    assert model.calls == 2
    again = [HumanMessage("hello", id="3"), AIMessage("hi", id="4")]
    assert app.ask(chat_history=again)["cache"]["hit"]
    assert not app.ask(f"{QUESTION} please", chat_history=turns)["cache"]["hit"]
    assert not app.ask(chat_history=[*turns[:1], AIMessage("ho")])["cache"]["hit"]
    assert not app.ask(chat_history=[("human", "hello"), ("ai", "hi")])["cache"]["hit"]
    assert app.ask(chat_history=[])["cache"]["hit"]


async def test_e1_e3_scopes_reach_invoke_batch_and_async(app: App) -> None:
    for tenant in ("acme", "other"):
        with stampcache.scope(tenant=tenant):
            assert not app.ask()["cache"]["hit"]
            assert app.ask()["cache"]["hit"]
            batch = app.chain.batch([{"input": QUESTION}] * 2)
            abatch = await app.chain.abatch([{"input": QUESTION}] * 2)
            assert all(each["cache"]["hit"] for each in (*batch, *abatch))
    assert app.model.calls == 2
    assert reported(app.ask())[2] == "no tenant in scope"


def test_e13_a_required_tenant_that_is_missing_bypasses(shelf: Shelf) -> None:
    cache = stampcache.open_cache("memory://", tenants="required")
    app = App(cache, shelf)
    for _ in range(2):
        assert reported(app.ask()) == (False, None, "no tenant in scope")
    assert app.model.calls == 2
    assert cache.stats(everything=True).counters["miss.unscoped"] == 2


# -- H, K: fidelity and accounting -----------------------------------------------------------------


def test_h_messages_come_back_as_messages(opened: Cache, shelf: Shelf) -> None:
    app = App(opened, shelf, answer=PROMPT | CountingChat())
    made, hit = app.ask()["answer"], app.ask()["answer"]
    assert (hit.content, hit.id) == (made.content, None)
    assert hit.usage_metadata["total_tokens"] == 0
    assert hit.response_metadata["token_usage"]["prompt_tokens"] == 0
    assert hit.response_metadata["cache"]["saved"]["reasoning_tokens"] == 3
    assert made.usage_metadata["total_tokens"] == 18


def test_h_mappings_and_objects_come_back(opened: Cache, shelf: Shelf) -> None:
    def as_mapping(inputs: dict) -> dict:
        return {"answer": "yes", "sources": ["a"], "input": "never replaces ours"}

    def as_object(inputs: dict) -> Ruling:
        return Ruling(days=30)

    ways = ((as_mapping, "sources", ["a"]), (as_object, "answer", Ruling(days=30)))
    for answer, key, expected in ways:
        app = App(opened, shelf, answer=answer)
        made, hit = app.ask(), app.ask()
        assert hit["cache"]["hit"]
        assert {**made, "cache": 0} == {**hit, "cache": 0}
        assert (hit[key], hit["input"]) == (expected, QUESTION)


def test_h11_nothing_a_caller_does_reaches_another(opened: Cache, shelf: Shelf) -> None:
    app = App(opened, shelf, answer=lambda inputs: {"answer": ["a"], "more": {"x": []}})
    for _ in range(3):
        result = app.ask()
        assert (result["answer"], result["more"]) == (["a"], {"x": []})
        result["answer"].append("b")
        result["more"]["x"].append(1)
        result["context"].clear()


def test_h1_an_unreadable_entry_is_a_miss_and_goes(app: App, opened: Cache) -> None:
    app.ask()
    documents = app.shelf.invoke(QUESTION)
    from langchain_stampcache.chains.requests import Asked
    from langchain_stampcache.retrieval.evidence import evidence_of

    evidence = evidence_of(documents, corpus="")
    request = app.chain._serving.parts.requests.of(Asked(question=QUESTION), None, evidence)
    opened.update(request, Answer(text="x", payload=b"{", format="lc.chain.1"))
    assert reported(app.ask()) == (False, None, "not found")
    assert app.ask()["cache"]["hit"]
    assert opened.stats(everything=True).counters["error.adapter.undecodable"] == 1


def test_what_cannot_be_stored_is_returned_all_the_same(opened: Cache, shelf: Shelf) -> None:
    thing = object()
    app = App(opened, shelf, answer=lambda inputs: {"answer": "a", "thing": id}, version="1")
    for _ in range(2):
        assert app.ask()["thing"] is id
    assert thing
    assert opened.stats(everything=True).counters["adapter.not_storable"] == 2


def test_o6_the_callers_inputs_are_not_touched(app: App) -> None:
    inputs = {"input": QUESTION, "more": ["x"]}
    app.chain.invoke(inputs)
    assert inputs == {"input": QUESTION, "more": ["x"]}


def test_k1_k5_three_calls_one_real(app: App) -> None:
    handler = UsageMetadataCallbackHandler()
    results = [
        app.chain.invoke({"input": QUESTION}, config={"callbacks": [handler]}) for _ in range(3)
    ]
    assert handler.usage_metadata["fake-1"]["total_tokens"] == 18
    saved = results[-1]["cache"]["saved"]
    assert (saved["input_tokens"], saved["output_tokens"], saved["cached_tokens"]) == (11, 7, 5)
    assert saved["latency_s"] > 0


def test_runs_are_traced_under_the_chains_name(opened: Cache, shelf: Shelf) -> None:
    class Names(BaseCallbackHandler):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_chain_start(self, *args: Any, name: str = "", **kwargs: Any) -> None:
            self.seen.append(name)

        def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("retriever")

    names = Names()
    app = App(opened, shelf, name="handbook")
    app.chain.invoke({"input": QUESTION}, config={"callbacks": [names]})
    assert names.seen[:2] == ["handbook", "retriever"]


# -- J: concurrency --------------------------------------------------------------------------------


def slow_app(opened: Cache, shelf: Shelf, waiting: int) -> App:
    """An app whose model answers once ``waiting`` callers are inside the chain, or gives up."""
    app = App(opened, shelf)
    arrived = threading.Semaphore(0)
    retrieve = shelf._get_relevant_documents

    def counted(*args: Any, **options: Any) -> list[Document]:
        arrived.release()
        return retrieve(*args, **options)

    def reply(messages: list, call: int) -> AIMessage:
        for _ in range(waiting):
            assert arrived.acquire(timeout=20)
        return plain_reply(messages, call)

    object.__setattr__(shelf, "_get_relevant_documents", counted)
    app.model.answering(reply)
    return app


def test_f17_j8_equal_questions_of_threads_share_one_making(opened: Cache, shelf: Shelf) -> None:
    app = slow_app(opened, shelf, 8)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: app.ask(), range(8)))
    assert app.model.calls == 1
    assert len({result["answer"] for result in results}) == 1
    assert len({id(result) for result in results}) == 8


async def test_j8_j10_a_hundred_equal_tasks_share_one_making(opened: Cache, shelf: Shelf) -> None:
    model = CountingChat()
    began = asyncio.Event()

    async def answer(inputs: dict) -> AIMessage:
        began.set()
        await asyncio.sleep(0)
        return await model.ainvoke(inputs["input"])

    app = App(opened, shelf, answer=RunnableLambda(answer), version="1")
    results = await asyncio.gather(*(app.chain.ainvoke({"input": QUESTION}) for _ in range(100)))
    assert model.calls == 1
    answers = [result["answer"] for result in results]
    assert len({id(each) for each in answers}) == 100
    assert sum(each.usage_metadata["total_tokens"] for each in answers) == 18


def test_a_shared_failure_is_everybodys(opened: Cache, shelf: Shelf) -> None:
    app = slow_app(opened, shelf, 4)
    made = app.model._reply

    def fail(messages: list, call: int) -> AIMessage:
        made(messages, call)
        raise RuntimeError("down")

    app.model.answering(fail)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(app.ask) for _ in range(4)]
        assert {type(future.exception()) for future in futures} == {RuntimeError}


async def test_batches_never_mix_items(app: App) -> None:
    asked = [{"input": f"leave question {n % 5}"} for n in range(30)]
    for results in (app.chain.batch(asked), await app.chain.abatch(asked)):
        assert all(
            result["answer"].endswith(each["input"])
            for result, each in zip(results, asked, strict=True)
        )


async def test_j1_sqlite_is_not_written_on_the_event_loop(
    tmp_path: Path, shelf: Shelf, monkeypatch
) -> None:
    cache = stampcache.open_cache(f"sqlite:///{tmp_path}/c.db")
    app, loop_thread, put = App(cache, shelf), threading.get_ident(), cache.core.store.put
    threads: list[int] = []

    def watched(*args: Any) -> Any:
        threads.append(threading.get_ident())
        return put(*args)

    monkeypatch.setattr(cache.core.store, "put", watched)
    await app.chain.ainvoke({"input": QUESTION})
    assert threads
    assert loop_thread not in threads
    assert (await app.chain.ainvoke({"input": QUESTION}))["cache"]["hit"]
    cache.close()


# -- N: what is never stored, and errors -----------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage(""),
        AIMessage("cut o", response_metadata={"finish_reason": "length"}),
        AIMessage("...", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("No.", additional_kwargs={"refusal": "No."}),
        AIMessage(
            "Let me look",
            tool_calls=[{"name": "f", "args": {}, "id": "1"}],
            response_metadata={"finish_reason": "tool_calls"},
        ),
        AIMessage("I'm sorry, but I can't help with that."),
    ],
)
@pytest.mark.parametrize("parsed", [True, False])
def test_n1_n3_n4_spoiled_answers_are_not_stored(
    opened: Cache, shelf: Shelf, reply: AIMessage, parsed: bool
) -> None:
    model = CountingChat().answering(lambda messages, call: reply.model_copy())
    answer = PROMPT | model | StrOutputParser() if parsed else PROMPT | model
    app = App(opened, shelf, answer=answer)
    app.ask()
    assert not app.ask()["cache"]["hit"]
    assert opened.stats(everything=True).entries == 0


def test_structured_output_by_a_tool_call_is_an_answer(opened: Cache, shelf: Shelf) -> None:
    model = CountingChat().answering(
        lambda messages, call: AIMessage(
            "",
            tool_calls=[{"name": "Ruling", "args": {"days": 3}, "id": "1"}],
            response_metadata={"finish_reason": "tool_calls"},
        )
    )
    app = App(opened, shelf, answer=PROMPT | model.with_structured_output(Ruling))
    assert app.ask()["answer"] == app.ask()["answer"] == Ruling(days=3)
    assert model.calls == 1


async def test_errors_pass_unchanged_and_store_nothing(opened: Cache, shelf: Shelf) -> None:
    failure = RuntimeError("down")

    def fail(messages: list, call: int) -> AIMessage:
        raise failure

    app = App(opened, shelf)
    app.model.answering(fail)
    with pytest.raises(RuntimeError) as caught:
        app.ask()
    assert caught.value is failure
    with pytest.raises(RuntimeError):
        await app.chain.ainvoke({"input": QUESTION})
    object.__setattr__(shelf, "_get_relevant_documents", fail)
    with pytest.raises(TypeError):
        app.ask()
    assert opened.stats(everything=True).entries == 0


async def test_a_store_that_is_down_costs_the_hit_only(shelf: Shelf) -> None:
    store = FailingStore()
    app = App(stampcache.open_cache(store), shelf)
    app.ask()
    store.down = True
    assert reported(app.ask()) == (False, None, "store failed")
    assert (await app.chain.ainvoke({"input": QUESTION}))["answer"]
    store.down = False
    assert app.ask()["cache"]["hit"]


def test_a_cache_that_breaks_in_any_way_costs_the_hit_only(
    app: App, opened: Cache, monkeypatch
) -> None:
    for name in ("lookup_now", "update"):
        monkeypatch.setattr(Core, name, broken_flow)
    assert app.ask()["answer"]
    counted = opened.stats(everything=True).counters
    assert counted["error.adapter.lookup"] == counted["error.adapter.update"] == 1


def test_f_a_change_during_the_making_refuses_the_fill(opened: Cache, shelf: Shelf) -> None:
    app = App(opened, shelf)

    def reply(messages: list, call: int) -> AIMessage:
        if call == 1:
            opened.invalidate(source="leave")
        return plain_reply(messages, call)

    app.model.answering(reply)
    app.ask()
    assert opened.stats(everything=True).counters["refused.fenced"] == 1


# -- construction ----------------------------------------------------------------------------------


def test_what_does_not_exist_yet_is_refused_by_name(opened: Cache, shelf: Shelf) -> None:
    with pytest.raises(ConfigError, match="recheck"):
        App(opened, shelf, grounding="watch")


def test_a16_parts_without_identity_are_refused_unless_versioned(
    opened: Cache, shelf: Shelf
) -> None:
    client = object()

    def answer(inputs: dict) -> str:
        return f"{client}"

    with pytest.raises(ConfigError, match="version="):
        App(opened, shelf, answer=answer)
    first = App(opened, shelf, answer=answer, version="1")
    first.ask()
    assert first.ask()["cache"]["hit"]
    assert not App(opened, shelf, answer=answer, version="2").ask()["cache"]["hit"]


def test_wrong_calls_are_refused_in_a_sentence(app: App) -> None:
    for inputs in ({}, "text", {"input": 3}):
        with pytest.raises(ValueError, match="question"):
            app.chain.invoke(inputs)
    with pytest.raises(TypeError, match="bind"):
        app.chain.invoke({"input": QUESTION}, temperature=1)


async def test_it_composes_with_other_runnables(app: App) -> None:
    whole = {"input": RunnablePassthrough()} | app.chain | itemgetter("answer")
    assert whole.invoke(QUESTION) == await whole.ainvoke(QUESTION)
    assert app.model.calls == 1


def test_the_async_face_is_accepted(opened: Cache, shelf: Shelf) -> None:
    App(opened.aio, shelf).ask()
    assert App(opened, shelf).ask()["cache"]["hit"]


def test_odd_documents_reach_the_answer_as_if_there_were_no_cache(opened: Cache) -> None:
    def retrieve(question: str) -> list:
        return ["no document"]

    chain = CachedChain(
        retriever=retrieve, answer=lambda inputs: inputs["context"][0], cache=opened
    )
    for _ in range(2):
        result = chain.invoke({"input": QUESTION})
        assert (result["answer"], result["cache"]["hit"]) == ("no document", False)
    assert opened.stats(everything=True).counters["error.adapter.evidence"] == 2


def test_it_has_schemas_and_a_name_like_any_runnable(app: App) -> None:
    assert app.chain.get_input_jsonschema()["type"] == "object"
    assert app.chain.get_name() == "CachedChain"
    assert app.chain.get_graph().draw_mermaid()


@pytest.mark.parametrize("question", ["", "  ", "\ud800", "x" * 5_000_000])
def test_h7_odd_questions_are_answered_without_the_cache(app: App, question: str) -> None:
    for _ in range(2):
        assert reported(app.ask(question)) == (False, None, "uncacheable")
    assert app.model.calls == 2


def test_strict_caches_raise_what_they_would_have_hidden(shelf: Shelf) -> None:
    store = FailingStore()
    app = App(stampcache.open_cache(store, strict=True), shelf)
    store.down = True
    with pytest.raises(stampcache.StoreError):
        app.ask()


def test_a_callers_own_list_of_callbacks_stays_as_it_was(app: App) -> None:
    callbacks: list[BaseCallbackHandler] = []
    app.chain.invoke({"input": QUESTION}, config={"callbacks": callbacks})
    assert callbacks == []


async def test_a_cancelled_leader_hands_over(opened: Cache, shelf: Shelf) -> None:
    began = asyncio.Event()
    calls: list[int] = []

    async def answer(inputs: dict) -> str:
        calls.append(1)
        if len(calls) == 1:
            began.set()
            await asyncio.Event().wait()
        return "made"

    app = App(opened, shelf, answer=RunnableLambda(answer), version="1")
    leader = asyncio.create_task(app.chain.ainvoke({"input": QUESTION}))
    await began.wait()
    follower = asyncio.create_task(app.chain.ainvoke({"input": QUESTION}))
    await asyncio.sleep(0)
    leader.cancel()
    assert (await follower)["answer"] == "made"
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert len(calls) == 2


def test_an_answer_function_that_counts_its_calls_can_hit(opened: Cache, shelf: Shelf) -> None:
    calls: list[str] = []

    def answer(inputs: dict) -> str:
        calls.append(inputs["input"])
        return f"answer {len(calls)}"

    app = App(opened, shelf, answer=answer)
    assert [app.ask()["answer"] for _ in range(3)] == ["answer 1"] * 3
