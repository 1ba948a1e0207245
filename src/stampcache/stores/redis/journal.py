"""The journal of a Redis store: observed changes of sources, and verdicts on entries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stampcache.freshness import ONE_CHANGE_S, Observed, together
from stampcache.journal import Observation, Verdict
from stampcache.model import Entry
from stampcache.stores.redis import records
from stampcache.stores.redis.asking import Command, Run, Verb
from stampcache.stores.redis.listing import DueList
from stampcache.stores.redis.names import pair
from stampcache.stores.redis.secrets import Facts
from stampcache.stores.redis.verbs import Verbs

VERDICTS_KEPT = 10_000
_VERDICT = msgspec.msgpack.Decoder(Verdict)


class RedisJournal(DueList):
    """Journal in the keys of a Redis store."""

    def __init__(self, run: Callable[[Verb[Any]], Any], verbs: Verbs, facts: Facts) -> None:
        super().__init__(run, facts)
        self._verbs = verbs

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """See `Journal.observe`."""
        words: list[str | bytes] = [records.number(now), records.number(ONE_CHANGE_S)]
        for one in observations:
            compared, announced = _names(one.corpus, one.source)
            words += [compared, announced, str(int(one.changed)), records.number(one.seconds)]
        if observations:
            self._run(_asked(Run("observe", tuple(words), once=True)))

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        found = {}
        for source in dict.fromkeys(sources):
            names = [
                name for where in dict.fromkeys((corpus, "")) for name in _names(where, source)
            ]
            fields = tuple(name + part for name in names for part in (b"#n", b"#s"))
            raw = self._run(_asked(Command("HMGET", b"observed", fields)))
            seen = list(_seen(raw))
            if seen:
                found[source] = together(seen)
        return found

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> bool:
        """See `Journal.confirm`."""
        return bool(self._run(self._verbs.confirm(entry, at, doubtful_at)))

    def judged(self, verdict: Verdict) -> None:
        """See `Journal.judged`."""
        self._run(self._judged(verdict))

    def _judged(self, verdict: Verdict) -> Verb[None]:
        keeper = yield from self._facts.keeper()
        body = keeper.close(records.pack(verdict), "verdict")
        yield Run("judged", (verdict.entry_id, verdict.tenant, body, VERDICTS_KEPT))

    def verdict(self, entry_id: str) -> Verdict | None:
        """See `Journal.verdict`."""
        found: Verdict | None = self._run(self._verdict(entry_id))
        return found

    def _verdict(self, entry_id: str) -> Verb[Verdict | None]:
        keeper = yield from self._facts.keeper()
        raw = yield Run("verdict", (entry_id,))
        return _VERDICT.decode(keeper.open(raw, "verdict")) if raw else None

    def verdicts(self, count: int) -> Sequence[Verdict]:
        """See `Journal.verdicts`."""
        if count < 1:
            return []
        found: Sequence[Verdict] = self._run(self._verdicts(count))
        return found

    def _verdicts(self, count: int) -> Verb[Sequence[Verdict]]:
        keeper = yield from self._facts.keeper()
        raw = yield Run("verdicts", (count,))
        return [_VERDICT.decode(keeper.open(one, "verdict")) for one in raw]


def _asked(ask: Run | Command) -> Verb[Any]:
    return (yield ask)


def _names(corpus: str, source: str) -> tuple[bytes, bytes]:
    place = pair(corpus, source)
    return b"c" + place, b"a" + place


def _seen(raw: Sequence[bytes | None]) -> Iterator[Observed]:
    """Yield what was seen, by turns of what was compared and what was announced."""
    for at, (changes, seconds) in enumerate(zip(raw[::2], raw[1::2], strict=True)):
        if changes is not None and seconds is not None:
            counted = (int(changes), float(seconds))
            yield Observed(0, 0.0, *counted) if at % 2 else Observed(*counted)
