"""`StampCache` behind LangChain's own call path: the cases of public bug reports, by number."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation
from langchain_core.tools import tool
from langchain_fakes import USAGE, CountingChat, CountingLLM, broken_flow
from langchain_openai import ChatOpenAI
from langgraph.graph.message import add_messages
from pydantic import BaseModel

import stampcache
from langchain_stampcache import StampCache
from langchain_stampcache.payload import dump_generations
from stampcache import Answer, Request, Settings, Stamps
from stampcache.adapters import Core
from stampcache.testing import AngleEmbedder, FailingStore


@pytest.fixture
def cache() -> StampCache:
    return StampCache("memory://")


def counters(cache: StampCache) -> dict[str, int]:
    return dict(cache.cache.stats(everything=True).counters)


# -- A: what changes the answer is in the key ------------------------------------------------------


def test_a2_a_changed_temperature_of_a_live_model_is_a_miss(cache: StampCache) -> None:
    model = CountingChat(cache=cache, temperature=0.1)
    model.invoke("hi")
    model.temperature = 0.2
    model.invoke("hi")
    model.model = "fake-2"
    model.invoke("hi")
    assert model.calls == 3
    model.invoke("hi")
    assert model.calls == 3


def test_a3_two_endpoints_of_one_name_are_never_shared(cache: StampCache) -> None:
    one = CountingChat(cache=cache, base_url="http://one")
    two = CountingChat(cache=cache, base_url="http://two")
    one.invoke("hi")
    two.invoke("hi")
    assert (one.calls, two.calls) == (1, 1)


def test_a3_stamps_tell_apart_what_a_model_does_not_tell() -> None:
    store = stampcache.open_cache("memory://")
    one = CountingChat(cache=StampCache(store, stamps=Stamps(model="deployment-a")))
    two = CountingChat(cache=StampCache(store, stamps=Stamps(model="deployment-b")))
    one.invoke("hi")
    two.invoke("hi")
    assert two.calls == 1


@pytest.mark.parametrize(
    "options",
    [
        {"thinking": {"type": "enabled"}},
        {"reasoning_effort": "low"},
        {"top_k": 3},
        {"extra_body": {"guided_json": {"type": "object"}}},
        {"stop": ["x"]},
        {"tool_choice": "auto"},
        {"temperature": 0},
    ],
)
def test_a6_a9_a12_unknown_options_are_keyed(cache: StampCache, options: dict) -> None:
    model = CountingChat(cache=cache)
    model.invoke("hi")
    model.invoke("hi", **options)
    model.invoke("hi", **options)
    assert model.calls == 2


def test_a9_a_schema_that_changed_under_its_name_is_another_key(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    for fields in ({"a": (int, ...)}, {"b": (str, ...)}):
        schema = _published(fields)
        model.invoke("hi", response_format=schema)
    assert model.calls == 2


def _published(fields: dict) -> type[BaseModel]:
    """Make a class under one name that this module holds, as a notebook cell run again does."""
    from pydantic import create_model

    made = create_model("Published", __module__=__name__, **fields)
    globals()["Published"] = made
    return made


def test_a16_a25_what_is_known_by_its_address_is_not_cached(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    for _ in range(2):
        model.invoke("hi", on_token=lambda token: None)
        model.invoke([HumanMessage("hi", additional_kwargs={"object": object()})])
    assert model.calls == 4
    assert cache.cache.stats(everything=True).entries == 0
    assert counters(cache)["miss.uncacheable"] >= 4


def test_a18_messages_are_never_joined(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    model.invoke([HumanMessage("ab"), HumanMessage("c")])
    model.invoke([HumanMessage("a"), HumanMessage("bc")])
    assert model.calls == 2


def test_api_keys_are_neither_keyed_nor_stored(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cache = StampCache(f"sqlite:///{path}")
    one = ChatOpenAI(model="m", api_key="sk-first", base_url="http://h")._get_llm_string()
    two = ChatOpenAI(model="m", api_key="sk-other", base_url="http://h")._get_llm_string()
    cache.update("p", one, [Generation(text="kept")])
    assert cache.lookup("p", two) == [Generation(text="kept")]
    listed = "[('_type', 'x'), ('api_key', 'sk-first'), ('model', 'm')]"
    cache.update("p", listed, [Generation(text="kept")])
    assert cache.lookup("p", listed.replace("sk-first", "sk-other")) is not None
    cache.cache.close()
    assert b"sk-" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


# -- B: equal requests are equal -------------------------------------------------------------------


def conversation(suffix: str, **marks: object) -> list:
    return [
        SystemMessage("be brief", id=f"s-{suffix}"),
        HumanMessage("weather?", id=f"h-{suffix}"),
        AIMessage(
            "",
            id=f"run-{suffix}",
            tool_calls=[
                {"name": "weather", "args": {"city": "Rome", "unit": "C"}, "id": f"call_{suffix}"},
                {"name": "weather", "args": {"city": "Oslo"}, "id": f"call_2{suffix}"},
            ],
            **marks,
        ),
        ToolMessage("20", tool_call_id=f"call_{suffix}", artifact={"raw": suffix}),
        ToolMessage("3", tool_call_id=f"call_2{suffix}"),
    ]


async def test_b1_ids_do_not_matter_sync_and_async(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    model.invoke(conversation("a"))
    model.invoke(conversation("b", usage_metadata=USAGE, response_metadata={"id": "x"}))
    await model.ainvoke(conversation("c"))
    assert model.calls == 1


def test_b1_results_under_swapped_calls_are_another_conversation(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    turns = conversation("a")
    model.invoke(turns)
    swapped = [
        *turns[:3],
        ToolMessage("20", tool_call_id="call_2a"),
        ToolMessage("3", tool_call_id="call_a"),
    ]
    model.invoke(swapped)
    assert model.calls == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda turns: [*turns[:1], HumanMessage("weather"), *turns[2:]],
        lambda turns: [*turns[:1], HumanMessage("weather?", name="ann"), *turns[2:]],
        lambda turns: [*turns[:1], SystemMessage("weather?"), *turns[2:]],
        lambda turns: [*turns[:4], ToolMessage("4", tool_call_id="call_2a")],
        lambda turns: [*turns[:4], ToolMessage("3", tool_call_id="call_2a", status="error")],
        lambda turns: [
            *turns[:2],
            AIMessage("", tool_calls=[{"name": "w", "args": {}, "id": "call_a"}]),
            *turns[3:],
        ],
        lambda turns: [
            *turns[:2],
            turns[2].model_copy(update={"additional_kwargs": {"reasoning_content": "hm"}}),
            *turns[3:],
        ],
        lambda turns: [
            *turns[:1],
            HumanMessage(
                [
                    {"type": "text", "text": "weather?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ]
            ),
            *turns[2:],
        ],
    ],
)
def test_b1_what_the_model_reads_does_matter(cache: StampCache, change) -> None:
    model = CountingChat(cache=cache)
    model.invoke(conversation("a"))
    model.invoke(change(conversation("a")))
    assert model.calls == 2


def test_b2_b3_b7_dict_order_does_not_matter_and_tools_can_hit(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    first = {"type": "function", "function": {"name": "f", "parameters": {"a": 1, "b": 2}}}
    again = {"function": {"parameters": {"b": 2, "a": 1}, "name": "f"}, "type": "function"}
    model.bind_tools([first]).invoke("hi")
    model.bind_tools([again]).invoke("hi")
    assert model.calls == 1


def test_b8_d5_turn_two_has_one_key_after_a_hit_and_after_a_miss(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    for expected in (2, 2):
        history = [HumanMessage("one")]
        history.append(model.invoke(history))
        history.append(HumanMessage("two"))
        before = [message.model_copy(deep=True) for message in history]
        model.invoke(history)
        assert history == before
        assert model.calls == expected


def test_b11_b12_c2_the_question_is_found_inside_a_prompt_and_nothing_else_is_embedded() -> None:
    embedder = AngleEmbedder({"What is the leave policy?": 0.0, "Tell me the leave policy": 5.0})
    cache = StampCache(
        "memory://",
        embedder=embedder,
        calibration=0.9,
        question=lambda text: text.rpartition("Question: ")[2] or None,
    )
    model = CountingChat(cache=cache)
    ask = "Use: {context}\nQuestion: {question}".format
    first = model.invoke(ask(context="25 days", question="What is the leave policy?"))
    near = model.invoke(ask(context="25 days", question="Tell me the leave policy"))
    assert near.content == first.content
    assert near.response_metadata["cache"]["level"] == "semantic"
    # Other chunks, another system message, other settings: nothing is shared by meaning.
    model.invoke(ask(context="26 days", question="Tell me the leave policy"))
    assert model.calls == 2
    model.invoke(
        [
            SystemMessage("s"),
            HumanMessage(ask(context="25 days", question="Tell me the leave policy")),
        ]
    )
    assert model.calls == 3


def test_c2_without_an_extractor_nothing_is_embedded() -> None:
    embedder = AngleEmbedder({})
    cache = StampCache("memory://", embedder=embedder, calibration=0.9)
    at_opening = embedder.calls
    model = CountingChat(cache=cache)
    model.invoke("hi")
    model.invoke("hi")
    assert (model.calls, embedder.calls) == (1, at_opening)


def test_c2_a_failing_or_silent_extractor_leaves_exact_hits() -> None:
    def broken(text: str) -> str:
        raise KeyError(text)

    for question in (broken, lambda text: None, lambda text: "not in there"):
        embedder = AngleEmbedder({})
        cache = StampCache("memory://", embedder=embedder, calibration=0.9, question=question)
        at_opening = embedder.calls
        model = CountingChat(cache=cache)
        model.invoke("hi")
        model.invoke("hi")
        assert (model.calls, embedder.calls) == (1, at_opening)


# -- D, E: conversation and tenants ----------------------------------------------------------------


def test_d1_d4_d8_system_prompt_and_history_are_keyed(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    model.invoke([SystemMessage("a"), HumanMessage("and then?")])
    model.invoke([SystemMessage("b"), HumanMessage("and then?")])
    model.invoke([SystemMessage("a"), HumanMessage("x"), AIMessage("y"), HumanMessage("and then?")])
    assert model.calls == 3


def test_d3_e1_e3_tenants_never_share_at_either_level() -> None:
    embedder = AngleEmbedder({"my name?": 0.0, "my name, please?": 1.0})
    cache = StampCache("memory://", embedder=embedder, calibration=0.9, question=lambda text: text)
    model = CountingChat(cache=cache)
    for tenant in ("acme", "ac", "acme*", "acme:x\n", "[acme]", ""):
        with stampcache.scope(tenant=tenant or "none", audience=""):
            model.invoke("my name?")
    assert model.calls == 6
    with stampcache.scope(tenant="acme", audience="u1"):
        model.invoke("my name, please?")
    assert model.calls == 7


def test_e6_l6_clear_takes_no_arguments_and_empties_one_scope(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    for tenant in ("a", "a*"):
        with stampcache.scope(tenant=tenant):
            model.invoke("hi")
    with stampcache.scope(tenant="a*"):
        cache.clear()
        model.invoke("hi")
    with stampcache.scope(tenant="a"):
        model.invoke("hi")
    assert model.calls == 3


async def test_e13_no_scope_where_one_is_required_bypasses_and_is_counted() -> None:
    cache = StampCache("memory://", tenants="required")
    model = CountingChat(cache=cache)
    model.invoke("hi")
    await model.ainvoke("hi")
    assert model.calls == 2
    assert cache.cache.stats(everything=True).entries == 0
    assert counters(cache)["adapter.unscoped"] == 2
    with stampcache.scope(tenant="acme"):
        model.invoke("hi")
        await model.ainvoke("hi")
    assert model.calls == 3


# -- H: fidelity -----------------------------------------------------------------------------------


def test_h6_h10_a_bound_response_format_is_cached(cache: StampCache) -> None:
    model = CountingChat(cache=cache).bind(response_format={"type": "json_object"})
    assert model.invoke("hi").content == model.invoke("hi").content
    assert model.bound.calls == 1


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'[{"message":{"type":"x","data":{}}}]'])
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_h1_an_unreadable_payload_is_a_miss_and_its_entry_goes(
    cache: StampCache, payload: bytes, way: str
) -> None:
    await _check_unreadable(
        cache, Answer(text="x", payload=payload, format="lc.generations.1"), way
    )


@pytest.mark.parametrize("form", ["text", "lc.generations.99"])
async def test_h15_a_payload_of_another_version_is_a_miss(cache: StampCache, form: str) -> None:
    made = dump_generations([Generation(text="x")])
    await _check_unreadable(cache, Answer(text="x", payload=made, format=form), "sync")


async def _check_unreadable(cache: StampCache, answer: Answer, way: str) -> None:
    settings = cache._settings.of("[('m', 1)]")
    cache.cache.update(Request(prompt="p", settings=settings), answer)
    assert cache.cache.stats(everything=True).entries == 1
    if way == "sync":
        assert cache.lookup("p", "[('m', 1)]") is None
    else:
        assert await cache.alookup("p", "[('m', 1)]") is None
    assert cache.cache.stats(everything=True).entries == 0
    assert counters(cache)["error.adapter.undecodable"] == 1
    cache.update("p", "[('m', 1)]", [Generation(text="fresh")])
    assert cache.lookup("p", "[('m', 1)]") == [Generation(text="fresh")]


def test_h7_odd_inputs_reach_the_model_as_if_there_were_no_cache(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    odd = ["", " ", "\ud800", "x" * 5_000_000, '[{"lc": 1', '[{"lc": 1, "type": "constructor"}]']
    for text in odd:
        assert model.invoke(text or [HumanMessage("")]).content
    for text in ('[{"lc":1}]', '[{"lc": 1, "kwargs": 3}]', "[" * 100_000):
        assert cache.lookup(text, "[('a'") is None
        cache.update(text, "[('a'", [Generation(text="t")])
    cache.update("p", "l", [])
    assert cache.lookup("p", "l") is None


def test_h11_h12_copies_both_ways_and_a_new_id(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    made = model.invoke("hi")
    made.content = "changed"
    made.response_metadata["finish_reason"] = "changed"
    first = model.invoke("hi")
    assert first.content == "answer 1 to hi"
    first.content = "changed"
    first.response_metadata["token_usage"]["prompt_tokens"] = 99
    second = model.invoke("hi")
    assert second.content == "answer 1 to hi"
    assert second.response_metadata["token_usage"]["prompt_tokens"] == 0
    assert second.response_metadata["finish_reason"] == "stop"
    assert made.id is not None
    assert (first.id, second.id) == (None, None)  # LangGraph gives each a new one
    [raw] = cache.lookup(dumps([HumanMessage("hi")]), model._get_llm_string())
    assert raw.message.id is None


# -- I, J: sync and async, concurrency -------------------------------------------------------------


def test_i8_sync_never_runs_async_code(cache: StampCache, monkeypatch) -> None:
    monkeypatch.setattr(asyncio, "run", lambda *_: pytest.fail("asyncio.run was called"))
    model = CountingChat(cache=cache)
    model.invoke("hi")
    model.invoke("hi")
    assert model.calls == 1


async def test_j1_async_uses_the_async_face_only(tmp_path: Path, monkeypatch) -> None:
    cache = StampCache(f"sqlite:///{tmp_path}/c.db")
    loop_thread = threading.get_ident()
    store = cache.cache.core.store
    put = store.put

    def watched(*args: object, **options: object) -> object:
        assert threading.get_ident() != loop_thread
        return put(*args, **options)

    monkeypatch.setattr(store, "put", watched)
    model = CountingChat(cache=cache)
    await model.ainvoke("hi")
    await model.ainvoke("hi")
    assert model.calls == 1
    assert not [name for name in counters(cache) if name.startswith("error")]
    await cache.cache.aio.close()


def test_j3_sixteen_threads_write_the_same_keys(tmp_path: Path) -> None:
    cache = StampCache(f"sqlite:///{tmp_path}/c.db")
    model = CountingChat(cache=cache)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: model.invoke(f"q{n % 4}").content, range(160)))
    assert all(answer.endswith(f"q{n % 4}") for n, answer in enumerate(answers))
    assert cache.cache.stats(everything=True).entries == 4
    assert not [name for name in counters(cache) if name.startswith("error")]
    cache.cache.close()


async def test_j8_batches_never_mix_items(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    asked = [f"q{n % 5}" for n in range(40)]
    for answers in (model.batch(asked), await model.abatch(asked), await model.abatch(asked)):
        assert [a.content.rpartition(" ")[2] for a in answers] == asked


def test_a1_b13_texts_of_a_plain_llm_in_a_batch(cache: StampCache) -> None:
    model = CountingLLM(cache=cache)
    result = model.generate(["a", "a", "b"])
    again = model.generate(["b", "c", "a"])
    assert [each[0].text for each in result.generations] == ["a!", "a!", "b!"]
    assert [each[0].text for each in again.generations] == ["b!", "c!", "a!"]
    assert model.calls == 4


def test_f_the_fence_of_the_lookup_reaches_the_update(cache: StampCache) -> None:
    model = CountingChat(cache=cache)

    def reply(messages: list, call: int) -> AIMessage:
        if call == 1:
            cache.cache.invalidate(scope=stampcache.Scope())
        return AIMessage(f"answer {call}")

    model.answering(reply)
    assert model.invoke("hi").content == "answer 1"
    assert counters(cache)["refused.fenced"] == 1
    assert model.invoke("hi").content == "answer 2"
    assert model.invoke("hi").content == "answer 2"


# -- K: accounting ---------------------------------------------------------------------------------


def test_k1_k2_three_calls_one_real(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    handler = UsageMetadataCallbackHandler()
    replies = [model.invoke("hi", config={"callbacks": [handler]}) for _ in range(3)]
    reported = handler.usage_metadata["fake-1"]
    assert (reported["input_tokens"], reported["output_tokens"]) == (11, 7)
    hit = replies[-1]
    assert hit.usage_metadata["total_tokens"] == 0
    assert hit.usage_metadata["total_cost"] == 0


def test_k3_k5_k6_a_hit_tells_what_it_is_and_what_it_saved(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    model.invoke("hi")
    report = model.invoke("hi").response_metadata["cache"]
    assert (report["hit"], report["level"], report["similarity"]) == (True, "exact", 1.0)
    saved = report["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (11, 7)
    assert (saved["cached_tokens"], saved["reasoning_tokens"]) == (5, 3)
    assert saved["latency_s"] > 0
    assert cache.cache.report_bad(report["entry_id"])
    model.invoke("hi")
    assert model.calls == 2


# -- N: what is never stored -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage(""),
        AIMessage("cut o", response_metadata={"finish_reason": "length"}),
        AIMessage("cut o", response_metadata={"stop_reason": "max_tokens"}),
        AIMessage("cut o", response_metadata={"done_reason": "length"}),
        AIMessage("cut o", response_metadata={"status": "incomplete"}),
        AIMessage("...", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("...", response_metadata={"finish_reason": "SAFETY"}),
        AIMessage("No.", additional_kwargs={"refusal": "No."}),
        AIMessage([{"type": "refusal", "refusal": "No."}]),
        AIMessage("I'm sorry, but I can't help with that."),
        AIMessage("fine", response_metadata={"model": object()}),
    ],
)
def test_n1_n3_n4_spoiled_replies_are_not_stored(cache: StampCache, reply: AIMessage) -> None:
    model = CountingChat(cache=cache).answering(lambda messages, call: reply.model_copy())
    model.invoke("hi")
    model.invoke("hi")
    assert model.calls == 2
    assert cache.cache.stats(everything=True).entries == 0


def test_n_tool_calls_of_a_model_are_an_answer(cache: StampCache) -> None:
    call = {"name": "f", "args": {"x": 1}, "id": "c1"}
    model = CountingChat(cache=cache).answering(
        lambda messages, number: AIMessage(
            "", tool_calls=[call], response_metadata={"finish_reason": "tool_calls"}
        )
    )
    model.invoke("hi")
    assert model.invoke("hi").tool_calls[0]["args"] == {"x": 1}
    assert model.calls == 1


def test_n6_a_failing_model_stores_nothing_and_its_error_passes(cache: StampCache) -> None:
    def fail(messages: list, call: int) -> AIMessage:
        raise RuntimeError("down")

    model = CountingChat(cache=cache).answering(fail)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="down"):
            model.invoke("hi")
    assert model.calls == 2


# -- failures of the cache -------------------------------------------------------------------------


async def test_a_store_that_is_down_costs_the_hit_only() -> None:
    store = FailingStore()
    cache = StampCache(stampcache.open_cache(store))
    model = CountingChat(cache=cache)
    model.invoke("hi")
    store.down = True
    model.invoke("hi")
    await model.ainvoke("hi")
    store.down = False
    model.invoke("hi")
    assert model.calls == 3


def test_anything_unexpected_is_counted(cache: StampCache, monkeypatch) -> None:
    model = CountingChat(cache=cache)
    monkeypatch.setattr(Core, "lookup_now", broken_flow)
    monkeypatch.setattr(Core, "update", broken_flow)
    model.invoke("hi")
    assert counters(cache)["error.adapter.lookup"] == 1
    assert counters(cache)["error.adapter.update"] == 1


def test_options_of_an_open_cache_are_refused() -> None:
    with pytest.raises(stampcache.ConfigError, match="open_cache"):
        StampCache(stampcache.open_cache("memory://"), tenants="required")


def test_both_faces_of_a_cache_are_accepted() -> None:
    opened = stampcache.open_cache("memory://")
    StampCache(opened).update("p", "l", [Generation(text="t")])
    assert StampCache(opened.aio).lookup("p", "l") == [Generation(text="t")]


def test_the_settings_of_a_model_are_digested_once(cache: StampCache) -> None:
    first = cache._settings.of("[('a', 1)]")
    assert cache._settings.of("[('a', 1)]") is first
    assert isinstance(first, Settings)


def test_a_tool_round_trip_in_an_agent_loop(cache: StampCache) -> None:
    @tool
    def double(x: int) -> int:
        """Double a number."""
        return 2 * x

    def reply(messages: list, call: int) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage(f"it is {messages[-1].content}")
        made = {"name": "double", "args": {"x": 21}, "id": f"call_{call}"}
        return AIMessage("", tool_calls=[made])

    model = CountingChat(cache=cache).answering(reply)
    for _ in range(2):
        history = [HumanMessage("double 21")]
        asked = model.bind_tools([double]).invoke(history)
        history += [asked, double.invoke(asked.tool_calls[0])]
        assert model.invoke(history).content == "it is 42"
    assert model.calls == 2


def test_several_generations_come_back_together(cache: StampCache) -> None:
    made = [ChatGeneration(message=AIMessage(text)) for text in ("one", "two")]
    cache.update("p", "l", made)
    assert [each.text for each in cache.lookup("p", "l")] == ["one", "two"]


class Verdict(BaseModel):
    days: int


def test_h1_structured_output_survives_a_hit(cache: StampCache) -> None:
    class Structured(ChatOpenAI):
        def _generate(self, messages: list, *args: object, **options: object) -> ChatResult:
            message = AIMessage('{"days": 3}', additional_kwargs={"parsed": Verdict(days=3)})
            return ChatResult(generations=[ChatGeneration(message=message)])

    model = Structured(model="m", api_key="sk-secret", cache=cache).with_structured_output(Verdict)
    assert [model.invoke("hi") for _ in range(2)] == [Verdict(days=3)] * 2
    assert cache.cache.stats(everything=True).exact_hits == 1


def test_h12_three_equal_turns_keep_three_answers_in_a_graph(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    state: list = []
    for _ in range(3):
        state = add_messages(state, [model.invoke("hi")])
    assert len(state) == 3


def test_models_with_a_cache_can_be_copied(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    model.invoke("hi")
    assert model.model_copy(deep=True).invoke("hi").response_metadata["cache"]["hit"]
