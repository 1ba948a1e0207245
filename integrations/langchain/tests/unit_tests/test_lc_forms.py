"""The pure parts: ``llm_string``, prompts, payloads, usage, pending calls."""

import asyncio
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.utils import AddableDict
from langchain_fakes import CountingChat
from pydantic import BaseModel

import stampcache
from langchain_stampcache import prompt
from langchain_stampcache.llm_cache import pending as pendings
from langchain_stampcache.llm_cache.llm_string import STRINGS_KEPT, LlmSettings
from langchain_stampcache.llm_cache.pending import Pending
from langchain_stampcache.payload import (
    CHAIN,
    GENERATIONS,
    WHOLE,
    ChainResult,
    Whole,
    dump_generations,
    dump_result,
    dump_whole,
    load_generations,
    load_result,
    load_whole,
)
from langchain_stampcache.pieces import Flowing, flowing, pieces_of, put_together
from langchain_stampcache.retrieval.evidence import VOLATILE_METADATA, evidence_of
from langchain_stampcache.usage import finish_reason, usage_of, worst
from stampcache import Miss, Reason, Request, Stamps
from stampcache.errors import CanonicalError, CodecError


class Leave(BaseModel):
    days: int
    kinds: list[str] = []


class Outer:
    class Inner(BaseModel):
        x: int


def settings_of(llm_string: str) -> stampcache.Settings:
    return LlmSettings(stamps=Stamps()).of(llm_string)


# -- llm_string ------------------------------------------------------------------------------------

HEAD = (
    '{"id": ["langchain", "chat_models", "openai", "ChatOpenAI"], "kwargs": {"model_name": "m",'
    ' "openai_api_base": "http://h", "openai_api_key": {"id": ["K"], "lc": 1, "type": "secret"}},'
    ' "lc": 1, "name": "ChatOpenAI", "type": "constructor"}'
)


def test_both_forms_tell_model_and_endpoint() -> None:
    first = settings_of(HEAD + "---[('stop', None)]")
    assert (first.model, first.endpoint) == ("m", "http://h")
    second = settings_of("[('_type', 'x'), ('base_url', 'http://h'), ('model', 'm')]")
    assert (second.model, second.endpoint) == ("m", "http://h")


@pytest.mark.parametrize(
    "other",
    [
        HEAD + "---[('stop', ['---'])]",
        HEAD + "---[('stop', None), ('thinking', {'type': 'on'})]",
        HEAD.replace("http://h", "http://i") + "---[('stop', None)]",
        HEAD.replace('"m"', '"n"') + "---[('stop', None)]",
        "[('stop', None)]",
        "anything else",
    ],
)
def test_different_strings_have_different_settings(other: str) -> None:
    assert settings_of(HEAD + "---[('stop', None)]").digest != settings_of(other).digest


def test_an_object_by_its_address_is_refused_but_not_the_text_of_one() -> None:
    for text in (
        "[('f', <function f at 0x7f0000000000>)]",
        HEAD + "---[('f', <object object at 0x7f0000000000>)]",
        "Model(client=<Client at 0x7f0000000000>)",
    ):
        with pytest.raises(CanonicalError, match="memory address"):
            settings_of(text)
    assert settings_of("[('stop', ['at 0x7f0000000000'])]").digest


def test_a_serialised_object_of_unknown_state_is_refused_unless_it_only_watches() -> None:
    unknown = '{"lc": 1, "type": "not_implemented", "id": ["a", "Limiter"]}'
    kept = HEAD.replace('"kwargs": {', f'"kwargs": {{"rate_limiter": {unknown}, ')
    assert settings_of(kept + "---[]").digest == settings_of(HEAD + "---[]").digest
    with pytest.raises(CanonicalError, match="unknown state"):
        settings_of(HEAD.replace('"kwargs": {', f'"kwargs": {{"custom": {unknown}, ') + "---[]")


def test_classes_are_keyed_by_their_schema() -> None:
    name = f"{Leave.__module__}.Leave"
    text = f"[('response_format', <class '{name}'>), ('stop', [\"<class 'x.Y'>\"])]"
    found = settings_of(text).params["llm"]["response_format"]
    assert found["schema"]["properties"].keys() == {"days", "kinds"}
    assert settings_of(f"[('f', <class '{Outer.__module__}.Outer.Inner'>)]").digest
    for gone in ("nowhere.Gone", f"{name}.<locals>.X", "builtins.dict"):
        with pytest.raises(CanonicalError, match="no pydantic model"):
            settings_of(f"[('response_format', <class '{gone}'>)]")


def test_two_living_classes_of_one_name_are_not_told_apart(monkeypatch) -> None:
    import langchain_fakes
    from pydantic import create_model

    first = create_model("Twin", __module__="langchain_fakes", a=(int, ...))
    monkeypatch.setattr(langchain_fakes, "Twin", first, raising=False)
    known = LlmSettings(stamps=Stamps())
    text = "[('response_format', <class 'langchain_fakes.Twin'>)]"
    assert known.of(text).digest
    second = create_model("Twin", __module__="langchain_fakes", b=(str, ...))
    monkeypatch.setattr(langchain_fakes, "Twin", second)
    with pytest.raises(CanonicalError, match="two classes"):
        known.of(text)


def test_the_memo_is_bounded() -> None:
    known = LlmSettings(stamps=Stamps())
    for number in range(STRINGS_KEPT + 10):
        known.of(f"[('n', {number})]")
    assert len(known._known) <= STRINGS_KEPT


@given(st.text())
def test_any_text_has_settings_or_a_clear_refusal(text: str) -> None:
    for llm_string in (text, "[('a', " + text, "{" + text, HEAD + "---" + text):
        try:
            assert settings_of(llm_string).digest
        except CanonicalError as error:
            assert str(error)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), plain, max_size=4), st.randoms())
def test_b2_the_order_of_options_does_not_matter(options: dict, random) -> None:
    pairs = list(options.items())
    random.shuffle(pairs)
    assert settings_of(str(pairs)).digest == settings_of(str(sorted(options.items()))).digest


# -- prompts ---------------------------------------------------------------------------------------


def test_plain_text_stays_as_it_is() -> None:
    for text in ("hello", "", '[{"lc": 2}]', '[{"lc": 1, "type": "constructor", "id": []}]'):
        assert prompt.read(text) == text


def test_b8_ids_costs_and_copies_are_not_keyed() -> None:
    bare = AIMessage("x", tool_calls=[{"name": "f", "args": {}, "id": "1"}])
    marked = AIMessage(
        "x",
        id="run",
        name=None,
        tool_calls=[{"name": "f", "args": {}, "id": "2"}],
        additional_kwargs={"parsed": {"x": 1}, "refusal": None},
        response_metadata={"cache": {"hit": True}},
        usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "total_cost": 0},
    )
    assert prompt.read(dumps([bare])) == prompt.read(dumps([marked]))


def test_b1_ids_of_calls_inside_blocks_are_numbered_too() -> None:
    def turn(call_id: str) -> str:
        block = {"type": "tool_use", "id": call_id, "name": "f", "input": {"x": 1}}
        return dumps(
            [
                AIMessage([block], tool_calls=[{"name": "f", "args": {"x": 1}, "id": call_id}]),
                ToolMessage([{"type": "text", "text": "r"}], tool_call_id=call_id),
            ]
        )

    assert prompt.read(turn("toolu_1")) == prompt.read(turn("toolu_2"))


def test_a25_objects_by_address_are_refused_others_are_named() -> None:
    with pytest.raises(CanonicalError, match="without identity"):
        prompt.read(dumps([HumanMessage("x", additional_kwargs={"o": object()})]))
    one = prompt.read(dumps([HumanMessage("x", additional_kwargs={"o": Leave(days=1)})]))
    two = prompt.read(dumps([HumanMessage("x", additional_kwargs={"o": Leave(days=2)})]))
    assert one != two


def test_messages_and_their_dump_have_one_form() -> None:
    messages = [SystemMessage("s"), HumanMessage("h"), AIMessage("a")]
    assert prompt.of_messages(messages) == prompt.read(dumps(messages))


# -- payloads --------------------------------------------------------------------------------------


def test_h2_h3_h4_h10_h14_generations_round_trip() -> None:
    message = AIMessage(
        [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "u"}}],
        name="bot",
        tool_calls=[{"name": "f", "args": {"x": [1, {"y": None}]}, "id": "c"}],
        invalid_tool_calls=[{"name": "g", "args": "{", "id": "d", "error": "bad"}],
        additional_kwargs={"reasoning_content": "because", "parsed": Leave(days=3)},
        response_metadata={"finish_reason": "tool_calls", "logprobs": {"content": [-0.5]}},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        id="run-1",
    )
    made = [
        ChatGeneration(message=message, generation_info={"finish_reason": "tool_calls"}),
        Generation(text="plain", generation_info=None),
        Generation(text="plain \U0001f600", generation_info={"a": [1]}),
    ]
    loaded = load_generations(dump_generations(made), GENERATIONS)
    assert loaded == made
    assert loaded[0].message is not message
    assert loaded[0].message.additional_kwargs["parsed"] == Leave(days=3)


def test_chunks_are_stored_as_wholes() -> None:
    chunk = AIMessageChunk("hi", response_metadata={"finish_reason": "stop"})
    [one, two] = load_generations(
        dump_generations([ChatGenerationChunk(message=chunk), GenerationChunk(text="t")]),
        GENERATIONS,
    )
    assert type(one.message) is AIMessage
    assert (type(one), type(two)) == (ChatGeneration, Generation)


class Mine(AIMessage):
    pass


class Lossy(BaseModel):
    x: int

    @property
    def y(self) -> int:
        return self.x

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("x", response_metadata={"o": object()}),
        AIMessage("x", response_metadata={"o": (1, 2)}),
        AIMessage("x", response_metadata={"o": {1: 2}}),
        AIMessage("x", response_metadata={"o": float("nan")}),
        AIMessage("x", additional_kwargs={"parsed": Lossy(x=1)}),
        Mine("x"),
    ],
)
def test_h1_what_would_not_come_back_equal_is_not_stored(message: AIMessage) -> None:
    with pytest.raises(CanonicalError):
        dump_generations([ChatGeneration(message=message)])


def test_h1_a_local_class_is_not_stored() -> None:
    class Local(BaseModel):
        x: int

    message = AIMessage("x", additional_kwargs={"parsed": Local(x=1)})
    with pytest.raises(CanonicalError, match="cannot be rebuilt"):
        dump_generations([ChatGeneration(message=message)])


def test_h1_a_class_that_is_gone_makes_the_payload_unreadable() -> None:
    message = AIMessage("x", additional_kwargs={"parsed": Leave(days=1)})
    stored = dump_generations([ChatGeneration(message=message)])
    for old, new in ((b".Leave", b".Gone"), (b'"days":1', b'"days":"x"'), (b"test_lc", b"no")):
        with pytest.raises(CodecError):
            load_generations(stored.replace(old, new), GENERATIONS)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    for load, form in (
        (load_generations, GENERATIONS),
        (load_result, CHAIN),
        (load_whole, WHOLE),
    ):
        with pytest.raises(CodecError):
            load(raw, form)


json_values = plain.filter(lambda value: json.loads(json.dumps(value)) == value)


@given(st.text(), st.dictionaries(st.text(), json_values, max_size=3))
def test_results_of_chains_round_trip(text: str, extras: dict) -> None:
    for answer in (text, AIMessage("x"), Leave(days=2), extras):
        result = ChainResult(answer, [Document("d", metadata=extras, id="1")], extras)
        try:
            dumped = dump_result(result)
        except CanonicalError as error:
            assert "surrogates" in str(error)
            continue
        assert load_result(dumped, CHAIN) == result


@given(st.text(), plain)
def test_wholes_of_any_shape_round_trip(text: str, data: object) -> None:
    shapes: list[object] = [
        text,
        AIMessage(text),
        Leave(days=2),
        {"context": [Document(text, id="1")], "messages": [HumanMessage("q"), AIMessage(text)]},
        [Leave(days=3), {"object": {"x": data}, "more": [Document("d")]}],
        {"plain": data},
    ]
    for value in shapes:
        whole = Whole(value, ("input",))
        try:
            dumped = dump_whole(whole)
        except CanonicalError:
            continue
        assert load_whole(dumped, WHOLE) == whole


@pytest.mark.parametrize("value", [{"a": object()}, {1: Leave(days=1)}, [(1, 2)], {"a": {Leave}}])
def test_a_whole_that_would_not_come_back_equal_is_not_stored(value: object) -> None:
    with pytest.raises(CanonicalError):
        dump_whole(Whole(value))


def test_an_answer_that_is_nested_too_deeply_is_not_stored() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for dump in (lambda: dump_whole(Whole(deep)), lambda: dump_result(ChainResult(deep, [], {}))):
        with pytest.raises(CanonicalError):
            dump()


# -- pieces of streams -----------------------------------------------------------------------------


@given(st.text(), st.text(), st.booleans())
def test_pieces_add_up_to_what_they_were_cut_from(text: str, thought: str, blocks: bool) -> None:
    assert "".join(map(str, pieces_of(text))) == text
    content: str | list = (
        [{"type": "text", "text": text}, {"type": "x", "y": 1}] if blocks else text
    )
    message = AIMessage(
        content,
        additional_kwargs={"reasoning_content": thought, "n": [1]},
        response_metadata={"finish_reason": "stop", "logprobs": {"a": [0.5]}},
        usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        tool_calls=[{"name": "f", "args": {"x": text}, "id": "1"}],
        invalid_tool_calls=[{"name": "g", "args": "no json", "id": "2", "error": None}],
    )
    whole = message_chunk_to_message(put_together(pieces_of(message), Flowing.GUESSED))
    for name in ("content", "additional_kwargs", "response_metadata", "usage_metadata"):
        assert getattr(whole, name) == getattr(message, name)
    assert whole.tool_calls == message.tool_calls
    assert [each["name"] for each in whole.invalid_tool_calls] == ["g"]


@pytest.mark.parametrize(
    ("items", "flow", "expected"),
    [
        (["a", "", "b"], Flowing.GUESSED, "ab"),
        (["a", "ab"], Flowing.ADDED, "aab"),
        (["a", "ab"], Flowing.GROWING, "ab"),
        ([None, {"a": 1}, {"a": 2}], Flowing.GUESSED, {"a": 2}),
        ([AddableDict(a="x"), AddableDict(a="y", b=[1])], Flowing.GUESSED, {"a": "xy", "b": [1]}),
        ([AddableDict(a={}), AddableDict(a={"b": 1})], Flowing.GUESSED, {"a": {"b": 1}}),
        ([[1], [2]], Flowing.ADDED, [1, 2]),
        ([[1]], Flowing.GUESSED, [1]),
        ([None], Flowing.GUESSED, None),
    ],
)
def test_chunks_are_put_together(items: list, flow: Flowing, expected: object) -> None:
    assert put_together(items, flow) == expected


@pytest.mark.parametrize(
    "items",
    [
        [],
        ["a", "ab", "abc"],
        [[1], [1, 2]],
        [1, 2],
        ["a", {"b": 1}],
        [AIMessageChunk("a"), AIMessage("b")],
        [AddableDict(a=[1]), AddableDict(a=[1, 2])],
    ],
)
def test_chunks_that_may_mean_two_things_are_not_put_together(items: list) -> None:
    with pytest.raises(CanonicalError):
        put_together(items, Flowing.GUESSED)


def test_how_chunks_make_an_answer_is_seen_at_the_end_of_a_chain() -> None:
    prompt_, model = ChatPromptTemplate.from_template("{x}"), CountingChat()
    for last, expected in (
        (StrOutputParser(), Flowing.ADDED),
        (JsonOutputParser(), Flowing.GROWING),
        (JsonOutputParser(diff=True), Flowing.NOT),
        (RunnableLambda(str), Flowing.GUESSED),
    ):
        chain = prompt_ | model | last
        for wrapped in (chain, chain.with_config(tags=["x"]), chain.with_fallbacks([chain])):
            assert flowing(wrapped) is expected
    assert flowing(prompt_ | model.bind(stop=["x"])) is Flowing.ADDED


# -- usage -----------------------------------------------------------------------------------------


def test_reasons_are_found_wherever_providers_put_them() -> None:
    def reason(**metadata: object) -> str:
        return finish_reason(ChatGeneration(message=AIMessage("x", response_metadata=metadata)))

    assert reason(finish_reason="STOP") == "stop"
    assert reason(stop_reason="end_turn") == "end_turn"
    assert reason(status="incomplete") == "incomplete"
    assert reason(status="completed") == ""
    assert (
        finish_reason(Generation(text="x", generation_info={"finish_reason": "length"})) == "length"
    )
    assert finish_reason(Generation(text="x")) == ""
    assert worst(["stop", "length", "stop"]) == "length"
    assert worst(["tool_calls", "stop"]) == "stop"
    assert worst([]) == ""


def test_usage_is_summed_and_unknown_stays_unknown() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    made = [ChatGeneration(message=AIMessage("x", usage_metadata=usage)) for _ in range(2)]
    found = usage_of(made)
    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (2, 4, None)
    assert usage_of([Generation(text="x")]).input_tokens is None


def test_k3_the_cached_tokens_that_deepseek_reports_are_seen() -> None:
    usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    said = {"token_usage": {"prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3}}
    message = AIMessage("x", usage_metadata=usage, response_metadata=said)
    assert usage_of([ChatGeneration(message=message)]).cached_tokens == 6


# -- evidence --------------------------------------------------------------------------------------


def test_volatile_metadata_is_no_evidence_and_everything_else_is() -> None:
    def digest(**metadata: object) -> str:
        return evidence_of([Document("t", metadata=metadata)], corpus="c")[0].digest

    for name in VOLATILE_METADATA:
        assert digest(page=1, **{name: 0.3}) == digest(page=1, **{name: 0.4}) == digest(page=1)
    assert digest(page=1) != digest(page=2) != digest(date="x")
    with pytest.raises(CanonicalError):
        digest(when=object())


def test_sources_chunks_and_ranks() -> None:
    documents = [
        Document("a", id="1", metadata={"source": "s.md", "score": 0.5}),
        Document("b", id="2", metadata={"file_path": "p.md"}),
        Document("c", id="3"),
        Document("d", metadata={"source": "", "file_name": 4, "filename": "d.md", "url": "u"}),
    ]
    found = evidence_of(documents, corpus="handbook")
    assert [each.source for each in found] == ["s.md", "p.md", "", "d.md"]
    assert [each.chunk for each in found] == ["1", "2", "3", ""]
    assert [each.rank for each in found] == [0, 1, 2, 3]
    assert (found[0].corpus, found[0].score) == ("handbook", 0.5)


def test_a18_f16_texts_of_chunks_are_not_joined() -> None:
    one = evidence_of([Document("ab"), Document("c")], corpus="")
    two = evidence_of([Document("a"), Document("bc")], corpus="")
    assert [each.digest for each in one] != [each.digest for each in two]


# -- pending ---------------------------------------------------------------------------------------

MISS = Miss(reason=Reason.NOT_FOUND)


def test_outcomes_are_taken_last_in_first_out_by_their_caller_only() -> None:
    pending = Pending()
    first, second = Request(question="1"), Request(question="2")
    pending.put("p", "l", first, MISS)
    pending.put("p", "l", second, MISS)
    other: list[object] = []
    thread = threading.Thread(target=lambda: other.append(pending.take("p", "l")))
    thread.start()
    thread.join()
    assert other == [None]
    with stampcache.scope(tenant="x"):
        assert pending.take("p", "l") is None
    assert pending.take("q", "l") is None
    assert pending.take("p", "l").request is second
    assert pending.take("p", "l").request is first
    assert pending.take("p", "l") is None


async def test_tasks_are_callers_of_their_own() -> None:
    pending = Pending()

    async def ask(number: int) -> int:
        pending.put("p", "l", Request(question=str(number)), MISS)
        await asyncio.sleep(0)
        return int(pending.take("p", "l").request.question)

    assert await asyncio.gather(*(ask(n) for n in range(20))) == list(range(20))


def test_j13_what_is_never_taken_is_forgotten() -> None:
    pending = Pending()
    for number in range(pendings.OUTCOMES_KEPT + 50):
        pending.put(str(number), "l", Request(question="q"), MISS)
    assert pending._count == pendings.OUTCOMES_KEPT
    assert sum(map(len, pending._asked.values())) == pendings.OUTCOMES_KEPT
    assert pending.take("0", "l") is None
