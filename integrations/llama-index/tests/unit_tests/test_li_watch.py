"""Under a watched index a hit costs a lookup, and an answer ends by what its question would retrieve."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from li_watch_world import Projected
from llama_fakes import TopicEmbedder, report
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.chat_engine import CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from watched_documents import DOCUMENTS, LEAVE, Watched, is_hit

from llama_index_stampcache import CachedChatEngine, CachedQueryEngine, CachedRetriever, watch
from stampcache import AsyncCache, Cache, Reason, open_cache

WRITES: dict[str, Callable[[Watched], object]] = {
    "insert": lambda w: w.insert("more", "how many days of annual leave"),
    "insert_nodes": lambda w: w.index.insert_nodes([TextNode(text="annual leave of many days")]),
    "update_ref_doc": lambda w: w.update("leave", "annual leave is forty days"),
    "refresh_ref_docs": lambda w: w.index.refresh_ref_docs(
        [Document(text="annual leave is forty days", id_="leave")]
    ),
    "delete_ref_doc": lambda w: w.delete("leave"),
    "delete_nodes": lambda w: w.index.delete_nodes([leave_node(w)], delete_from_docstore=True),
    "delete": lambda w: w.index.vector_store.delete("leave"),
    "clear": lambda w: w.index.vector_store.clear(),
}
ASYNC_WRITES: dict[str, Callable[[Watched], Any]] = {
    "insert": lambda w: w.index.ainsert(Document(text="annual leave days of many")),
    "insert_nodes": lambda w: w.index.ainsert_nodes([TextNode(text="annual leave days")]),
    "update_ref_doc": lambda w: w.index.aupdate_ref_doc(Document(text="leave", id_="leave")),
    "refresh_ref_docs": lambda w: w.index.arefresh_ref_docs([Document(text="x", id_="leave")]),
    "delete_ref_doc": lambda w: w.index.adelete_ref_doc("leave", delete_from_docstore=True),
    "delete_nodes": lambda w: w.index.adelete_nodes([leave_node(w)], delete_from_docstore=True),
    "delete": lambda w: w.index.vector_store.adelete("leave"),
    "clear": lambda w: w.index.vector_store.aclear(),
}


@pytest.fixture
def watched(cache: Cache) -> Watched:
    return Watched(cache)


def leave_node(watched: Watched) -> str:
    return next(
        one.node_id
        for one in watched.retriever(1).retrieve(LEAVE)
        if "leave" in one.node.get_content()
    )


def test_a_hit_retrieves_nothing_and_asks_no_model(watched: Watched) -> None:
    engine = watched.engine()
    first = engine.query(LEAVE)
    retrievals, calls = watched.embedding.retrievals, watched.llm.calls
    again = engine.query(LEAVE)
    assert report(again)["hit"] and str(again) == str(first)
    assert again.source_nodes == first.source_nodes
    assert (watched.embedding.retrievals, watched.llm.calls) == (retrievals, calls)


def test_it_is_the_same_index(cache: Cache) -> None:
    index = VectorStoreIndex.from_documents([], embed_model=Projected())
    assert watch(index, cache=cache, corpus="handbook") is index
    assert watch(index, cache=cache, corpus="handbook") is index  # once more changes nothing
    assert isinstance(index, VectorStoreIndex) and type(index).__name__ == "VectorStoreIndex"


def test_what_is_written_elsewhere_in_the_space_ends_nothing(watched: Watched) -> None:
    engine = watched.engine(1)
    engine.query(LEAVE)
    watched.insert("cats", "cats sleep on the sofa")
    watched.update("pets", "dogs must stay outside")
    watched.delete("travel")
    assert is_hit(engine)


@pytest.mark.parametrize("name", list(WRITES))
def test_a_write_within_reach_ends_an_answer(watched: Watched, name: str) -> None:
    engine = watched.engine(1)
    engine.query(LEAVE)
    WRITES[name](watched)
    told = engine.query(LEAVE)
    assert report(told)["reason"] == Reason.INVALIDATED.value
    assert str(told) == str(watched.plain(1).query(LEAVE))


@pytest.mark.parametrize("name", list(ASYNC_WRITES))
async def test_so_does_one_in_a_task(watched: Watched, name: str) -> None:
    engine = watched.engine(1)
    await engine.aquery(LEAVE)
    assert report(await engine.aquery(LEAVE))["hit"]
    await ASYNC_WRITES[name](watched)
    told = await engine.aquery(LEAVE)
    assert report(told)["reason"] == Reason.INVALIDATED.value
    assert str(told) == str(await watched.plain(1).aquery(LEAVE))


def test_engines_that_an_index_makes_read_through_it(watched: Watched) -> None:
    for engine in (
        watched.index.as_query_engine(llm=watched.llm, similarity_top_k=1),
        watched.index.as_query_engine(llm=watched.llm, similarity_top_k=1, streaming=True),
    ):
        cached = watched.around(engine, name=str(id(engine)))
        str(cached.query(LEAVE))
        assert report(cached.query(LEAVE))["hit"]


def test_a_retriever_of_an_index_sees_the_nodes_of_the_past_only(watched: Watched) -> None:
    """Such a retriever is given the ids of all nodes that there are when it is made."""
    old = watched.around(watched.index.as_query_engine(llm=watched.llm, similarity_top_k=1))
    old.query(LEAVE)
    watched.insert("more", "how many days of annual leave")
    new = watched.around(watched.index.as_query_engine(llm=watched.llm, similarity_top_k=1))
    assert "thirty" in old.query(LEAVE).source_nodes[0].text
    assert "how many" in new.query(LEAVE).source_nodes[0].text
    assert "thirty" in old.query(LEAVE).source_nodes[0].text


def test_streams_end_as_well(watched: Watched) -> None:
    engine = watched.engine(1, streaming=True)
    first = "".join(engine.query(LEAVE).response_gen)  # type: ignore[union-attr]  # it is one here
    again = engine.query(LEAVE)
    assert report(again)["hit"] and "".join(again.response_gen) == first  # type: ignore[union-attr]  # it is one here
    watched.update("leave", "annual leave is forty days")
    told = engine.query(LEAVE)
    assert report(told)["reason"] == Reason.INVALIDATED.value
    assert "".join(told.response_gen) != first  # type: ignore[union-attr]  # it is one here


async def test_streams_in_tasks_end_as_well(watched: Watched) -> None:
    engine = watched.engine(1, streaming=True)

    async def ask() -> tuple[bool, str]:
        response: Any = await engine.aquery(LEAVE)
        return report(response)["hit"], "".join([text async for text in response.response_gen])

    (_, first), again = await ask(), await ask()
    assert again == (True, first)
    await watched.index.adelete_ref_doc("leave", delete_from_docstore=True)
    hit, text = await ask()
    assert not hit and text != first


def test_meaning_finds_watched_answers_too() -> None:
    with open_cache("memory://", embedder=TopicEmbedder(), calibration=0.9) as cache:
        watched = Watched(cache)
        engine = watched.engine(1)
        engine.query("how many days of leave")
        told = report(engine.query("what about leave"))
        assert told["hit"] and told["level"] == "semantic"
        watched.update("leave", "how many days of leave")
        assert not report(engine.query("what else about leave"))["hit"]


def test_retrievers(watched: Watched) -> None:
    retriever = CachedRetriever(watched.retriever(1), cache=watched.cache, grounding="watch")
    first = retriever.retrieve(LEAVE)
    retrievals = watched.embedding.retrievals
    assert retriever.retrieve(LEAVE) == first and watched.embedding.retrievals == retrievals
    watched.insert("cats", "cats sleep on the sofa")
    assert retriever.retrieve(LEAVE) == first and watched.embedding.retrievals == retrievals
    watched.update("leave", "annual leave is forty days")
    assert "forty" in retriever.retrieve(LEAVE)[0].text
    assert retriever.sweep().checked == 1


async def test_retrievers_in_tasks(watched: Watched) -> None:
    retriever = CachedRetriever(watched.retriever(1), cache=watched.cache, grounding="watch")
    first = await retriever.aretrieve(LEAVE)
    retrievals = watched.embedding.retrievals
    assert await retriever.aretrieve(LEAVE) == first and watched.embedding.retrievals == retrievals
    await watched.index.aupdate_ref_doc(Document(text="annual leave is forty days", id_="leave"))
    assert "forty" in (await retriever.aretrieve(LEAVE))[0].text
    assert (await retriever.asweep()).drifted == ()


@pytest.mark.parametrize("kind", ["context", "condense"])
def test_chats(watched: Watched, kind: str) -> None:
    memory = ChatMemoryBuffer.from_defaults(llm=watched.llm)
    if kind == "context":
        inner: Any = ContextChatEngine.from_defaults(
            retriever=watched.retriever(1), llm=watched.llm, memory=memory
        )
    else:
        inner = CondenseQuestionChatEngine.from_defaults(
            query_engine=watched.plain(1), llm=watched.llm, memory=memory
        )
        inner._condense_question = lambda history, message: message
    chat = CachedChatEngine(inner, cache=watched.cache, grounding="watch")

    def ask() -> Any:
        chat.reset()
        return chat.chat(LEAVE)

    first, again = ask(), ask()
    assert report(again)["hit"] and again.response == first.response
    assert chat.sweep().checked == 1
    watched.insert("cats", "cats sleep on the sofa")
    assert report(ask())["hit"]
    watched.update("leave", "annual leave is forty days")
    told = ask()
    assert report(told)["reason"] == Reason.INVALIDATED.value and told.response != first.response


def test_nothing_is_embedded_twice(watched: Watched) -> None:
    embedded = watched.embedding.embedded
    assert sorted(embedded) == sorted(DOCUMENTS.values())
    watched.index.insert_nodes([TextNode(text="one"), TextNode(text="two")])
    asyncio.run(watched.index.ainsert_nodes([TextNode(text="three")]))
    assert embedded[-3:] == ["one", "two", "three"]


def test_hits_go_on_while_documents_are_embedded_and_stop_while_they_are_written(
    watched: Watched,
) -> None:
    engine = watched.engine(1)
    engine.query(LEAVE)
    seen = dict[str, str]()

    def at(place: str) -> None:
        found = engine.explain(LEAVE).outcome
        seen[place] = found.reason.value

    embed, put = watched.embedding._get_text_embedding, watched.index.docstore.inner.add_documents  # type: ignore[attr-defined]  # the type says less than the object

    def slow(text: str) -> list[float]:
        at("embedding")
        return embed(text)

    def add(*given: Any, **options: Any) -> None:
        at("between vector and text")
        put(*given, **options)

    object.__setattr__(watched.embedding, "_get_text_embedding", slow)
    watched.index.docstore.inner.add_documents = add  # type: ignore[attr-defined]  # the type says less than the object
    watched.insert("cats", "cats sleep on the sofa")
    assert seen == {
        "embedding": Reason.SAME_TOKENS.value,
        "between vector and text": Reason.BEING_WRITTEN.value,
    }
    assert is_hit(engine)


def test_an_answer_that_is_made_while_something_comes_within_its_reach_is_not_kept(
    watched: Watched,
) -> None:
    engine = watched.engine(1)
    watched.llm.meanwhile(lambda: watched.update("leave", "annual leave is forty days"))
    engine.query(LEAVE)
    watched.llm.meanwhile(lambda: None)
    assert not is_hit(engine)
    assert is_hit(engine)


def test_two_caches_on_one_file_watch_together(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with open_cache(url) as here, open_cache(url) as there:
        writer = Watched(here)
        # the same vector store and texts, as a process that only asks would load them
        context = StorageContext.from_defaults(
            docstore=writer.index.docstore.inner,  # type: ignore[attr-defined]  # the type says less than the object
            vector_store=writer.index.vector_store.inner,  # type: ignore[attr-defined]  # the type says less than the object
        )
        index = VectorStoreIndex(
            [], storage_context=context, embed_model=writer.embedding, index_struct=None
        )
        index._index_struct = writer.index.index_struct
        watch(index, cache=there, corpus="handbook")
        retriever = VectorIndexRetriever(index, similarity_top_k=1)
        engine = CachedQueryEngine(
            RetrieverQueryEngine.from_args(retriever, llm=writer.llm),
            cache=there,
            grounding="watch",
        )
        engine.query(LEAVE)
        assert is_hit(engine)
        writer.insert("cats", "cats sleep on the sofa")
        assert is_hit(engine)
        writer.update("leave", "annual leave is forty days")
        assert report(engine.query(LEAVE))["reason"] == Reason.INVALIDATED.value


async def test_an_async_cache_is_told() -> None:
    async with AsyncCache("memory://") as cache:
        index = watch(
            VectorStoreIndex.from_documents([], embed_model=Projected()), cache=cache, corpus="h"
        )
        await index.ainsert(Document(text="annual leave", id_="leave"))
        standing = await cache.standing("h")
        assert standing is not None and standing.chunks == 1
