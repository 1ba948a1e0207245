"""Pairs get their labels, and promises are watched by them (pure; ADR 0024)."""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache import pairs
from stampcache.calibration import REPORT, Labelled, Subject, watched
from stampcache.effects import Flow, Keep, Kept, SamePairs, Take
from stampcache.pairs import Pair
from stampcache.ports import Sameness

BATCH = 10
_ATTEMPTS = 3
_LOOKED_AT = 100


class Compared(Struct, frozen=True):
    """What a batch came to: pairs that were found the same, and not; ``failed`` ones got no label.

    ``withdrawn`` promises no longer count.
    """

    same: int = 0
    not_same: int = 0
    failed: int = 0
    withdrawn: int = 0


def compared(labeller: str, now: float, most: int) -> Flow[Compared]:
    """Have a judge label pairs that wait, in one call.

    Whatever fails waits again, three times, then for a person.
    """
    waiting = yield from _taken(most)
    if not waiting:
        return Compared()
    texts = list(dict.fromkeys((one.asked, one.stored) for one in waiting))
    said: Sequence[Sameness] = yield from SamePairs(texts)
    of_text = dict(zip(texts, said, strict=True))
    both = [(pair, of_text[pair.asked, pair.stored]) for pair in waiting]
    told = [(pair, one) for pair, one in both if not one.failure]
    failed = [replace(pair, attempts=pair.attempts + 1) for pair, one in both if one.failure]
    again = pairs.waiting(pair for pair in failed if pair.attempts < _ATTEMPTS)
    if again:
        yield from Keep(pairs.WAITING, again, pairs.WAITING_KEPT)
    given_up = pairs.waiting(one for one in failed if one.attempts >= _ATTEMPTS and one.sampled)
    if given_up:  # what is hard to label is not like the rest, so it must not just be left out
        yield from Keep(pairs.UNSAID, given_up, pairs.WAITING_KEPT)
    labelled = [(pair, one.same) for pair, one in told]
    withdrawn = yield from label(labelled, labeller, now)
    same = sum(is_same for _, is_same in labelled)
    return Compared(same, len(labelled) - same, len(failed), withdrawn)


def _taken(most: int) -> Flow[Sequence[Pair]]:
    """Return pairs of one scope that nobody else labels: those that were drawn before all others.

    A question may try to talk the judge into something, so one call is about one scope.
    """
    records = yield from Kept(pairs.WAITING, _LOOKED_AT)
    found = {record.key: one for record in records for one in pairs.pairs_of([record])}
    if not found:  # what nobody can read is dropped
        yield from Take(pairs.WAITING, [record.key for record in records])
        return []
    drawn_first = sorted(found, key=lambda key: not found[key].sampled)
    first = found[drawn_first[0]]
    where = (first.tenant, first.scope)
    keys = [key for key in drawn_first if (found[key].tenant, found[key].scope) == where]
    taken = yield from Take(pairs.WAITING, keys[: min(BATCH, most)])
    return [found[key] for key in taken]


def label(labelled: Sequence[tuple[Pair, bool]], labeller: str, now: float) -> Flow[int]:
    """Keep labels, and watch promises by those of pairs that were served and drawn.

    Returns how many promises were withdrawn.
    """
    if not labelled:
        return 0
    labels = [
        (pair, pair.labelled(same=same, labeller=labeller, at=now, sampled=pair.sampled))
        for pair, same in labelled
    ]
    yield from _kept(labels)
    watched_of = {pair.subject for pair, _ in labelled if pair.served and pair.sampled}
    return (yield from _watched(watched_of)) if watched_of else 0


def reported(served: Sequence[Pair], *, same: bool, now: float, entry_id: str = "") -> Flow[None]:
    """Keep what a user said of pairs that were served: labels, but not drawn ones.

    A bad report names the entry: it will be deleted, and of what is gone no judge's label is kept. So
    its drawn pairs, of which nobody has said anything yet, are labelled with it, else they would be
    missing just where hits were wrong.
    """
    labels = [(pair, _report(pair, same=same, now=now, sampled=False)) for pair in served]
    if entry_id and not same:
        records = yield from Kept(pairs.WAITING, pairs.WAITING_KEPT)
        drawn = [
            (record.key, pair)
            for record in records
            for pair in pairs.pairs_of([record])
            if pair.entry_id == entry_id and pair.sampled
        ]
        taken = yield from Take(pairs.WAITING, [key for key, _ in drawn])
        labels += [
            (pair, _report(pair, same=False, now=now, sampled=True))
            for key, pair in drawn
            if key in set(taken)
        ]
    if labels:
        yield from _kept(labels)


def _report(pair: Pair, *, same: bool, now: float, sampled: bool) -> Labelled:
    return pair.labelled(same=same, labeller=REPORT, at=now, sampled=sampled)


def _kept(labels: Sequence[tuple[Pair, Labelled]]) -> Flow[None]:
    records = [pairs.label_record(pair, one) for pair, one in labels]
    yield from Keep(pairs.LABELS, records, pairs.LABELS_KEPT)


def _watched(subjects: Collection[Subject]) -> Flow[int]:
    """Withdraw what was promised of such pairs where all labels together speak against it."""
    promises = pairs.promises_of((yield from Kept(pairs.PROMISES, pairs.PROMISES_KEPT)))
    about = [
        one for one in promises if one.subject in subjects and one.digest not in promises.withdrawn
    ]
    if not about:
        return 0
    records = yield from Kept(pairs.LABELS, pairs.LABELS_KEPT)
    labels = pairs.labels_of(reversed(records))  # oldest first
    monitors = [(promise, watched(promise, labels)) for promise in about]
    gone = [
        pairs.withdrawal_record(promise, str(monitor))
        for promise, monitor in monitors
        if monitor.withdrawn
    ]
    if gone:
        yield from Keep(pairs.PROMISES, gone, pairs.PROMISES_KEPT)
    return len(gone)
