"""Pairs of questions on their way to a label, and on which shelves they are kept (pure; ADR 0024).

A lookup by meaning ends with one pair: what was asked, and the best candidate for it. Some of them,
drawn at random, are kept until a judge or a person says whether both are the same question. From those
labels a threshold is proved, and by them a promise is watched.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from stampcache import canonical
from stampcache.calibration import Labelled, Monitor, Promise, Promises, Subject
from stampcache.shelf import Record

WAITING, LABELS, PROMISES, MONITORS = "pairs", "labels", "promises", "monitors"
WAITING_KEPT, LABELS_KEPT, PROMISES_KEPT = 10_000, 50_000, 256
Kind = TypeVar("Kind")


class Pair(Struct, frozen=True, kw_only=True, gc=False):
    """An asked question and the best candidate for it, as they were when it was asked.

    ``score`` is the decider's, ``None`` where a guard vetoes every candidate. ``sampled`` pairs were
    drawn at random; the others were noted because the decider was in doubt, or a user reported them.
    ``attempts`` to have it labelled have failed.
    """

    asked: str
    stored: str
    score: float | None
    similarity: float
    subject: Subject
    entry_id: str
    tenant: str
    at: float
    sampled: bool
    served: bool
    attempts: int = 0

    @property
    def key(self) -> str:
        """What tells it apart from others: the two texts, and whose they are."""
        parts = [canonical.encode(part) for part in (self.tenant, self.asked, self.stored)]
        return canonical.digest(parts, person=b"pair")

    def labelled(self, *, same: bool, labeller: str, at: float, sampled: bool) -> Labelled:
        """Return it with a label."""
        return Labelled(
            asked=self.asked,
            stored=self.stored,
            same=same,
            score=self.score,
            similarity=self.similarity,
            labeller=labeller,
            at=at,
            subject=self.subject,
            sampled=sampled,
        )


def waiting(pairs: Iterable[Pair]) -> Sequence[Record]:
    """Return pairs as records of the shelf `WAITING`."""
    return [
        Record(key=one.key, body=msgspec.msgpack.encode(one), tenant=one.tenant, entry=one.entry_id)
        for one in pairs
    ]


def pairs_of(records: Iterable[Record]) -> Sequence[Pair]:
    """Return the pairs in records; one that another version wrote and nobody can read is left out."""
    return [one for record in records if (one := _decoded(record.body, Pair)) is not None]


def label_record(pair: Pair, label: Labelled) -> Record:
    """Return a label as a record of the shelf `LABELS`; a pair has one of each labeller."""
    parts = [canonical.encode(part) for part in (pair.key, label.labeller)]
    key = canonical.digest(parts, person=b"label")
    body = msgspec.msgpack.encode(label)
    return Record(key=key, body=body, tenant=pair.tenant, entry=pair.entry_id)


def labels_of(records: Iterable[Record]) -> Sequence[Labelled]:
    """Return the labels in records, as `pairs_of`."""
    return [one for record in records if (one := _decoded(record.body, Labelled)) is not None]


def promise_record(promise: Promise) -> Record:
    """Return a promise as a record of the shelf `PROMISES`: no question is in it."""
    about = (*astuple(promise.subject), promise.max_wrong)
    key = canonical.digest([canonical.encode(str(part)) for part in about], person=b"promise")
    return Record(key=key, body=msgspec.msgpack.encode(promise))


def withdrawal_record(digest: str, why: str) -> Record:
    """Return, as a record of the same shelf, that what rests on some labels no longer counts.

    It stands beside the promise and not in its place, so that no two writers undo each other's word.
    """
    return Record(key=f"withdrawn:{digest}", body=msgspec.msgpack.encode(_Withdrawn(digest, why)))


def promises_of(records: Iterable[Record]) -> Promises:
    """Return the promises in the records of the shelf, and which of them were withdrawn."""
    kept, withdrawn = [], {}
    for record in records:
        if record.key.startswith("withdrawn:"):
            gone = _decoded(record.body, _Withdrawn)
            withdrawn.update({} if gone is None else {gone.digest: gone.why})
        elif (promise := _decoded(record.body, Promise)) is not None:
            kept.append(promise)
    return Promises(tuple(kept), withdrawn)


class _Withdrawn(Struct, frozen=True):
    digest: str
    why: str


def monitor_record(monitor: Monitor) -> Record:
    """Return what was seen of a promise as a record of the shelf `MONITORS`."""
    return Record(
        key=f"{monitor.digest}:{monitor.max_wrong!r}", body=msgspec.msgpack.encode(monitor)
    )


def monitors_of(records: Iterable[Record]) -> Sequence[Monitor]:
    """Return the monitors in records, as `pairs_of`."""
    return [one for record in records if (one := _decoded(record.body, Monitor)) is not None]


def _decoded(body: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None
