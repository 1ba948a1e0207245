"""Writers that die, write from another process, or go around the watch."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from lc_watching import CORPUS, STORES, Asking, Words, in_memory, watched

from langchain_stampcache import watch
from stampcache import Cache, Hit, Miss, Reason, Stale, open_cache

PAGES = {
    "travel": "travel by train is paid in full",
    "lunch": "lunch in the canteen costs four euros",
}
CHANGED = "travel by train is not paid any more"

WRITER = '''
import os, signal, sys
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watching import CORPUS, Words
from langchain_stampcache import watch
from stampcache import open_cache

url, path, dies = sys.argv[1:]

class Kept(InMemoryVectorStore):
    """A store in a file, which kills its process before or after it has written."""

    def add_documents(self, documents, ids=None, **kwargs):
        if dies == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = super().add_documents(documents, ids)
        self.dump(path)
        if dies == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

store = Kept.load(path, Words())
with open_cache(url, tenants="required") as cache:
    watch(store, cache=cache, corpus=CORPUS, metric="cosine").add_documents(
        [Document("travel by train is not paid any more", id="travel", metadata={"source": "t.md"})]
    )
'''


class Shared:
    """An index in a file, and a cache beside it, that processes share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/cache.db"
        self.path = str(folder / "index.json")
        self.cache = open_cache(self.url)
        store = in_memory()
        self.store = watched(self.cache, store)
        self.store.add_documents(
            [
                Document(text, id=name, metadata={"source": f"{name}.md"})
                for name, text in PAGES.items()
            ]
        )
        store.dump(self.path)
        self.asking = Asking(self.cache, self.store, k=1)
        for question in ("travel by train", "lunch in the canteen"):
            assert isinstance(self.asking.ask(question), Miss)
            assert isinstance(self.asking.ask(question), Hit)

    def write(self, dies: str = "never") -> int:
        """Let another process write; return how it ended."""
        script = self.folder / "writer.py"
        script.write_text(WRITER)
        here = Path(__file__).parent
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(script), self.url, self.path, dies],
            env={"PYTHONPATH": ":".join([str(here), *sys.path]), "PATH": ""},
            check=False,
            capture_output=True,
            timeout=120,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        return done.returncode

    def reload(self) -> None:
        """See what the other process has written to the index."""
        inner = type(self.store.inner).load(self.path, Words())
        self.store.inner.store.clear()
        self.store.inner.store.update(inner.store)

    def look(self, question: str) -> Any:
        return self.cache.lookup(self.asking.request(question))


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    made = Shared(tmp_path)
    yield made
    made.cache.close()


def test_ingestion_in_another_process_without_a_tenant_ends_answers(shared: Shared) -> None:
    assert shared.write() == 0
    assert isinstance(shared.look("travel by train"), Stale)
    assert isinstance(shared.look("lunch in the canteen"), Hit)
    shared.reload()
    shared.asking.ask("travel by train")
    hit = shared.asking.ask("travel by train")
    assert isinstance(hit, Hit)
    assert hit.answer.text == CHANGED


@pytest.mark.parametrize("dies", ["before", "after"])
@pytest.mark.parametrize("resolve", ["write", "watch"])
def test_a_writer_that_was_killed_blocks_hits_until_it_is_found_out(
    shared: Shared, dies: str, resolve: str
) -> None:
    assert shared.write(dies) == -signal.SIGKILL
    for question in ("travel by train", "lunch in the canteen"):
        assert shared.look(question).reason is Reason.BEING_WRITTEN
    shared.reload()
    if resolve == "write":
        shared.store.add_documents([Document("dogs may come", id="pets")])
    else:
        watch(shared.store.inner, cache=shared.cache, corpus=CORPUS)
    landed = dies == "after"
    assert isinstance(shared.look("travel by train"), Stale if landed else Hit)
    assert isinstance(shared.look("lunch in the canteen"), Hit)
    assert shared.cache.standing(CORPUS).intents == ()  # type: ignore[union-attr]  # it is watched


# -- around the watch ------------------------------------------------------------------------------


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, opened: Cache) -> Iterator[Any]:
    found = watched(opened, STORES[request.param]())
    found.add_texts(list(PAGES.values()), [{"source": one} for one in PAGES], ids=list(PAGES))
    yield found
    if request.param == "chroma":
        found.inner.delete_collection()


def test_what_was_written_around_the_watch_is_seen_when_it_is_opened(
    store: Any, opened: Cache
) -> None:
    asking = Asking(opened, store, k=1)
    asking.ask("travel by train")
    asking.ask("lunch in the canteen")
    store.inner.add_texts(["travel by train"], [{"source": "new"}], ids=["new"])
    assert isinstance(asking.ask("travel by train"), Hit)  # nobody can know yet
    again = watch(store.inner, cache=opened, corpus=CORPUS)
    assert isinstance(asking.ask("travel by train"), Stale)
    assert isinstance(asking.ask("lunch in the canteen"), Hit)
    assert again.standing().chunks == 3  # type: ignore[union-attr]  # it is watched


def test_a_search_that_finds_what_is_not_known_is_not_trusted(store: Any, opened: Cache) -> None:
    store.inner.add_texts(["travel by train"], [{"source": "new"}], ids=["new"])
    asking = Asking(opened, store, k=1)
    asking.ask("travel by train")
    assert isinstance(asking.ask("travel by train"), Hit)
    (problem,) = store.problems()
    assert "written to around the watch: 1 chunks unknown" in problem
    store.add_texts(["dogs may come"], [{"source": "dogs"}], ids=["dogs"])
    assert isinstance(asking.ask("travel by train"), Stale)


def test_what_was_there_before_the_watch_is_taken_over(opened: Cache) -> None:
    inner = in_memory()
    inner.add_texts(list(PAGES.values()), ids=list(PAGES))
    asking = Asking(opened, watched(opened, inner), k=1)
    asking.ask("travel by train")
    asking.store.add_texts(["dogs may come"], ids=["dogs"])
    assert isinstance(asking.ask("travel by train"), Hit)


def test_resync_takes_over_exactly_what_is_there(store: Any, opened: Cache) -> None:
    asking = Asking(opened, store, k=1)
    asking.ask("travel by train")
    asking.ask("lunch in the canteen")
    store.inner.delete(["travel"])
    assert store.resync().stale == 1
    assert isinstance(asking.ask("lunch in the canteen"), Hit)
    store.inner.add_texts([PAGES["travel"]], [{"source": "travel"}], ids=["travel"])
    assert store.resync().restored == 1
    assert isinstance(opened.lookup(asking.request("travel by train")), Hit)


async def test_resync_async(store: Any, opened: Cache) -> None:
    asking = Asking(opened, store, k=1)
    asking.ask("travel by train")
    store.inner.delete(["travel"])
    assert len(await store.aproblems()) == 1
    assert (await store.aresync()).stale == 1
    assert await store.aproblems() == []


def test_a_listing_of_the_users_own_is_taken_over(opened: Cache) -> None:
    class Other(type(in_memory())):  # type: ignore[misc]  # a class known when it runs
        """A store that nobody knows to list."""

    def listing() -> list[Document]:
        return [
            Document(one["text"], id=one["id"], metadata=one["metadata"])
            for one in list(inner.store.values())
        ]

    inner = Other(Words())
    store = watch(inner, cache=opened, corpus=CORPUS, metric="cosine", listing=listing)
    store.add_texts(list(PAGES.values()), ids=list(PAGES))
    asking = Asking(opened, store, k=1)
    asking.ask("travel by train")
    asking.ask("lunch in the canteen")
    inner.delete(["lunch"])
    assert store.resync().stale == 1
    assert isinstance(asking.ask("travel by train"), Hit)
