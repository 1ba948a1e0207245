"""A cache in which answers age, for the tests of freshness."""

from collections.abc import Callable
from typing import Any

from stampcache import Answer, Cache, Evidence, Freshness, Hit, Request, Stored, scope
from stampcache.due import DueEntry
from stampcache.model import Entry
from stampcache.outcome import Miss
from stampcache.testing import FakeClock, ScriptedJudge
from stampcache.ttl import HOUR_S
from tests.faces import Face, Open

FRESH = '{"fresh": true, "reason": "it names no date"}'
GONE = '{"fresh": false, "reason": "prices change"}'
ASKED = Request(question="What is a map?", corpus="c")
CITED = (Evidence(corpus="c", source="a.md", chunk="1", text="a map maps"),)
HOURS = 10.0
DOUBT_S = 0.22314355131420976 * HOURS * HOUR_S
"""When an answer that lives ten hours is doubted, at a limit of 0.2, if nothing was seen."""


class Aging:
    """A cache in which answers of no kind live ten hours, and its clock."""

    def __init__(self, open_face: Open, *replies: str | Exception, **settings: Any) -> None:
        given = {"limit": 0.2, "grace_s": 60.0, "beta": 0.0, "deadline_s": 30.0}
        options = settings.pop("options", {})
        self.clock = FakeClock()
        self.judge = ScriptedJudge(replies)
        self.freshness = Freshness(**{**given, **settings})
        self._open = open_face
        self._options = {
            "judge": self.judge if replies else None,
            "freshness": self.freshness,
            "ttl_s": HOURS * HOUR_S,
            "clock": self.clock,
            **options,
        }
        self.face: Face = self.open()

    def open(self, **options: Any) -> Face:
        """Open it once more, otherwise."""
        return self._open(**{**self._options, **options})

    def fill(self, answer: Answer | str = "answer", *, request: Request = ASKED) -> Entry:
        """Look up, miss and update as an application does."""
        outcome = self.face.lookup(request)
        assert not isinstance(outcome, Hit)
        done = self.face.update(request, answer, outcome=outcome, evidence=CITED)
        assert isinstance(done, Stored)
        return done.entry

    def entry(self, request: Request = ASKED) -> Entry:
        """Return the entry of a question, whether it holds or not."""
        outcome = self.face.explain(request).outcome
        assert not isinstance(outcome, Miss)
        return outcome.entry

    def served(self) -> bool:
        """Ask the one question; tell whether that was a hit."""
        return isinstance(self.face.lookup(ASKED), Hit)

    def refresh(self, text: str = "anew") -> Callable[[DueEntry], object]:
        """Return an application that makes an answer anew, told ``no_cache``."""
        cache = self.face.core

        def made(due: DueEntry) -> object:
            with scope(tenant=due.scope.tenant, no_cache=True):
                sync = Cache.on(cache)
                request = Request(question=due.entry.question, corpus="c")
                return sync.update(request, text, outcome=sync.lookup(request), evidence=CITED)

        return made
