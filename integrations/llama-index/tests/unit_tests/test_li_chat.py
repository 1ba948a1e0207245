"""`CachedChatEngine`: what hits, what never does, and a history that is that of the engine itself."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, semantic_cache
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.llama_debug import LlamaDebugHandler
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer, Memory
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

import stampcache
from llama_index_stampcache import CachedChatEngine, CachedQueryEngine
from stampcache import Cache, ConfigError, Lifetime, open_cache

LEAVE = "how long is annual leave"
TRAVEL = "how are travel costs paid"
KINDS = ("condense-question", "context", "condense-plus-context", "simple")
CONDENSING = ("condense-question", "condense-plus-context")
WAYS = ("chat", "achat", "stream_chat", "astream_chat")


class ScriptedCondenser(DigestLLM):
    """Condenses any conversation to one question, and answers everything else with a digest."""

    alone: str = LEAVE

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        made = self._make
        self._make = lambda prompt: (
            self.alone if "tandalone question" in prompt or "standalone" in prompt else made(prompt)
        )

    @property
    def answers_made(self) -> int:
        return sum("tandalone question" not in prompt for prompt in self.prompts)


class Talk:
    """One kind of chat engine over one corpus, and conversations through one cache."""

    def __init__(self, kind: str, documents: Corpus, cache: Cache, /, **options: Any) -> None:
        self.kind = kind
        self.corpus = documents
        self.llm = ScriptedCondenser()
        self.options = {"cache": cache, **options}
        if kind == "simple":
            self.options.setdefault("grounding", "none")

    def plain(self, memory: Any = None) -> BaseChatEngine:
        memory = memory or ChatMemoryBuffer.from_defaults(token_limit=10_000)
        retriever = VectorIndexRetriever(self.corpus.index, similarity_top_k=2)
        given: dict[str, Any] = {"llm": self.llm, "memory": memory}
        match self.kind:
            case "condense-question":
                engine = self.corpus.engine(self.llm)
                return CondenseQuestionChatEngine.from_defaults(query_engine=engine, **given)
            case "context":
                return ContextChatEngine.from_defaults(
                    retriever=retriever, system_prompt="Be kind.", **given
                )
            case "condense-plus-context":
                return CondensePlusContextChatEngine.from_defaults(retriever=retriever, **given)
            case _:
                return SimpleChatEngine.from_defaults(system_prompt="Be kind.", **given)

    def cached(self, memory: Any = None) -> CachedChatEngine:
        return CachedChatEngine(self.plain(memory), **self.options)


@pytest.fixture(params=KINDS)
def talk(request: pytest.FixtureRequest, corpus: Corpus, cache: Cache) -> Talk:
    return Talk(request.param, corpus, cache)


async def say(engine: BaseChatEngine, message: str, way: str = "chat", **options: Any) -> Any:
    """Say something in one of the four ways, and wait until it is written down."""
    if way.startswith("a"):
        response: Any = await getattr(engine, way)(message, **options)
    else:
        response = await asyncio.to_thread(getattr(engine, way), message, **options)
    if isinstance(response, StreamingAgentChatResponse):
        if way.startswith("a"):
            response.told = [t async for t in response.async_response_gen()]  # type: ignore[attr-defined]
        else:
            response.told = await asyncio.to_thread(lambda: list(response.response_gen))  # type: ignore[attr-defined]
    return response


def hit(response: Any) -> bool:
    return bool(response.metadata["cache"]["hit"])


def nodes(response: Any) -> Any:
    """The nodes of an answer; of an async stream of queries the framework has them in its tool."""
    return response.source_nodes or response.sources[0].raw_output.source_nodes


def history(engine: BaseChatEngine) -> list[tuple[str, str]]:
    return [(message.role.value, str(message.content)) for message in engine.chat_history]


@pytest.mark.parametrize("way", WAYS)
async def test_a_first_message_hits_in_another_conversation(way: str, talk: Talk) -> None:
    plain, first, second = talk.plain(), talk.cached(), talk.cached()
    fresh = await say(plain, LEAVE, way)
    missed, found = await say(first, LEAVE, way), await say(second, LEAVE, way)
    assert [hit(missed), hit(found)] == [False, True] and talk.llm.answers_made == 2
    kind = StreamingAgentChatResponse if "stream" in way else AgentChatResponse
    for response in (missed, found):
        assert type(response) is kind
        assert str(response) == str(fresh)
        assert response.source_nodes == fresh.source_nodes
        assert [one.tool_name for one in response.sources] == [
            one.tool_name for one in fresh.sources
        ]
        assert [one.raw_input for one in response.sources] == [
            one.raw_input for one in fresh.sources
        ]
    assert history(first) == history(second) == history(plain)
    assert [role for role, _ in history(second)] == ["user", "assistant"]


@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
async def test_i3_a_hit_streams_in_the_chunks_of_the_making(way: str, talk: Talk) -> None:
    plain = await say(talk.plain(), LEAVE, way)
    missed = await say(talk.cached(), LEAVE, way)
    found = await say(talk.cached(), LEAVE, way)
    assert hit(found) and found.is_done
    assert found.told == missed.told == plain.told and len(found.told) > 2


async def test_whole_and_streamed_answers_are_one_entry(talk: Talk) -> None:
    texts = [str(await say(talk.cached(), LEAVE, way)) for way in WAYS]
    assert len(set(texts)) == 1 and talk.llm.answers_made == 1
    streamed = await say(talk.cached(), LEAVE, "stream_chat")
    assert hit(streamed) and "".join(streamed.told) == texts[0]


async def test_d4_d8_the_same_message_after_another_history_never_shares(
    corpus: Corpus, cache: Cache
) -> None:
    for kind in ("context", "simple"):
        talk = Talk(kind, corpus, cache)
        first, second = talk.cached(), talk.cached()
        await say(first, "My name is Ann.")
        await say(second, "My name is Bob.")
        assert not hit(await say(first, LEAVE)) and not hit(await say(second, LEAVE))


async def test_the_same_message_after_the_same_history_hits(talk: Talk) -> None:
    for expected in (False, True):
        engine = talk.cached()
        for message in (LEAVE, TRAVEL, LEAVE):
            response = await say(engine, message)
        assert hit(response) is expected or talk.kind in CONDENSING
        assert len(engine.chat_history) == 6


async def test_b8_a_turn_after_a_hit_is_keyed_as_one_after_a_miss(talk: Talk) -> None:
    first, second = talk.cached(), talk.cached()
    turns = [hit(await say(engine, LEAVE)) for engine in (first, second)]
    again = [hit(await say(engine, TRAVEL)) for engine in (first, second)]
    assert turns == [False, True]
    assert again == ([True, True] if talk.kind in CONDENSING else [False, True])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", CONDENSING)
async def test_d7_condensed_questions_hit_across_conversations(
    kind: str, way: str, corpus: Corpus, cache: Cache
) -> None:
    talk = Talk(kind, corpus, cache)
    first, second = talk.cached(), talk.cached()
    await say(first, TRAVEL)
    await say(second, "what is for lunch")
    made = talk.llm.answers_made
    missed, found = await say(first, "and leave?", way), await say(second, "so, leave?", way)
    assert [hit(missed), hit(found)] == [False, True] and talk.llm.answers_made == made + 1
    assert str(missed) == str(found)
    assert history(second)[2:] == [("user", "so, leave?"), ("assistant", str(found))]
    assert found.sources[0].raw_input in ({"query": LEAVE}, {"message": LEAVE})


async def test_what_is_shared_across_conversations_is_made_without_their_history(
    corpus: Corpus, cache: Cache
) -> None:
    talk = Talk("condense-plus-context", corpus, cache)
    engine = talk.cached()
    await say(engine, "My secret is 42.")
    await say(engine, "and leave?")
    assert "My secret" in talk.llm.prompts[-2] and "My secret" not in talk.llm.prompts[-1]


async def test_condensing_engines_may_keep_their_own_prompt(corpus: Corpus, cache: Cache) -> None:
    talk = Talk("condense-plus-context", corpus, cache, across_conversations=False)
    plain = talk.plain()
    for engine in (plain, talk.cached(), talk.cached()):
        await say(engine, TRAVEL)
        response = await say(engine, "and leave?")
    assert hit(response) and str(response) == history(plain)[-1][1]
    other = talk.cached()
    await say(other, "what is for lunch")
    assert not hit(await say(other, "and leave?"))


async def test_an_engine_that_skips_condensing_shares_only_after_the_same_history(
    corpus: Corpus, cache: Cache
) -> None:
    talk = Talk("condense-plus-context", corpus, cache)
    engines = []
    for _ in range(2):
        plain: Any = talk.plain()
        plain._skip_condense = True
        engines.append(CachedChatEngine(plain, **talk.options))
    await say(engines[0], TRAVEL)
    await say(engines[1], "what is for lunch")
    assert [hit(await say(engine, LEAVE)) for engine in engines] == [False, False]


@pytest.mark.parametrize("kind", KINDS[:3])
async def test_f1_a_changed_document_makes_an_answer_anew(
    kind: str, corpus: Corpus, cache: Cache
) -> None:
    talk = Talk(kind, corpus, cache)
    before = await say(talk.cached(), LEAVE)
    corpus.edit("leave", "annual leave is forty days")
    after = await say(talk.cached(), LEAVE)
    assert after.metadata["cache"]["reason"] == "evidence changed" and str(after) != str(before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS[:3])
async def test_under_version_a_hit_retrieves_nothing(
    kind: str, way: str, corpus: Corpus, cache: Cache
) -> None:
    talk = Talk(kind, corpus, cache, grounding="version", corpus="handbook", stamps=INDEX)
    missed = await say(talk.cached(), LEAVE, way)
    retrieved = corpus.embedding.retrievals
    found = await say(talk.cached(), LEAVE, way)
    assert hit(found) and corpus.embedding.retrievals == retrieved
    assert nodes(found) == nodes(missed) and len(nodes(found)) == 2
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    assert not hit(await say(talk.cached(), LEAVE, way))


async def test_a_first_message_hits_by_meaning(corpus: Corpus) -> None:
    with semantic_cache() as cache:
        for kind in KINDS:
            talk = Talk(kind, corpus, cache)
            await say(talk.cached(), LEAVE)
            found = await say(talk.cached(), "tell me about annual leave")
            assert found.metadata["cache"]["level"] == "semantic"
            assert found.metadata["cache"]["similarity"] > 0.9
            cache.clear()


async def test_a_later_message_never_hits_by_meaning(corpus: Corpus) -> None:
    with semantic_cache() as cache:
        for kind in ("context", "simple"):
            talk = Talk(kind, corpus, cache)
            for message in (LEAVE, "tell me about annual leave"):
                engine = talk.cached()
                await say(engine, TRAVEL)
                response = await say(engine, message)
            assert not hit(response)
            cache.clear()


MEMORIES: dict[str, Callable[[DigestLLM], Any]] = {
    "buffer": lambda _: ChatMemoryBuffer.from_defaults(token_limit=10_000),
    "small buffer": lambda _: ChatMemoryBuffer.from_defaults(token_limit=40),
    "summary": lambda llm: ChatSummaryMemoryBuffer.from_defaults(
        llm=llm, token_limit=40, tokenizer_fn=str.split
    ),
    "memory": lambda _: Memory.from_defaults(session_id="one", token_limit=10_000),
}


@pytest.mark.parametrize("which", sorted(MEMORIES))
async def test_every_memory_holds_what_the_engine_alone_would_have_written(
    which: str, talk: Talk
) -> None:
    talk.options["across_conversations"] = False  # with the engine's own prompt
    told, written = [], []
    for wrap in (talk.plain, talk.cached, talk.cached):
        memory = MEMORIES[which](DigestLLM())
        engine: BaseChatEngine = wrap(memory)
        messages = (LEAVE, TRAVEL, "what is for lunch", LEAVE)
        told.append([str(await say(engine, message, "achat")) for message in messages])
        everything = await memory.aget_all()
        written.append([(message.role.value, message.content) for message in everything])
        if which == "memory":
            await memory.sql_store._async_engine.dispose()
    assert told[0] == told[1] == told[2]
    assert written[0] == written[1] == written[2]


async def test_what_the_memory_shows_the_model_is_keyed_and_not_what_it_holds(
    corpus: Corpus, cache: Cache
) -> None:
    talk = Talk("simple", corpus, cache)
    small = [ChatMemoryBuffer.from_defaults(token_limit=12) for _ in range(2)]
    for memory, said in zip(small, ("one " * 9, "two " * 9), strict=True):
        memory.put(ChatMessage(content=said, role="user"))
    assert [hit(await say(talk.cached(memory), LEAVE)) for memory in small] == [False, True]


async def test_a_history_may_be_given(talk: Talk) -> None:
    given = [
        ChatMessage(content="My name is Ann.", role="user"),
        ChatMessage(content="Hello Ann.", role="assistant"),
    ]
    plain, first, second = talk.plain(), talk.cached(), talk.cached()
    fresh = await say(plain, LEAVE, chat_history=list(given))
    missed = await say(first, LEAVE, chat_history=list(given))
    found = await say(second, LEAVE, chat_history=list(given))
    assert [hit(missed), hit(found)] == [False, True]
    assert history(first) == history(second)
    if talk.kind != "condense-plus-context":
        assert str(fresh) == str(found) and history(second) == history(plain)


async def test_reset_begins_a_new_conversation(talk: Talk) -> None:
    engine = talk.cached()
    await say(engine, LEAVE)
    engine.reset()
    assert engine.chat_history == []
    assert hit(await say(engine, LEAVE)) and len(engine.chat_history) == 2


async def test_e1_tenants_do_not_share(talk: Talk) -> None:
    for tenant in ("acme", "other"):
        with stampcache.scope(tenant=tenant):
            assert not hit(await say(talk.cached(), LEAVE, "achat"))
            assert hit(await say(talk.cached(), LEAVE, "stream_chat"))


async def test_p3_one_turn_may_be_told_otherwise(talk: Talk) -> None:
    with stampcache.scope(no_store=True):
        await say(talk.cached(), LEAVE)
    assert not hit(await say(talk.cached(), LEAVE))
    with stampcache.scope(no_cache=True):
        response = await say(talk.cached(), LEAVE, "astream_chat")
        assert response.metadata["cache"]["reason"] == "told not to look up"
    assert hit(await say(talk.cached(), LEAVE))


async def test_c10_a_reported_answer_is_gone(talk: Talk, cache: Cache) -> None:
    await say(talk.cached(), LEAVE)
    found = await say(talk.cached(), LEAVE)
    assert cache.report_bad(found.metadata["cache"]["entry_id"])
    assert not hit(await say(talk.cached(), LEAVE))


async def test_a2_a_changed_model_or_prompt_is_another_engine(talk: Talk) -> None:
    await say(talk.cached(), LEAVE)
    talk.llm.temperature = 0.7
    assert not hit(await say(talk.cached(), LEAVE))
    if talk.kind != "condense-question":
        engine = talk.cached()
        inner: Any = engine.inner
        inner._prefix_messages = [ChatMessage(content="Be rude.", role="system")]
        inner._system_prompt = "Be rude."
        assert not hit(await say(engine, LEAVE))


async def test_a_failing_model_fails_the_turn_and_stores_nothing(talk: Talk, cache: Cache) -> None:
    talk.llm.fails(OSError("model is down"))
    plain, engine = talk.plain(), talk.cached()
    for each in (plain, engine):
        with pytest.raises(OSError, match="model is down"):
            await say(each, LEAVE, "achat")
    assert history(engine) == history(plain) and cache.stats().entries == 0
    talk.llm.fails(None)
    assert not hit(await say(engine, LEAVE))


async def test_f17_equal_first_messages_at_once_are_one_making(talk: Talk) -> None:
    engines = [talk.cached() for _ in range(12)]
    told = await asyncio.gather(*(engine.achat(LEAVE) for engine in engines))
    assert len({str(one) for one in told}) == 1 and talk.llm.answers_made == 1
    assert all(len(engine.chat_history) == 2 for engine in engines)


async def test_streams_at_once_are_read_together(talk: Talk) -> None:
    engines = [talk.cached() for _ in range(5)]
    told = await asyncio.gather(*(say(engine, LEAVE, "astream_chat") for engine in engines))
    assert len({str(one) for one in told}) == 1 and talk.llm.answers_made == 1
    assert all(history(engine) == history(engines[0]) for engine in engines)


async def test_a_picture_in_the_history_bypasses_the_cache(
    corpus: Corpus, cache: Cache, tmp_path: Any
) -> None:
    talk = Talk("context", corpus, cache)
    (tmp_path / "photo.png").write_bytes(b"photo")
    picture = ChatMessage(
        role="user", blocks=[TextBlock(text="this"), ImageBlock(path=tmp_path / "photo.png")]
    )
    for _ in range(2):
        response = await say(talk.cached(), LEAVE, chat_history=[picture])
        assert response.metadata["cache"]["reason"] == "uncacheable"
    assert cache.stats().entries == 0


async def test_nodes_of_the_turn_before_are_part_of_the_question(
    corpus: Corpus, cache: Cache
) -> None:
    talk = Talk("context", Corpus({}), cache)

    def node(text: str) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=0.5)]

    hits = []
    for text in ("thirty days", "thirty days", "forty days"):
        response = await say(talk.cached(), LEAVE, prev_chunks=node(text))
        hits.append(hit(response))
        assert response.source_nodes[0].node.get_content() == text
    assert hits == [False, True, False]


async def test_explain_asks_nothing_and_writes_nothing(talk: Talk, cache: Cache) -> None:
    engine = talk.cached()
    assert "not found" in str(engine.explain(LEAVE))
    await say(engine, LEAVE)
    engine.reset()
    before = talk.llm.calls
    assert "same tokens" in str(engine.explain(LEAVE))
    assert "same tokens" in str(await engine.aexplain(LEAVE, chat_history=[]))
    assert engine.chat_history == [] and talk.llm.calls == before


def test_an_engine_that_is_not_known_is_refused(cache: Cache) -> None:
    class Other(SimpleChatEngine.__mro__[1]):  # type: ignore[misc]
        chat = achat = stream_chat = astream_chat = reset = lambda *_: None
        chat_history = ()

    with pytest.raises(ConfigError, match="no chat engine that is known"):
        CachedChatEngine(Other(), cache=cache)


def test_an_engine_with_turns_of_its_own_is_refused(
    corpus: Corpus, cache: Cache, llm: DigestLLM
) -> None:
    class Own(SimpleChatEngine):
        def chat(self, message: str, chat_history: Any = None) -> AgentChatResponse:
            return AgentChatResponse(f"{message}?")

    memory = ChatMemoryBuffer.from_defaults(token_limit=1_000)
    inner = Own(llm=llm, memory=memory, prefix_messages=[])
    with pytest.raises(ConfigError, match="Own has chat of its own"):
        CachedChatEngine(inner, cache=cache, grounding="none")


def test_without_documents_there_is_nothing_to_recheck(corpus: Corpus, cache: Cache) -> None:
    with pytest.raises(ConfigError, match='give grounding="none"'):
        CachedChatEngine(Talk("simple", corpus, cache).plain(), cache=cache)


async def test_a_cached_query_engine_inside_is_not_cached_twice(
    corpus: Corpus, cache: Cache, llm: DigestLLM
) -> None:
    inner = CachedQueryEngine(corpus.engine(llm), cache=cache)
    chat = CondenseQuestionChatEngine.from_defaults(
        query_engine=inner, llm=llm, memory=ChatMemoryBuffer.from_defaults(token_limit=1_000)
    )
    engine = CachedChatEngine(chat, cache=cache)
    assert not hit(await say(engine, LEAVE))
    assert cache.stats().entries == 1


async def test_a_query_engine_of_ones_own_answers_too(
    corpus: Corpus, cache: Cache, llm: DigestLLM
) -> None:
    class Own(CustomQueryEngine):
        llm: DigestLLM

        def custom_query(self, query_str: str) -> str:
            return str(self.llm.complete(query_str).text)

    def engine() -> CachedChatEngine:
        chat = CondenseQuestionChatEngine.from_defaults(
            query_engine=Own(llm=llm),
            llm=llm,
            memory=ChatMemoryBuffer.from_defaults(token_limit=1_000),
        )
        return CachedChatEngine(chat, cache=cache, grounding="none", stamps=INDEX)

    assert [hit(await say(engine(), LEAVE, way)) for way in ("chat", "achat")] == [False, True]
    assert llm.calls == 1


async def test_the_inner_engine_is_left_as_it_is(talk: Talk) -> None:
    plain: Any = talk.plain()
    before = dict(vars(plain))
    engine = CachedChatEngine(plain, **talk.options)
    await say(engine, LEAVE, "stream_chat")
    assert vars(plain) == before and engine.inner is plain
    if talk.kind == "condense-question":
        assert plain._query_engine._response_synthesizer._streaming is False


def test_a_cache_may_be_given_by_url(corpus: Corpus, cache: Cache) -> None:
    talk = Talk("context", corpus, cache)
    engine = CachedChatEngine(talk.plain(), cache="memory://")
    engine.chat(LEAVE)
    engine.reset()
    assert hit(engine.chat(LEAVE)) and isinstance(engine.cache, Cache)
    engine.cache.close()


async def test_traces_are_those_of_a_chat(corpus: Corpus, cache: Cache) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    talk = Talk("context", corpus, cache)
    plain: Any = talk.plain()
    plain.callback_manager = CallbackManager([debug])
    engine = CachedChatEngine(plain, **talk.options)
    engine.chat(LEAVE)
    engine.reset()
    assert hit(await engine.achat(LEAVE))


async def test_additional_parts_of_a_message_come_back(corpus: Corpus, cache: Cache) -> None:
    talk = Talk("simple", corpus, cache)
    llm = talk.llm

    class Thinking(ScriptedCondenser):
        def chat(self, messages: Any, **_: Any) -> Any:
            response = llm.chat(messages)
            response.message.additional_kwargs["reasoning"] = "thirty, since it says so"
            return response

    talk.llm = Thinking()
    for expected in (False, True):
        engine = talk.cached()
        assert hit(await say(engine, LEAVE)) is expected
        assert engine.chat_history[-1].additional_kwargs == {
            "reasoning": "thirty, since it says so"
        }


def test_answers_are_found_again_after_a_restart(tmp_path: Any, corpus: Corpus) -> None:
    for expected in (False, True):
        with open_cache(f"sqlite:///{tmp_path / 'chat.db'}") as opened:
            talk = Talk("context", corpus, opened)
            assert hit(talk.cached().chat(LEAVE)) is expected


async def test_a_whole_answer_waits_for_the_stream_under_way(talk: Talk) -> None:
    streaming: Any = await talk.cached().astream_chat(LEAVE)
    whole = asyncio.create_task(talk.cached().achat(LEAVE))
    told = "".join([text async for text in streaming.async_response_gen()])
    assert str(await whole) == told and talk.llm.answers_made == 1


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_of_the_turn_before_are_for_the_engine_that_takes_them(
    kind: str, corpus: Corpus, cache: Cache
) -> None:
    engine = Talk(kind, corpus, cache).cached()
    if kind == "context":
        assert engine.chat(LEAVE, prev_chunks=[]).response
    else:
        with pytest.raises(TypeError, match="takes no prev_chunks"):
            engine.chat(LEAVE, prev_chunks=[])


@pytest.mark.parametrize("text", ["", "   "])
async def test_n4_an_empty_answer_is_not_stored(text: str, corpus: Corpus, cache: Cache) -> None:
    talk = Talk("simple", corpus, cache)
    talk.llm.answers(text)
    plain = await say(talk.plain(), LEAVE)
    engine = talk.cached()
    assert str(await say(engine, LEAVE)) == str(plain) == text
    assert engine.chat_history[-1].content == text and cache.stats().entries == 0


async def test_f13_a_kind_of_data_lives_as_long_as_the_cache_says(
    corpus: Corpus, clock: Any
) -> None:
    lifetimes = {"price": Lifetime(ttl_s=60)}
    with open_cache("memory://", clock=clock, lifetimes=lifetimes) as cache:
        talk = Talk("context", corpus, cache, kind="price")
        await say(talk.cached(), LEAVE)
        clock.advance(120)
        response = await say(talk.cached(), LEAVE)
        assert response.metadata["cache"]["reason"] == "expired"


async def test_a_stale_answer_may_be_given(corpus: Corpus, cache: Cache) -> None:
    talk = Talk("condense-question", corpus, cache, allow_stale=True)
    before = await say(talk.cached(), LEAVE)
    corpus.edit("leave", "annual leave is forty days")
    engine = talk.cached()
    stale = await say(engine, LEAVE, "astream_chat")
    assert "".join(stale.told) == str(before) and not hit(stale)
    assert stale.metadata["cache"]["reason"] == "evidence changed"
    assert history(engine)[-1] == ("assistant", str(before))


async def test_an_abandoned_stream_is_written_down_all_the_same(talk: Talk, cache: Cache) -> None:
    engine = talk.cached()
    response: Any = await engine.astream_chat(LEAVE)  # the framework reads it for the memory
    await response.awrite_response_to_history_task
    assert len(engine.chat_history) == 2 and cache.stats().entries == 1


async def test_without_a_tenant_a_chat_goes_on_without_the_cache(corpus: Corpus) -> None:
    with open_cache("memory://", tenants="required") as cache:
        for kind in KINDS:
            engine = Talk(kind, corpus, cache).cached()
            for way in WAYS:
                response = await say(engine, LEAVE, way)
                assert response.metadata["cache"]["reason"] == "no tenant in scope"
            assert len(engine.chat_history) == 8
        assert cache.stats(everything=True).entries == 0
