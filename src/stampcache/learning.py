"""What a cache learns of its hits by meaning: labels of pairs, and what is promised (ADR 0024)."""

from collections import Counter

from stampcache import flows, pairs
from stampcache.calibration import Promise, Refusal
from stampcache.drivers import Ports, run
from stampcache.effects import Flow, Keep, Note
from stampcache.errors import StoreError
from stampcache.intake import Intake
from stampcache.judging import PairJudge, as_model
from stampcache.noticed import Noticed
from stampcache.outcome import Miss
from stampcache.ports import EquivalenceJudge
from stampcache.request import Request
from stampcache.telemetry import Counters

DEADLINES_PER_BATCH = 3.0
"""Off the path a batch of pairs may take the judge so many times as long as one verdict may."""


class Learning:
    """The pairs that one process has noticed, and who labels them; safe for threads and tasks."""

    def __init__(self, intake: Intake, counters: Counters, model: object) -> None:
        """``model`` is what the user passed as a judge, or ``None``."""
        self._intake = intake
        self._counters = counters
        self.noticed = Noticed()
        self.judge = self._judge(model)

    def _judge(self, model: object) -> EquivalenceJudge | None:
        """Return who says whether two questions are the same: the same model, with an own budget."""
        rules = self._intake.terms.rules
        fresh = rules.freshness
        if model is None or fresh is None or rules.proof is None:
            return None
        return PairJudge(
            as_model(model),
            deadline_s=fresh.deadline_s * (1.0 if rules.proof.consult else DEADLINES_PER_BATCH),
            calls_per_minute=fresh.calls_per_minute,
            now=self._intake.now,
            event=self._counters.event,
        )

    def look_at(self, ports: Ports) -> None:
        """Keep what was noticed, and see how large the store is by now; a failure is counted."""
        if self._intake.terms.rules.proof is None:
            return
        try:
            run(self._keep_noticed(), ports)
            self._intake.entries = ports.store.stats().entries
        except StoreError as error:
            self._counters.note("labels", error)

    def labelled(self, limit: int, counts: "Counter[str]") -> Flow[None]:
        """Have pairs labelled until none waits, the budget is spent, or the judge fails."""
        left = limit
        try:
            yield from self._keep_noticed()
            while self.judge is not None and left > 0 and self.judge.may_ask():
                done = yield from flows.compared(self.judge.name, self._intake.now(), left)
                counts["same"] += done.same
                counts["not_same"] += done.not_same
                counts["unlabelled"] += done.failed
                counts["withdrawn"] += done.withdrawn
                left -= flows.BATCH
                if done.failed or not done.same + done.not_same:
                    return
        except StoreError as error:
            yield from Note("labels", error)

    def _keep_noticed(self) -> Flow[None]:
        """Keep what lookups have noticed in the store, where a judge or a person finds it."""
        waiting = pairs.waiting(self.noticed.take())
        if waiting:
            yield from Keep(pairs.WAITING, waiting, pairs.WAITING_KEPT)

    def report(self, entry_id: str, *, same: bool) -> Flow[bool]:
        """Take what a user says of an entry that was served by meaning; a bad one is deleted.

        Returns whether the entry was there, or for a good one whether it is known to what it was served:
        where that were several questions, nobody knows which one was answered well.
        """
        served = self.noticed.served(entry_id)
        if same and len(served) > 1:
            return False
        try:  # before it is deleted: of an entry that is gone nothing is kept
            if not same:
                yield from self._keep_noticed()
            now = self._intake.now()
            yield from flows.reported(served, same=same, now=now, entry_id=entry_id)
        except StoreError as error:
            yield from Note("labels", error)
        return bool(served) if same else (yield from flows.report_bad(entry_id))

    def promise(self) -> Flow[Promise | Refusal | None]:
        """Return what is promised in the scope in force of hits by meaning, or why nothing is."""
        ask = self._intake.ask(Request(question="?"), can_retrieve=False, record=False)
        proof = self._intake.terms.rules.proof
        if isinstance(ask, Miss) or proof is None or proof.max_wrong is None:
            return None
        return (yield from flows.promised(ask, proof.max_wrong))
