"""An answer that is being made while a watched index is written: every interleaving, none served late.

A making looks up, searches the index, lets the model write, and stores. A write announces itself, writes
the documents, and tells of them. Both are cut into their single effects, and every order in which
these can follow each other is played, with a reader at every point.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from stampcache import Cache, Evidence, Hit, Reason, Refused, Request, Settings, Stored, open_cache
from stampcache.adapters import Change, Chunk, IndexView, Metric, Reading, Step, Watch
from stampcache.spaces import as_bytes
from tests.test_race import Steps, lookup_of, orders, stepped

CORPUS = "handbook"
QUESTION = as_bytes([1.0, 0.0])


class Index:
    """A vector store of one chunk in versions, and of others that are further away."""

    def __init__(self, corpus: str) -> None:
        self.corpus = corpus
        self.chunks = {"leave": chunk("leave", 1), "far": chunk("far", 1, angle=0.0)}

    def search(self) -> tuple[Reading, Chunk]:
        """Return the nearest chunk, and what the watch hears of that."""
        ranked = sorted(self.chunks.values(), key=lambda one: one.id != "leave")
        first = next((one for one in ranked if one.id in ("new", "leave")), ranked[0])
        if "new" in self.chunks:
            first = self.chunks["new"]
        reading = Reading(
            corpus=self.corpus,
            vector=QUESTION,
            metric=Metric.COSINE,
            chunks=(first.id,),
            digests=(first.digest,),
            wanted=1,
        )
        return reading, first


def chunk(name: str, version: int, *, angle: float = 0.5) -> Chunk:
    return Chunk(
        id=name,
        source=f"{name}.md",
        digest=f"{name} {version}",
        vector=as_bytes([angle, 1.0 - angle]),
    )


WRITES = {
    "changed": Change(added=(chunk("leave", 2),)),
    "added": Change(added=(chunk("new", 1, angle=1.0),)),
    "removed": Change(removed=("leave",)),
    "unknown": Change(unknown=True),
    "far": Change(added=(chunk("far", 2, angle=0.0),)),
}


class Play:
    """One watched index, and a maker, a writer and a reader of it."""

    def __init__(self, maker: Cache, writer: Cache, corpus: str) -> None:
        self.maker, self.writer, self.corpus = maker, writer, corpus
        self.index = Index(corpus)
        self.settings = Settings(model="m", corpus=corpus, watched=True)
        view = IndexView(count=self.told(lambda: len(self.index.chunks)), listing=None)
        self.watch = Watch(writer.core, corpus, view)
        writer.core.store.corpora.declare(corpus, now=0.0, silence_s=None)
        for change in (Change(emptied=True), Change(added=tuple(self.index.chunks.values()))):
            writer.core.store.corpora.commit(corpus, "", change, now=0.0)
        self.since_asked: list[str] = []
        self.stored: list[object] = []
        self.failed: list[str] = []

    @staticmethod
    def told(do: object) -> Step:  # type: ignore[type-arg]  # of whatever it is
        async def aio() -> object:
            return do()  # type: ignore[operator]  # a callable, by the caller

        return Step(sync=do, aio=aio)  # type: ignore[arg-type]  # given as the test has it

    def request(self) -> Request:
        return Request(question=f"What is in {self.corpus}?", settings=self.settings)

    def truth(self) -> str:
        return self.index.search()[1].digest

    def making(self) -> Steps:
        outcome = yield from stepped(self.maker, lookup_of(self.maker, self.request()))
        if isinstance(outcome, Hit):
            if outcome.answer.text not in self.since_asked:
                self.failed.append(f"{outcome.answer.text} is none of {self.since_asked}")
            return
        reading, found = self.index.search()
        yield "searched"
        evidence = Evidence(
            corpus=self.corpus, source=found.source, chunk=found.id, text=found.digest
        )
        fill = self.maker.core.update(
            self.request(), found.digest, outcome, (evidence,), (reading,)
        )
        self.stored.append((yield from stepped(self.maker, fill)))

    def writing(self, change: Change) -> Steps:
        def write() -> None:
            self.index.chunks |= {one.id: one for one in change.added}
            for one in change.removed:
                self.index.chunks.pop(one)
            if change.unknown:
                self.index.chunks["leave"] = chunk("leave", 3)
            self.since_asked.append(self.truth())

        ids = None if change.unknown else [one.id for one in change.added] + [*change.removed]
        flow = self.watch.writing(self.told(write), told=lambda _: change, ids=ids)
        yield from stepped(self.writer, flow)

    def look(self, cache: Cache) -> None:
        outcome = cache.lookup(self.request())
        if isinstance(outcome, Hit) and outcome.answer.text != self.truth():
            self.failed.append(f"{outcome.answer.text} is not {self.truth()}")


class Pair(NamedTuple):
    """A cache that makes answers, and one that is told of writes; they may be one."""

    maker: Cache
    writer: Cache


@pytest.fixture(params=["memory", "two on a file"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/cache.db"
    with open_cache(url, strict=True) as one, open_cache(url, strict=True) as other:
        yield Pair(one, other if request.param == "two on a file" else one)


def some(pair: Pair, every: Iterator[Sequence[bool]]) -> Iterator[Sequence[bool]]:
    """Give all orders for memory, and every seventh for a file, which is slower."""
    return islice(every, 0, None, 1 if pair.maker is pair.writer else 7)


def played(play: Play, order: Sequence[bool], change: Change, *, again: bool) -> None:
    """Play one order; with ``again`` a second making follows the first one."""
    making, writing = play.making(), play.writing(change)
    next(making), next(writing)  # up to their first effects
    asked = False
    for is_write in order:
        if not is_write and not asked:
            asked, play.since_asked = True, [play.truth()]
        next(writing if is_write else making, None)
        for cache in {play.maker, play.writer}:
            play.look(cache)
    for rest in (making, writing):
        for _ in rest:
            play.look(play.writer)
    for _ in play.making() if again else ():
        play.look(play.maker)
    play.look(play.maker)
    assert not play.failed, order


@pytest.mark.parametrize("write", WRITES)
def test_no_order_of_a_making_and_a_write_lets_an_old_answer_be_served(
    pair: Pair, write: str
) -> None:
    kinds: list[object] = []
    for number, order in enumerate(some(pair, orders(7, 4))):
        play = Play(pair.maker, pair.writer, f"{CORPUS} {number}")
        played(play, order, WRITES[write], again=False)
        kinds += play.stored
    reasons = {done.reason for done in kinds if isinstance(done, Refused)}
    assert reasons == {Reason.FENCED}
    assert any(isinstance(done, Stored) for done in kinds)


@pytest.mark.parametrize("write", WRITES)
def test_no_order_of_a_hit_and_a_write_serves_what_was_old_when_it_was_asked(
    pair: Pair, write: str
) -> None:
    for number, order in enumerate(some(pair, orders(3, 4))):
        play = Play(pair.maker, pair.writer, f"{CORPUS} {number}")
        list(play.making())
        assert isinstance(play.stored[0], Stored)
        play.stored.clear()
        played(play, order, WRITES[write], again=True)
