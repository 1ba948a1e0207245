"""Pairs get their labels, and promises are watched by them (pure; ADR 0024)."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache import pairs
from stampcache.calibration import Labelled, monitor_of
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
    """Have a judge label pairs that wait, in one call; whatever fails waits again, three times."""
    records = yield from Kept(pairs.WAITING, _LOOKED_AT)
    # one call is about one tenant's questions: a question may try to talk the judge into something
    records = [one for one in records if one.tenant == records[0].tenant][: min(BATCH, most)]
    taken = set((yield from Take(pairs.WAITING, [record.key for record in records])))
    waiting = pairs.pairs_of(record for record in records if record.key in taken)
    if not waiting:
        return Compared()
    said: Sequence[Sameness] = yield from SamePairs([(one.asked, one.stored) for one in waiting])
    told = [(pair, one) for pair, one in zip(waiting, said, strict=True) if not one.failure]
    failed = [
        replace(pair, attempts=pair.attempts + 1)
        for pair, one in zip(waiting, said, strict=True)
        if one.failure
    ]
    again = pairs.waiting(pair for pair in failed if pair.attempts < _ATTEMPTS)
    if again:
        yield from Keep(pairs.WAITING, again, pairs.WAITING_KEPT)
    labelled = [(pair, one.same) for pair, one in told]
    withdrawn = yield from label(labelled, labeller, now)
    same = sum(is_same for _, is_same in labelled)
    return Compared(same, len(labelled) - same, len(failed), withdrawn)


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
    withdrawn = 0
    for pair, same in labelled:
        if pair.served and pair.sampled:
            withdrawn += yield from _watched(pair, same)
    return withdrawn


def reported(served: Sequence[Pair], *, same: bool, now: float) -> Flow[None]:
    """Keep what a user said of pairs that were served: labels, but not drawn ones."""
    labels = [
        (pair, pair.labelled(same=same, labeller="report", at=now, sampled=False))
        for pair in served
    ]
    if labels:
        yield from _kept(labels)


def _kept(labels: Sequence[tuple[Pair, Labelled]]) -> Flow[None]:
    records = [pairs.label_record(pair, one) for pair, one in labels]
    yield from Keep(pairs.LABELS, records, pairs.LABELS_KEPT)


def _watched(pair: Pair, same: bool) -> Flow[int]:
    """Tell the monitors of what was promised of such pairs about one more; withdraw what it ends."""
    promises = pairs.promises_of((yield from Kept(pairs.PROMISES, pairs.PROMISES_KEPT)))
    known = pairs.monitors_of((yield from Kept(pairs.MONITORS, pairs.PROMISES_KEPT)))
    of_promise = {(monitor.digest, monitor.max_wrong): monitor for monitor in known}
    ended = 0
    for promise in promises:
        covered = promise.subject == pair.subject and (pair.score or 0.0) >= promise.threshold
        if not covered or promise.digest in promises.withdrawn or pair.at < promise.made_at:
            continue
        about = (promise.digest, promise.max_wrong)
        monitor = of_promise.get(about, monitor_of(promise)).seen(same=same)
        records = [pairs.monitor_record(monitor)]
        yield from Keep(pairs.MONITORS, records, pairs.PROMISES_KEPT)
        if monitor.withdrawn:
            gone = [pairs.withdrawal_record(promise.digest, str(monitor))]
            yield from Keep(pairs.PROMISES, gone, pairs.PROMISES_KEPT)
            ended += 1
    return ended
