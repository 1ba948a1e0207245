"""Pairs of questions on their way to a label, and on which shelves they are kept (pure; ADR 0024).

A lookup by meaning ends with one pair: what was asked, and the best candidate for it. Some of them,
drawn at random, are kept until a judge or a person says whether both are the same question. From those
labels a threshold is proved, and by them a promise is watched.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from stampcache import canonical
from stampcache.calibration import Labelled, Monitor, Promises, Subject
from stampcache.shelf import Record

WAITING, LABELS, PROMISES, MONITORS = "pairs", "labels", "promises", "monitors"
WAITING_KEPT, LABELS_KEPT = 10_000, 50_000
_ONE = "all"
Kind = TypeVar("Kind")


class Pair(Struct, frozen=True, kw_only=True, gc=False):
    """An asked question and the best candidate for it, as they were when it was asked.

    ``score`` is the decider's, ``None`` where a guard vetoes every candidate. ``sampled`` pairs were
    drawn at random; the others were noted because the decider was in doubt, or a user reported them.
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
        Record(key=one.key, body=msgspec.msgpack.encode(one), tenant=one.tenant) for one in pairs
    ]


def pairs_of(records: Iterable[Record]) -> Sequence[Pair]:
    """Return the pairs in records; one that another version wrote and nobody can read is left out."""
    return [one for record in records if (one := _decoded(record.body, Pair)) is not None]


def label_record(pair: Pair, label: Labelled) -> Record:
    """Return a label as a record of the shelf `LABELS`; a pair has one of each labeller."""
    parts = [canonical.encode(part) for part in (pair.key, label.labeller)]
    key = canonical.digest(parts, person=b"label")
    return Record(key=key, body=msgspec.msgpack.encode(label), tenant=pair.tenant)


def labels_of(records: Iterable[Record]) -> Sequence[Labelled]:
    """Return the labels in records, as `pairs_of`."""
    return [one for record in records if (one := _decoded(record.body, Labelled)) is not None]


def promises_record(promises: Promises) -> Record:
    """Return all promises as the one record of the shelf `PROMISES`: no question is in them."""
    return Record(key=_ONE, body=msgspec.msgpack.encode(promises))


def promises_of(records: Sequence[Record]) -> Promises:
    """Return the promises in the record of the shelf; none where it has none that can be read."""
    known = _decoded(records[0].body, Promises) if records else None
    return known or Promises()


def monitor_record(monitor: Monitor) -> Record:
    """Return what was seen of a promise as a record of the shelf `MONITORS`."""
    return Record(key=monitor.digest, body=msgspec.msgpack.encode(monitor))


def monitors_of(records: Iterable[Record]) -> Sequence[Monitor]:
    """Return the monitors in records, as `pairs_of`."""
    return [one for record in records if (one := _decoded(record.body, Monitor)) is not None]


def _decoded(body: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None
