"""Random histories of writes and questions: a hit always says what the index would give now."""

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from lc_watching import CORPUS, SIZE, STORES, Asking, faiss_store, in_memory, watched

from langchain_stampcache import watch
from stampcache import Hit, open_cache

WORDS = ["leave", "travel", "train", "lunch", "dogs", "friday", "paid"]
NAMES = ["a", "b", "c", "d", "e", "f"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
spaces = st.sampled_from([" ", "  ", "\n"])
page = st.tuples(st.sampled_from(NAMES), texts, spaces, st.integers(0, 1))
steps = st.one_of(
    st.tuples(st.just("write"), st.lists(page, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=2)),
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("again"), st.none()),
    st.tuples(st.just("around"), page),
)
MADE: dict[str, Callable[[], Any]] = {"in_memory": in_memory}
if "chroma" in STORES:
    MADE["chroma"] = STORES["chroma"]
if "faiss" in STORES:
    import faiss

    MADE["l2"] = lambda: faiss_store(index=faiss.IndexFlatL2(SIZE))
    MADE["dot"] = lambda: faiss_store(index=faiss.IndexFlatIP(SIZE))
    MADE["unit"] = lambda: faiss_store(index=faiss.IndexFlatL2(SIZE), normalize_L2=True)


class History:
    """A watched store that is written to, and two applications that ask it."""

    def __init__(self, cache: Any, made: str, *, asynchronous: bool) -> None:
        self.cache = cache
        self.asynchronous = asynchronous
        self.there: set[str] = set()
        self.store = watched(cache, MADE[made]())
        few = {"k": 2}
        above = {"k": 3, "score_threshold": 2.0} if made in ("l2", "unit") else {"k": 3}
        self.applications = [Asking(cache, self.store, **few), Asking(cache, self.store, **above)]

    def do(self, step: str, what: Any) -> None:
        getattr(self, step)(what)
        for asking in self.applications:
            for question in WORDS[:3]:
                self.check(asking, question)

    def write(self, pages: list[Any]) -> None:
        given = {name: self.page(name, *rest) for name, *rest in pages}
        if "FAISS" in type(self.store.inner).__name__:  # which knows no upsert
            self.delete(list(given))
        documents = list(given.values())
        if self.asynchronous:
            asyncio.run(self.store.aadd_documents(documents))
        else:
            self.store.add_documents(documents)
        self.there |= given.keys()

    def delete(self, names: list[str]) -> None:
        gone = sorted(self.there.intersection(names))
        if gone and self.asynchronous:
            asyncio.run(self.store.adelete(gone))
        elif gone:
            self.store.delete(gone)
        self.there -= set(gone)

    def ask(self, question: str) -> None:
        for asking in self.applications:
            self.check(asking, question)

    def again(self, _: None) -> None:
        """Open the watch once more, as another process does."""
        watch(self.store.inner, cache=self.cache, corpus=CORPUS)

    def around(self, page: Any) -> None:
        """Write around the watch, and say so."""
        name, *rest = page
        if name not in self.there:
            self.store.inner.add_documents([self.page(name, *rest)])
            self.there.add(name)
            self.store.resync()

    def page(self, name: str, text: str, space: str, run: int) -> Document:
        metadata = {"source": f"{name}.md", "ingested_at": run}
        return Document(text.replace(" ", space), id=name, metadata=metadata)

    def check(self, asking: Asking, question: str) -> None:
        outcome = asking.ask(question)
        if isinstance(outcome, Hit):
            now = asking.said(asking.find(question)).text
            assert outcome.answer.text.split() == now.split()


@pytest.mark.parametrize("made", MADE)
@given(history=st.lists(steps, min_size=1, max_size=10), asynchronous=st.booleans())
@settings(max_examples=25)
def test_a_hit_says_what_the_index_gives_now(
    made: str, history: list[Any], asynchronous: bool
) -> None:
    with warnings.catch_warnings(), open_cache("memory://") as cache:
        warnings.simplefilter("ignore")
        running = History(cache, made, asynchronous=asynchronous)
        for step, what in history:
            running.do(step, what)
        standing = cache.standing(CORPUS)
        assert standing is not None
        assert standing.intents == ()
        assert standing.chunks == len(running.there)


def test_histories_do_hit(tmp_path: Any) -> None:
    """What the test above checks is not empty: most answers are kept by writes elsewhere."""
    with open_cache(f"sqlite:///{tmp_path}/cache.db") as cache:
        running = History(cache, "in_memory", asynchronous=False)
        running.write(
            [("a", "leave leave", " ", 0), ("b", "leave", " ", 0), ("c", "train", " ", 0)]
        )
        asking = running.applications[0]
        asking.ask("leave leave dogs")
        running.write([("d", "lunch friday", " ", 0)])
        running.write([("a", "leave leave", "\n", 1)])
        assert isinstance(asking.ask("leave leave dogs"), Hit)
