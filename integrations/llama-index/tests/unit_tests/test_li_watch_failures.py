"""Writes that fail, are killed, go around the watch, or meet; and watches of which nothing is heard."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from li_watch_world import Projected
from llama_fakes import DigestLLM, report
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from watched_documents import DOCUMENTS, LEAVE, Watched, is_hit

import stampcache
from llama_index_stampcache import CachedQueryEngine, watch
from stampcache import Cache, Reason, StoreError, open_cache
from stampcache.testing import FakeClock

CHILD = Path(__file__).with_name("li_watch_child.py")


def killed(url: str, folder: Path, where: str, name: str, text: str) -> None:
    paths = os.pathsep.join([str(CHILD.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, str(CHILD), url, str(folder), where, name, text],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr.decode()


def loaded(cache: Cache, folder: Path) -> CachedQueryEngine:
    """Return an engine over the index in a folder, as a process that starts has it."""
    context = StorageContext.from_defaults(persist_dir=str(folder))
    index: Any = load_index_from_storage(context, embed_model=Projected())
    watch(index, cache=cache, corpus="handbook")
    retriever = VectorIndexRetriever(index, similarity_top_k=1)
    engine = RetrieverQueryEngine.from_args(retriever, llm=DigestLLM())
    return CachedQueryEngine(engine, cache=cache, grounding="watch")


@pytest.mark.parametrize("where", ["before", "between", "at the end"])
def test_a_writer_that_is_killed_blocks_hits_until_somebody_looks(
    tmp_path: Path, where: str
) -> None:
    url, folder = f"sqlite:///{tmp_path / 'rag.db'}", tmp_path / "index"
    with open_cache(url) as cache:
        watched = Watched(cache)
        watched.index.storage_context.persist(folder)
        engine = watched.engine(1)
        engine.query(LEAVE)
        killed(url, folder, where, "pets", "dogs must stay outside")
        told = engine.query(LEAVE)
        assert report(told)["reason"] == Reason.BEING_WRITTEN.value
    with open_cache(url) as cache:  # as after a restart; what was written was never persisted
        again = loaded(cache, folder)
        assert is_hit(again)
        assert cache.standing("handbook").intents == ()  # type: ignore[union-attr]  # it is watched


def test_what_a_killed_writer_has_left_in_the_index_is_found(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'rag.db'}", tmp_path / "index"
    with open_cache(url) as cache:
        watched = Watched(cache)
        watched.index.storage_context.persist(folder)
        watched.engine(1).query(LEAVE)
        killed(url, folder, "persisted", "leave", "annual leave is forty days")
        again = loaded(cache, folder)
        told = again.query(LEAVE)
        assert not report(told)["hit"] and "forty" in told.source_nodes[0].text
        assert is_hit(again)


def test_the_next_write_clears_up_as_well(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'rag.db'}", tmp_path / "index"
    with open_cache(url) as cache:
        watched = Watched(cache)
        watched.index.storage_context.persist(folder)
        engine = watched.engine(1)
        engine.query(LEAVE)
        killed(url, folder, "between", "pets", "dogs must stay outside")
        watched.insert("cats", "cats sleep on the sofa")
        assert is_hit(engine)


def test_an_index_that_is_older_than_what_was_told(tmp_path: Path) -> None:
    """Its last writes were told, and lost with their process, which did not persist them."""
    with open_cache(f"sqlite:///{tmp_path / 'rag.db'}") as cache:
        watched = Watched(cache)
        watched.index.storage_context.persist(tmp_path / "index")
        watched.update("leave", "annual leave is forty days")
        watched.engine(1).query(LEAVE)
        told = loaded(cache, tmp_path / "index").query(LEAVE)
        assert not report(told)["hit"] and "thirty" in told.source_nodes[0].text


FAILING: dict[str, Callable[[Any], None]] = {
    "vectors": lambda w: fail(w.index.vector_store.inner, "add"),
    "texts": lambda w: fail(w.index.docstore.inner, "add_documents"),
}


def fail(owner: Any, name: str) -> None:
    def refuse(*given: Any, **options: Any) -> None:
        raise OSError("the disk is full")

    object.__setattr__(owner, name, refuse)


@pytest.mark.parametrize("what", list(FAILING))
@pytest.mark.parametrize("near", [True, False])
def test_a_write_that_fails_is_the_callers_and_what_landed_is_told(
    cache: Cache, what: str, near: bool
) -> None:
    watched = Watched(cache)
    engine = watched.engine(1)
    engine.query(LEAVE)
    FAILING[what](watched)
    with pytest.raises(OSError, match="the disk is full"):
        watched.insert("more", LEAVE if near else "cats sleep on the sofa")
    assert cache.standing("handbook").intents == ()  # type: ignore[union-attr]  # it is watched
    landed_near = near and what == "texts"
    if not landed_near:
        assert is_hit(engine)
    else:
        with pytest.raises(KeyError):  # as without a cache: the vector is there, its text is not
            engine.query(LEAVE)


class Closed(Exception):
    pass


def test_where_the_cache_cannot_be_told_nothing_is_written(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(cache)

    def refuse(*given: Any, **options: Any) -> None:
        raise StoreError("the cache is down")

    monkeypatch.setattr(cache.core.store.corpora, "begin", refuse)
    with pytest.raises(StoreError, match="the cache is down"):
        watched.insert("cats", "cats sleep on the sofa")
    assert len(watched.index.index_struct.nodes_dict) == len(DOCUMENTS)
    assert not watched.embedding.embedded.count("") and cache.standing("handbook").chunks == 4  # type: ignore[union-attr]  # it is watched


@pytest.mark.parametrize("count", [1, 0])
def test_what_was_written_around_the_watch_is_noticed_when_it_is_opened(
    tmp_path: Path, count: int
) -> None:
    """Also where as many documents are there as before."""
    with open_cache(f"sqlite:///{tmp_path / 'rag.db'}") as cache:
        watched = Watched(cache)
        watched.engine(1).query(LEAVE)
        watched.index.storage_context.persist(tmp_path / "index")
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / "index"))
        bare: Any = load_index_from_storage(context, embed_model=Projected())
        bare.insert_nodes([TextNode(text=LEAVE)])
        if count == 0:
            bare.delete_ref_doc("travel", delete_from_docstore=True)
        context.persist(tmp_path / "index")
        told = loaded(cache, tmp_path / "index").query(LEAVE)
        assert not report(told)["hit"] and told.source_nodes[0].text == LEAVE


def test_what_was_written_around_the_watch_is_noticed_by_a_search_and_a_sweep(
    cache: Cache,
) -> None:
    watched = Watched(cache)
    engine = watched.engine(1)
    engine.query(LEAVE)
    (found,) = watched.retriever(1).retrieve(LEAVE)
    changed = TextNode(text="annual leave is forty days", id_=found.node_id)
    watched.index.docstore.inner.add_documents([changed])  # type: ignore[attr-defined]  # the type says less than the object
    other = "annual leave days"
    engine.query(other)
    (said,) = [c.detail for c in engine.explain(other).outcome.trace if c.step == "watch"]
    assert "a chunk found differs from what the watch knows" in said
    swept = engine.sweep()
    assert len(swept.drifted) == 1 and "written around the watch" in swept.problem
    assert report(engine.query(other))["reason"] == Reason.WATCH_BROKEN.value
    watched.index.resync()  # type: ignore[attr-defined]  # the type says less than the object
    engine.query(LEAVE)
    assert is_hit(engine) and engine.sweep().drifted == ()


async def test_sweeping_and_taking_over_in_tasks(cache: Cache) -> None:
    watched = Watched(cache)
    engine = watched.engine(1)
    await engine.aquery(LEAVE)
    watched.index.vector_store.inner.clear()  # type: ignore[attr-defined]  # the type says less than the object
    assert (await engine.asweep()).problem
    await watched.index.aresync()  # type: ignore[attr-defined]  # the type says less than the object
    assert (await engine.asweep()).checked == 0
    assert cache.standing("handbook").chunks == 0  # type: ignore[union-attr]  # it is watched


def test_who_ingests_needs_no_tenant(tmp_path: Path) -> None:
    with open_cache("memory://", tenants="required") as cache:
        watched = Watched(cache)
        engine = watched.engine(1)
        with stampcache.scope(tenant="acme"):
            engine.query(LEAVE)
        watched.insert("cats", "cats sleep on the sofa")
        with stampcache.scope(tenant="acme"):
            assert is_hit(engine)
        watched.update("leave", "annual leave is forty days")
        with stampcache.scope(tenant="acme"):
            assert not is_hit(engine)
        with stampcache.scope(tenant="globex"):
            assert not is_hit(engine)


def test_silence_stops_hits(clock: FakeClock) -> None:
    with open_cache("memory://", clock=clock) as cache:
        watched = Watched(cache, silence_s=60)
        engine = watched.engine(1)
        engine.query(LEAVE)
        clock.advance(61)
        assert report(engine.query(LEAVE))["reason"] == Reason.WATCH_BROKEN.value
        cache.heard("handbook")
        assert is_hit(engine)
        clock.advance(61)
        watched.insert("cats", "cats sleep on the sofa")
        assert is_hit(engine)


def test_many_write_and_ask_at_once(tmp_path: Path) -> None:
    with open_cache(f"sqlite:///{tmp_path / 'rag.db'}") as cache:
        watched = Watched(cache)
        lock, failed = threading.Lock(), list[BaseException]()

        def write(number: int) -> None:
            try:
                for turn in range(6):
                    with lock:  # the framework's own index is not safe for threads
                        watched.update(f"doc-{number}", f"annual leave days {turn} {number}")
            except BaseException as error:
                failed.append(error)

        def ask() -> None:
            try:
                engine = watched.engine(2)
                for _ in range(10):
                    with lock:
                        told, true = engine.query(LEAVE), watched.plain(2).query(LEAVE)
                    assert str(told) == str(true)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        threads += [threading.Thread(target=ask) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not failed
        assert cache.standing("handbook").intents == ()  # type: ignore[union-attr]  # it is watched


async def test_tasks_write_at_once(cache: Cache) -> None:
    import asyncio

    watched = Watched(cache)
    engine = watched.engine(1)
    engine.query(LEAVE)
    nodes = [[TextNode(text=f"cats {n} sleep", id_=f"n{n}")] for n in range(8)]
    await asyncio.gather(*(watched.index.ainsert_nodes(each) for each in nodes))
    assert is_hit(engine) and cache.standing("handbook").chunks == 12  # type: ignore[union-attr]  # it is watched
    ids = [[f"n{n}"] for n in range(8)]
    await asyncio.gather(*(watched.index.adelete_nodes(each) for each in ids))
    assert is_hit(engine) and cache.standing("handbook").chunks == 4  # type: ignore[union-attr]  # it is watched


def test_an_index_without_a_cache_is_left_as_it_was(cache: Cache) -> None:
    index = VectorStoreIndex.from_documents([], embed_model=Projected())
    before = type(index), index.vector_store
    with pytest.raises(stampcache.ConfigError):
        watch(index, cache=cache, corpus="")
    assert (type(index), index.vector_store) == before
