"""An answer that is being made while its document changes: every interleaving, none served late.

A making looks up, reads the document, lets the model write, and stores. A change writes the document
and then announces it. Both are cut into their single effects, and every order in which these can
follow each other is played, with a reader at every point.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stampcache import Cache, Evidence, Hit, Reason, Refused, Request, Settings, Stored, open_cache
from stampcache.drivers import run
from stampcache.effects import Effect, Flow
from stampcache.flows import Ask
from stampcache.outcome import Outcome

CORPUS = "handbook"
Steps = Iterator[object]


class Play:
    """One document in versions, a maker and a changer on caches of their own, and a reader."""

    def __init__(
        self, maker: Cache, changer: Cache, *, grounding: str, source: str = "leave.md"
    ) -> None:
        self.maker, self.changer, self.grounding = maker, changer, grounding
        self.source = source
        self.version = 1
        self.announced = 1
        self.stored: list[object] = []
        whole = grounding == "corpus"
        self.settings = Settings(model="m", corpus=CORPUS, whole_corpus=whole)

    def evidence(self) -> tuple[Evidence, ...]:
        return (Evidence(corpus=CORPUS, source=self.source, text=f"version {self.version}"),)

    def request(self) -> Request:
        found = self.evidence() if self.grounding == "recheck" else None
        return Request(
            question=f"What is in {self.source}?", settings=self.settings, evidence=found
        )

    def making(self) -> Steps:
        request = self.request()  # under recheck the document is read before the lookup
        yield "retrieved"
        outcome = yield from stepped(self.maker, lookup_of(self.maker, request))
        if isinstance(outcome, Hit):
            return
        evidence = request.evidence or self.evidence()
        yield "read"
        answer = f"made of {evidence[0].text}" if evidence[0].text else ""
        yield "written"
        done = yield from stepped(
            self.maker, self.maker.core.update(request, answer, outcome, evidence)
        )
        self.stored.append(done)

    def changing(self) -> Steps:
        self.version += 1
        yield "document written"
        from_now = self.changer.invalidate(corpus=CORPUS, source=self.source)
        self.announced = self.version
        yield from_now

    def look(self, cache: Cache) -> None:
        outcome = cache.lookup(self.request())
        if isinstance(outcome, Hit):
            least = self.version if self.grounding == "recheck" else self.announced
            assert int(outcome.answer.text.rpartition(" ")[2]) >= least, outcome


def lookup_of(cache: Cache, request: Request) -> Flow[Outcome]:
    ask = cache.core.intake.ask(request, can_retrieve=False)
    assert isinstance(ask, Ask)
    return cache.core.lookup_now(ask)


def stepped(cache: Cache, flow: Flow[Any]) -> Iterator[Any]:
    """Carry out a flow one effect at a time, pausing before each."""
    ports = cache.core.ports
    try:
        effect = next(flow)
        while True:
            yield type(effect).__name__
            effect = flow.send(run(_one(effect), ports))
    except StopIteration as end:
        return end.value


def _one(effect: Effect[Any]) -> Flow[Any]:
    return (yield from effect)


def orders(steps: int, changes: int) -> Iterator[Sequence[bool]]:
    """Return every order of so many steps of a making and of a change; true is a change."""
    for chosen in combinations(range(steps + changes), changes):
        yield [at in chosen for at in range(steps + changes)]


class Pair(NamedTuple):
    """A cache that makes answers, and one that is told of changes; they may be one."""

    maker: Cache
    changer: Cache


@pytest.fixture(params=["memory", "one file", "two on a file"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/cache.db"
    with open_cache(url, strict=True) as one, open_cache(url, strict=True) as other:
        yield Pair(one, other if request.param == "two on a file" else one)


@pytest.mark.parametrize("grounding", ["recheck", "sources", "corpus"])
@pytest.mark.parametrize("changes", [1, 2])
def test_f7_no_order_lets_an_old_answer_be_served(pair: Pair, grounding: str, changes: int) -> None:
    refused, (maker, changer) = 0, pair
    for number, order in enumerate(orders(7, 2 * changes)):
        play = Play(maker, changer, grounding=grounding, source=f"{number}.md")
        making, changing = play.making(), iter(())
        for is_change in order:
            if is_change:
                if next(changing, None) is None:
                    changing = play.changing()
                    next(changing)
            else:
                next(making, None)
            play.look(maker)
            play.look(changer)
        for _ in making:
            play.look(changer)
        for _ in changing:
            play.look(maker)
        play.look(maker)
        play.look(changer)
        refused += sum(isinstance(done, Refused) for done in play.stored)
    assert refused > 0


@pytest.mark.parametrize("grounding", ["sources", "corpus"])
def test_f7_a_change_elsewhere_starves_nobody(pair: Pair, grounding: str) -> None:
    maker, changer = pair
    play = Play(maker, changer, grounding=grounding)
    making = play.making()
    for _ in range(4):
        next(making)
        changer.invalidate(corpus=CORPUS, source="travel.md")
        changer.invalidate(corpus="other")
    for _ in making:
        changer.invalidate(corpus=CORPUS, source="travel.md")
    kind = Refused if grounding == "corpus" else Stored
    assert [type(done) for done in play.stored] == [kind]


def test_f7_a_change_by_another_process_refuses_the_late_answer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cache.db"
    with open_cache(url, strict=True) as cache:
        play = Play(cache, cache, grounding="sources")
        outcome = cache.lookup(play.request())
        script = "import sys, stampcache; c = stampcache.open_cache(sys.argv[1]);"
        script += f"c.invalidate(corpus={CORPUS!r}, source={play.source!r}); c.close()"
        subprocess.run([sys.executable, "-c", script, url], check=True, timeout=60)
        late = cache.update(play.request(), "old", outcome=outcome, evidence=play.evidence())
        assert isinstance(late, Refused)
        assert late.reason is Reason.FENCED
        assert late.detail == "while it was made: source 'leave.md' of corpus 'handbook' changed"
