"""What parts of an app read or change besides what they are given; what runs later than asked."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableGenerator,
    RunnableLambda,
    RunnableWithFallbacks,
)
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_fakes import CountingChat, Shelf
from pydantic import BaseModel

import stampcache
from langchain_stampcache import CachedChain, CachedRetriever, StampCache
from langchain_stampcache.pieces import Flowing, flowing, put_together
from stampcache import Cache, ConfigError, Evidence, Stamps
from stampcache.adapters import Surroundings, surroundings
from stampcache.testing import FailingStore

INDEX = Stamps(index="1")


# -- what functions read of a config ---------------------------------------------------------------


def speaking(asked: object, config: RunnableConfig) -> str:
    return f"in {config['configurable'].get('language')}"


def configured(**given: object) -> RunnableConfig:
    return {"configurable": given}


@pytest.fixture(params=["parts", "around"])
def speaker(request: pytest.FixtureRequest, opened: Cache) -> CachedChain[Any, Any]:
    if request.param == "parts":
        return CachedChain(retriever=None, answer=speaking, cache=opened, grounding="none")
    return CachedChain.around(
        speaking, cache=opened, grounding="none", stamps=INDEX, with_fields=True
    )


async def test_a1_what_is_configurable_is_keyed(speaker: CachedChain[Any, Any]) -> None:
    for language in ("en", "de"):
        for thread in ("1", "2"):
            config = configured(language=language, thread_id=thread, __own=object())
            config["configurable"]["openai_api_key"] = f"sk-{thread}"
            result = speaker.invoke({"input": "q"}, config)
            assert result["answer"] == f"in {language}"
            assert result["cache"]["hit"] is (thread == "2")
            assert (await speaker.ainvoke({"input": "q"}, config))["cache"]["hit"]
            assert list(speaker.stream({"input": "q"}, config))[-1]["cache"]["hit"]


def test_e1_another_tenant_that_a_config_names_is_keyed(opened: Cache) -> None:
    def own(asked: object, config: RunnableConfig) -> str:
        return f"of {config['configurable']['tenant']}"

    chain = CachedChain(retriever=None, answer=own, cache=opened, grounding="none")
    for _ in range(2):
        for tenant in ("acme", "globex"):
            with stampcache.scope(tenant="acme"):
                result = chain.invoke({"input": "q"}, configured(tenant=tenant))
            assert result["answer"] == f"of {tenant}"
    assert result["cache"]["hit"]
    assert chain.invoke({"input": "q"}, configured(tenant="acme"))["cache"]["hit"]


def test_a16_an_object_that_is_configurable_is_not_cached(speaker: CachedChain[Any, Any]) -> None:
    for _ in range(2):
        result = speaker.invoke({"input": "q"}, configured(session=object()))
        assert result["cache"]["reason"] == "uncacheable"


def test_a1_what_is_configurable_is_keyed_for_a_retriever(opened: Cache) -> None:
    def find(query: str, config: RunnableConfig) -> list[Document]:
        return [Document(f"in {config['configurable']['language']}")]

    cached = CachedRetriever(inner=RunnableLambda(find), cache=opened, stamps=INDEX)
    for language in ("en", "de", "en"):
        [found] = cached.invoke("q", configured(language=language))
        assert found.page_content == f"in {language}"


# -- what remembers --------------------------------------------------------------------------------


class Talk(TypedDict):
    question: str
    said: Annotated[list[str], operator.add]
    answer: str


def remembering_graph() -> Runnable[Any, Any]:
    graph = pytest.importorskip("langgraph.graph")
    memory = pytest.importorskip("langgraph.checkpoint.memory")
    built = graph.StateGraph(Talk)
    built.add_node("say", lambda talk: {"said": [talk["question"]], "answer": f"{talk['said']}"})
    built.add_edge(graph.START, "say")
    compiled: Runnable[Any, Any] = built.compile(checkpointer=memory.InMemorySaver())
    return compiled


def remembering_chain() -> Runnable[Any, Any]:
    bound = RunnableLambda(lambda asked: "x")
    return RunnableWithMessageHistory.model_construct(bound=bound)  # its own way warns of its age


@pytest.mark.parametrize("remembering", [remembering_graph, remembering_chain])
def test_d4_what_keeps_conversations_itself_is_refused(opened: Cache, remembering: Any) -> None:
    chain = remembering()
    for one in (chain, RunnableLambda(lambda asked: asked) | chain):
        with pytest.raises(ConfigError, match="keeps conversations itself"):
            CachedChain.around(one, cache=opened, grounding="none", version="1")
        with pytest.raises(ConfigError, match="keeps conversations itself"):
            CachedChain(retriever=None, answer=one, cache=opened, grounding="none", version="1")


# -- documents that a chain writes into ------------------------------------------------------------


class Leave(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document("30 days", id="leave-1", metadata={"source": "leave.md"})]


def prettied(documents: list[Document]) -> list[Document]:
    for document in documents:
        document.metadata["source"] = "Leave policy"
    return documents


def in_parts(cache: Cache) -> CachedChain[Any, Any]:
    return CachedChain(
        retriever=Leave(),
        answer=lambda given: prettied(given["context"])[0].page_content,
        cache=cache,
        grounding="version",
        corpus="h",
        stamps=INDEX,
    )


def around_heard(cache: Cache) -> CachedChain[Any, Any]:
    chain = RunnableLambda(lambda given: given["input"]) | Leave() | prettied
    chain |= lambda documents: {"answer": documents[0].page_content}
    return CachedChain.around(chain, cache=cache, corpus="h", stamps=INDEX)


def around_shown(cache: Cache) -> CachedChain[Any, Any]:
    chain = RunnableLambda(lambda given: given["input"]) | Leave() | prettied
    chain |= lambda documents: {"answer": "30 days", "context": documents}
    return CachedChain.around(chain, cache=cache, corpus="h", stamps=INDEX)


@pytest.mark.parametrize("built", [in_parts, around_heard, around_shown])
@pytest.mark.parametrize("streamed", [False, True])
def test_f1_evidence_is_what_was_retrieved_whatever_the_chain_makes_of_it(
    opened: Cache, built: Any, streamed: bool
) -> None:
    chain = built(opened)
    if streamed:
        list(chain.stream({"input": "q"}))
    else:
        chain.invoke({"input": "q"})
    assert chain.invoke({"input": "q"})["cache"]["hit"]
    assert opened.invalidate(corpus="h", source="leave.md") == 1
    assert not chain.invoke({"input": "q"})["cache"]["hit"]


@pytest.mark.parametrize("shows", [True, False])
def test_f1_what_a_cached_chain_inside_answered_from_is_evidence(
    opened: Cache, shows: bool
) -> None:
    inner: Any = CachedChain(
        retriever=Leave(),
        answer=lambda given: "30 days",
        cache=opened,
        grounding="version",
        corpus="h",
        stamps=INDEX,
    )
    if not shows:
        told = CachedChain.around(
            lambda given: {"answer": "30 days"}, cache=opened, grounding="none", stamps=INDEX
        )
        inner = told
    shelf = Shelf()
    shelf.put("train.md", "trains and leave")
    asked = RunnableLambda(lambda question: {"input": question}) | inner
    chain = {"leave": asked, "trains": shelf} | RunnableLambda(lambda all_: all_["leave"]["answer"])
    outer = CachedChain.around(chain, cache=opened, corpus="h", stamps=INDEX, version="1")
    inner.invoke({"input": "leave"})
    outer.invoke("leave")
    assert isinstance(outer.explain("leave").outcome, stampcache.Hit) is shows
    opened.invalidate(corpus="h", source="leave.md")
    assert not isinstance(outer.explain("leave").outcome, stampcache.Hit)


def test_documents_of_another_class_are_not_stored(opened: Cache) -> None:
    class Scored(Document):
        score: float = 0.5

    class Scoring(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Scored("30 days", metadata={"source": "leave.md"})]

    chain = CachedChain(
        retriever=Scoring(),
        answer=lambda given: "x",
        cache=opened,
        grounding="version",
        stamps=INDEX,
    )
    results = [chain.invoke({"input": "q"}) for _ in range(2)]
    assert [type(result["context"][0]) for result in results] == [Scored, Scored]


# -- what a retriever is set to --------------------------------------------------------------------


class Depth(BaseModel):
    depth: int


@dataclass
class Width:
    depth: int


@dataclass(slots=True)
class Slotted:
    depth: int


class Searching(BaseRetriever):
    options: Any = None
    rewrite: Any = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        asked = self.rewrite(query) if self.rewrite else query
        return [Document(f"{asked} {getattr(self.options, 'depth', '')}")]


def over(cache: Cache, **fields: Any) -> CachedRetriever:
    return CachedRetriever(inner=Searching(**fields), cache=cache, stamps=INDEX)


@pytest.mark.parametrize("kind", [Depth, Width, Slotted])
def test_a1_options_of_a_retriever_in_an_object_are_keyed(opened: Cache, kind: Any) -> None:
    found = [over(opened, options=kind(depth=n)).invoke("q") for n in (1, 2, 1)]
    assert found[0] == found[2] != found[1]
    changing = over(opened, options=kind(depth=3))
    before = changing.invoke("q")
    changing.inner.options.depth = 4  # type: ignore[attr-defined]
    assert changing.invoke("q") != before


def test_a16_a_function_of_a_retriever_that_cannot_be_told_from_another_is_refused(
    opened: Cache,
) -> None:
    client = object()
    with pytest.raises(ConfigError, match="rewrite"):
        over(opened, rewrite=lambda query: f"{query} {id(client)}")
    for said in ("a", "b"):
        [found] = over(opened, rewrite=lambda query, said=said: said).invoke("q")
        assert found.page_content.startswith(said)


# -- streams ---------------------------------------------------------------------------------------


@pytest.fixture
def seeing(opened: Cache) -> tuple[CachedChain[Any, Any], list[Surroundings | None]]:
    seen: list[Surroundings | None] = []

    def answer(given: object) -> str:
        seen.append(surroundings())
        return "x"

    chain = CachedChain(retriever=None, answer=answer, cache=opened, grounding="none", version="1")
    return chain, seen


def test_e1_a_stream_that_nobody_asked_for_is_not_taken_for_who_reads_it(
    opened: Cache, seeing: Any
) -> None:
    chain, seen = seeing
    with stampcache.scope(tenant="globex"):
        chain.invoke({"input": "q"})
    stream = chain.stream({"input": "q"})
    with stampcache.scope(tenant="globex"):
        chunks = list(stream)
        assert surroundings() is not None
    assert chunks[-1]["cache"]["reason"] == "no tenant in scope"
    assert seen[1] is not None
    assert seen[1].scope.tenant == ""


async def test_e1_a_stream_takes_nothing_of_the_scope_where_it_is_read(seeing: Any) -> None:
    chain, seen = seeing
    with stampcache.scope(tenant="acme"):
        streams: list[Iterator[Any]] = [chain.stream({"input": "q"})]
        later = chain.astream({"input": "other"})
    told = Evidence(text="of globex")
    with stampcache.scope(tenant="globex", evidence=[told], question="z", no_store=True):
        for stream in streams:
            list(stream)
        assert [chunk async for chunk in later]
    with stampcache.scope(tenant="acme"):
        assert chain.invoke({"input": "q"})["cache"]["hit"]
        assert chain.invoke({"input": "other"})["cache"]["hit"]
    assert [(said.scope.tenant, said.evidence, said.question) for said in seen] == [
        ("acme", None, "")
    ] * 2


@pytest.mark.parametrize(
    "contents", [[[], "a", "b"], ["a", [], "b"], ["", "a", "b", []], ["a", "b", ""]]
)
def test_texts_among_empty_lists_are_kept(contents: list[Any]) -> None:
    chunks = [AIMessageChunk(content=content) for content in contents]
    made = put_together(chunks, Flowing.ADDED)
    assert isinstance(made, AIMessageChunk)
    assert made.content == "ab"
    assert [chunk.content for chunk in chunks] == contents


def test_a_fallback_may_stream_otherwise() -> None:
    plain: Runnable[Any, Any] = RunnableLambda(lambda asked: "x") | StrOutputParser()

    def either(other: Runnable[Any, Any]) -> Flowing:
        return flowing(RunnableWithFallbacks(runnable=plain, fallbacks=[other]))

    def growing(given: Iterator[Any]) -> Iterator[str]:
        yield from ("a", "ab")

    assert either(plain) is Flowing.ADDED
    assert either(RunnableGenerator(growing)) is Flowing.GUESSED
    assert either(remembering_graph()) is Flowing.NOT


# -- a store that fails as nobody thought ----------------------------------------------------------


class Odd(FailingStore):
    odd = False

    def sequence(self) -> int:
        if self.odd:
            raise ZeroDivisionError
        return super().sequence()

    def fenced(self, entry: Any, fence: int) -> str:
        if self.odd:
            raise ZeroDivisionError
        return super().fenced(entry, fence)


async def test_i1_whatever_a_store_raises_the_app_answers() -> None:
    store = Odd()
    cache = Cache(store)
    chain = CachedChain(retriever=None, answer=lambda given: "x", cache=cache, grounding="none")
    model = CountingChat(cache=StampCache(cache)).answering(lambda _, call: AIMessage("y"))
    store.odd = True
    assert chain.invoke({"input": "q"})["answer"] == "x"
    assert (await chain.ainvoke({"input": "q"}))["answer"] == "x"
    assert list(chain.stream({"input": "other"}))[-1]["cache"]["reason"] == "store failed"
    assert [chunk async for chunk in chain.astream({"input": "q"})]
    assert model.invoke("q").content == "y"
