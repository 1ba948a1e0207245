"""Pairs of questions on their way to a label, and on which shelves they are kept (pure; ADR 0024).

A lookup by meaning ends with one pair: what was asked, and the best candidate for it. Some of them,
drawn at random, are kept until a judge or a person says whether both are the same question. From those
labels a threshold is proved, and by them a promise is watched. Pairs of which no judge said anything wait
for a person, on a shelf of their own.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from stampcache import canonical
from stampcache.calibration import Labelled, Promise, Promises, Subject
from stampcache.errors import ConfigError
from stampcache.shelf import Record

WAITING, UNSAID, LABELS, PROMISES = "pairs", "unsaid", "labels", "promises"
WAITING_KEPT, LABELS_KEPT, PROMISES_KEPT = 10_000, 50_000, 256
_GONE, _ATTEMPTS = "withdrawn:", "attempts:"
Kind = TypeVar("Kind")


class Pair(Struct, frozen=True, kw_only=True, gc=False):
    """An asked question and the best candidate for it, as they were when it was asked.

    ``score`` is the decider's, ``None`` where a guard vetoes every candidate. ``sampled`` pairs were
    drawn at random; the others were noted because the decider was in doubt, or a user reported them.
    ``weight`` and ``least`` say from which score on the cache served then, with the cosine counted so
    much. ``tenant`` and ``scope`` are digests; ``attempts`` to have it labelled have failed.
    """

    asked: str
    stored: str
    score: float | None
    similarity: float
    subject: Subject
    entry_id: str
    tenant: str
    scope: str = ""
    at: float
    sampled: bool
    served: bool
    weight: float = 0.0
    least: float = 0.0
    attempts: int = 0

    @property
    def key(self) -> str:
        """What tells it apart from others: the two texts, whose they are, and when it was drawn."""
        drawn = repr(self.at) if self.sampled else ""
        texts = (self.tenant, self.asked, self.stored, drawn)
        return canonical.digest([canonical.encode(part) for part in texts], person=b"pair")

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
            drawn_at=self.at,
            served=self.served,
            weight=self.weight,
            least=self.least,
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
    key = _about(promise.subject, promise.max_wrong)
    return Record(key=key, body=msgspec.msgpack.encode(promise))


def withdrawal_record(promise: Promise, why: str) -> Record:
    """Return, as a record of the same shelf, that what rests on the labels of a promise no longer counts.

    It stands beside the promise and not in its place, so that no two writers undo each other's word.
    """
    gone = _Withdrawn(promise.digest, why, promise.subject, promise.made_at)
    return Record(key=f"{_GONE}{promise.digest}", body=msgspec.msgpack.encode(gone))


def promises_of(records: Iterable[Record]) -> Promises:
    """Return the promises in the records of the shelf, and which of them were withdrawn."""
    kept, withdrawn = [], {}
    for record in records:
        if record.key.startswith(_GONE):  # whether or not its words can be read
            gone = _decoded(record.body, _Withdrawn)
            why = "it cannot be read why" if gone is None else gone.why
            withdrawn[record.key.removeprefix(_GONE)] = why
        elif record.key.startswith(_ATTEMPTS):
            continue
        elif (promise := _decoded(record.body, Promise)) is not None:
            kept.append(promise)
    return Promises(tuple(kept), withdrawn)


def still_counting(labels: Iterable[Labelled], records: Iterable[Record]) -> Sequence[Labelled]:
    """Return the labels that may bear a promise, by what the shelf `PROMISES` says was withdrawn.

    What was drawn before a promise was made that did not hold is of other times: a new one needs new
    labels.
    """
    since: dict[Subject, float] = {}
    for record in records:
        gone = _decoded(record.body, _Withdrawn) if record.key.startswith(_GONE) else None
        if gone is not None:
            since[gone.subject] = max(gone.made_at, since.get(gone.subject, gone.made_at))
    return [one for one in labels if one.drawn_at >= since.get(one.subject, -inf)]


class Attempt(Struct, frozen=True):
    """The number of an attempt to prove a promise, and the record that remembers it."""

    number: int
    record: Record


def attempt_after(
    records: Iterable[Record], subject: Subject, max_wrong: float, tried: str
) -> Attempt:
    """Return the next attempt on a subject and rate; what was tried last is no further one."""
    key = f"{_ATTEMPTS}{_about(subject, max_wrong)}"
    body = next((record.body for record in records if record.key == key), b"")
    last = _decoded(body, _Attempts) or _Attempts(0, "")
    number = last.number if last.tried == tried else last.number + 1
    return Attempt(number, Record(key=key, body=msgspec.msgpack.encode(_Attempts(number, tried))))


def _about(subject: Subject, max_wrong: float) -> str:
    about = (*astuple(subject), max_wrong)
    return canonical.digest([canonical.encode(str(part)) for part in about], person=b"promise")


class _Attempts(Struct, frozen=True):
    number: int
    tried: str


class _Withdrawn(Struct, frozen=True):
    digest: str
    why: str
    subject: Subject
    made_at: float


def _decoded(body: bytes, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.MsgspecError, ConfigError):  # damaged, or of another version
        return None
