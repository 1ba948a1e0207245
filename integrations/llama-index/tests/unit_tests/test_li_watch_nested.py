"""Caches inside of caches, and parts of one's own, under a watch: what they keep back is not served."""

from collections.abc import Mapping
from typing import Any

import pytest
from llama_fakes import Corpus, report
from llama_index.core import Document
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from watched_documents import LEAVE, Watched, is_hit

from llama_index_stampcache import CachedRetriever
from stampcache import Cache, ConfigError


@pytest.fixture
def watched(cache: Cache) -> Watched:
    return Watched(cache)


def kept(watched: Watched, **options: Any) -> CachedRetriever:
    return CachedRetriever(watched.retriever(), cache=watched.cache, grounding="watch", **options)


def over(watched: Watched, retriever: BaseRetriever) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(retriever, llm=watched.llm)


@pytest.mark.parametrize("kind", ["engine", "retriever"])
def test_a_cache_inside_that_was_asked_first(watched: Watched, kind: str) -> None:
    """What it has it gives without a search; who is around it must end by any write all the same."""
    inner: Any = watched.engine() if kind == "engine" else over(watched, kept(watched))
    inner.query(LEAVE)
    outer = watched.around(inner, name="outer")
    before = str(outer.query(LEAVE))
    assert is_hit(outer)
    watched.update("leave", "annual leave is forty days")
    after = outer.query(LEAVE)
    assert not report(after)["hit"] and str(after) != before
    assert str(after) == str(watched.plain().query(LEAVE))


@pytest.mark.parametrize("kind", ["engine", "retriever"])
def test_a_cache_inside_that_may_give_what_no_longer_holds(watched: Watched, kind: str) -> None:
    if kind == "engine":
        inner: Any = watched.around(watched.plain(), allow_stale=True)
    else:
        inner = over(watched, kept(watched, allow_stale=True))
    with pytest.raises(ConfigError, match="allow_stale"):
        watched.around(inner, name="outer")


class Own(BaseRetriever):
    """Says what identifies it, and not that it reads from elsewhere, too."""

    def __init__(self, seen: BaseRetriever, unseen: BaseRetriever) -> None:
        self._seen, self._other = seen, unseen
        super().__init__()

    def identity_parts(self) -> Mapping[str, object]:
        return {"seen": self._seen}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._seen.retrieve(query_bundle)
        return found if len(self._other.retrieve(query_bundle)) > 1 else found[:1]


class OwnEngine(BaseQueryEngine):
    """The same, as an engine."""

    def __init__(self, seen: BaseQueryEngine, unseen: BaseQueryEngine) -> None:
        self._seen, self._other = seen, unseen
        super().__init__(callback_manager=None)

    def identity_parts(self) -> Mapping[str, object]:
        return {"seen": self._seen}

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def _query(self, query_bundle: QueryBundle) -> Any:
        return self._seen.query(f"{query_bundle.query_str} {self._other.query(query_bundle)}")

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        return self._query(query_bundle)


def test_a_part_that_tells_what_identifies_it_is_looked_into(
    watched: Watched, corpus: Corpus
) -> None:
    bare = corpus.index.as_retriever(similarity_top_k=2)
    with pytest.raises(ConfigError, match="is watched by nobody"):
        watched.around(over(watched, Own(watched.retriever(), bare)))
    with pytest.raises(ConfigError, match="is watched by nobody"):
        watched.around(OwnEngine(watched.plain(), over(watched, bare)), version="1")


def test_a_retriever_that_tells_what_identifies_it_searches_in_its_own_way(
    watched: Watched,
) -> None:
    own = Own(watched.retriever(), watched.retriever(1))
    engine = watched.around(over(watched, own))
    engine.query(LEAVE)
    assert is_hit(engine)
    watched.insert("cats", "cats sleep on the sofa")
    assert not is_hit(engine)


def test_settings_of_a_retriever_that_are_changed_in_place(watched: Watched) -> None:
    retriever = watched.retriever(1)
    engine = watched.around(over(watched, retriever))
    engine.query(LEAVE)
    assert is_hit(engine)
    retriever.similarity_top_k = 3
    assert not is_hit(engine)
    assert is_hit(engine)
    watched.insert("more", "days of annual leave")
    told = engine.query(LEAVE)
    assert not report(told)["hit"] and len(told.source_nodes) == 3


def test_writes_of_what_is_there_already_and_of_what_is_not(watched: Watched) -> None:
    engine = watched.engine(2)
    engine.query(LEAVE)
    watched.insert("leave", "annual leave is forty days")  # a second time: both are there
    assert str(engine.query(LEAVE)) == str(watched.plain(2).query(LEAVE))
    watched.update("unknown", "days of annual leave")
    told = engine.query(LEAVE)
    assert not report(told)["hit"] and str(told) == str(watched.plain(2).query(LEAVE))
    watched.delete("never")
    refreshed = watched.index.refresh_ref_docs(
        [Document(text="annual leave is fifty days", id_="unknown"), Document(text="x", id_="x")]
    )
    assert refreshed == [True, True]
    told = engine.query(LEAVE)
    assert not report(told)["hit"] and str(told) == str(watched.plain(2).query(LEAVE))


def test_two_indexes_of_one_name_are_answered_each_from_its_own(watched: Watched) -> None:
    engine = watched.engine(1)
    engine.query(LEAVE)
    other = Watched(watched.cache, {"leave": "annual leave is sixty days"})
    for one in (other, watched, other, watched):
        told = one.engine(1).query(LEAVE)
        assert str(told) == str(one.plain(1).query(LEAVE))
        assert told.source_nodes[0].text == one.plain(1).query(LEAVE).source_nodes[0].text
    found = CachedRetriever(watched.retriever(), cache=watched.cache, grounding="watch")
    others = CachedRetriever(other.retriever(), cache=watched.cache, grounding="watch")
    for kept_one, one in ((found, watched), (others, other), (found, watched)):
        texts = [node.text for node in kept_one.retrieve(LEAVE)]
        assert texts == [node.text for node in one.retriever().retrieve(LEAVE)]


async def test_what_a_stream_inside_gives_is_not_taken_for_a_search(watched: Watched) -> None:
    inner = watched.around(watched.plain(streaming=True))
    outer = watched.around(inner, name="outer")
    for _ in range(2):
        told: Any = await outer.aquery(LEAVE)
        assert [chunk async for chunk in told.response_gen]
    watched.update("leave", "annual leave is forty days")
    told = await outer.aquery(LEAVE)
    assert "".join([chunk async for chunk in told.response_gen])
    assert not report(told)["hit"]
