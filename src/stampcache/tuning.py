"""From the pairs that a cache has drawn to a promise: who labels them, and what they prove (ADR 0024).

It needs the store alone, not the application: a pair says by itself what it is about.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import pi
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from stampcache import flows, pairs
from stampcache.calibration import (
    DELTA,
    WEIGHTS,
    Labelled,
    Point,
    Promise,
    Promises,
    Refusal,
    Subject,
    curve,
    digest_of,
    prove,
    reweighed,
)
from stampcache.drivers import Ports, run
from stampcache.flows.comparing import COSINE
from stampcache.guards import findings
from stampcache.model import Reason
from stampcache.pairs import Pair
from stampcache.ports import EquivalenceJudge, Store

DATA = "lookups of this cache, drawn at random"
_PERSON = "a person"


class Known(Struct, frozen=True):
    """What there is to tune with for one subject: pairs that have a label, and that wait for one.

    ``unsaid`` ones wait for a person: a judge was asked three times.
    """

    subject: Subject
    labelled: int
    waiting: int
    unsaid: int = 0


class Tuned(Struct, frozen=True):
    """What the labels of one subject prove, and what there was to choose from.

    ``points`` are those of the verifier with the cosine counted as it is promised, or not at all where
    nothing is. ``by_weight`` is the same choice at each weight of the cosine, and ``by_cosine`` that for
    cosine and guards (``verifier=None``), on the same pairs, where a verifier decides.
    """

    subject: Subject
    result: Promise | Refusal
    points: Sequence[Point]
    by_cosine: Sequence[Point] = ()
    by_weight: Mapping[float, Sequence[Point]] = MappingProxyType({})

    @property
    def weight(self) -> float:
        """How much the cosine counts in ``points``."""
        return self.result.similarity_weight if isinstance(self.result, Promise) else 0.0


def known(store: Store) -> Sequence[Known]:
    """Return the subjects of which there are pairs, those with most labels first.

    Raises:
        StoreError: the store cannot be read.
    """
    labelled = Counter(one.subject for one in _counting(store) if one.sampled)
    waiting, unsaid = (
        Counter(pair.subject for pair in _on(store, shelf) if pair.sampled)
        for shelf in (pairs.WAITING, pairs.UNSAID)
    )
    both = [
        Known(one, labelled[one], waiting[one], unsaid[one]) for one in labelled | waiting | unsaid
    ]
    return sorted(both, key=lambda one: (-one.labelled, -one.waiting, str(one.subject)))


def labels(store: Store) -> Sequence[Labelled]:
    """Return the labels of a store.

    Raises:
        StoreError: the store cannot be read.
    """
    return pairs.labels_of(store.shelf.kept(pairs.LABELS, pairs.LABELS_KEPT))


def promises(store: Store) -> Promises:
    """Return what is promised of the hits in a store.

    Raises:
        StoreError: the store cannot be read.
    """
    return pairs.promises_of(store.shelf.kept(pairs.PROMISES, pairs.PROMISES_KEPT))


def judge_pairs(
    store: Store,
    judge: EquivalenceJudge,
    *,
    limit: int,
    now: float,
    done: Callable[[int], None],
) -> int:
    """Have a judge label at most so many pairs that wait; return how many it labelled.

    ``done`` is told after each call how many that were. It ends early where the judge fails or its
    budget is spent.

    Raises:
        StoreError: the store failed.
    """
    ports = Ports(store=store, note=_unexpected, equivalence=judge)
    labelled = 0
    while labelled < limit and judge.may_ask():
        batch = run(flows.compared(judge.name, now, limit - labelled), ports)
        labelled += batch.same + batch.not_same
        done(batch.same + batch.not_same)
        if batch.failed or not batch.same + batch.not_same:
            break
    return labelled


def ask_person(store: Store, ask: Callable[[Pair], bool | None], *, limit: int, now: float) -> int:
    """Have a person label pairs one by one until ``ask`` returns ``None``; return how many.

    Those come first of which no judge said anything, then those that were drawn.

    Raises:
        StoreError: the store failed.
    """
    ports = Ports(store=store, note=_unexpected)
    labelled = 0
    unsaid = [(pairs.UNSAID, pair) for pair in _on(store, pairs.UNSAID)]
    waiting = [(pairs.WAITING, pair) for pair in _on(store, pairs.WAITING)]
    waiting.sort(key=lambda one: not one[1].sampled)
    for shelf, pair in [*unsaid, *waiting][:limit]:
        same = ask(pair)
        if same is None:
            break
        if store.shelf.take(shelf, [pair.key]):  # else somebody else has labelled it
            run(flows.label([(pair, same)], _PERSON, now), ports)
            labelled += 1
    return labelled


def tune(store: Store, subject: Subject, *, max_wrong: float, now: float) -> Tuned:
    """Prove what the labels of a subject prove; a promise is kept in the store and holds at once.

    After one was withdrawn, only what was drawn since that one was made counts. Who tries again and
    again until it holds would have many chances of a false promise: of the chance `DELTA` the n-th
    attempt on other labels takes the part ``6 / (pi n)**2``, and all of them together take no more.

    Where a verifier decides, the cosine may count beside its score, at one of `WEIGHTS`.

    Raises:
        ConfigError: ``max_wrong`` is no share, or the store has no entries.
        StoreError: the store failed.
    """
    found = _counting(store)
    verified = not subject.decider.startswith(f"{COSINE}+")
    weights = WEIGHTS if verified else (0.0,)
    result = prove(
        found,
        subject,
        max_wrong=max_wrong,
        entries=max(1, store.stats().entries),
        data=DATA,
        made_at=now,
        delta=DELTA * 6 / (pi * _attempt(store, subject, max_wrong, found, weights)) ** 2,
        weights=weights,
    )
    if isinstance(result, Promise):
        record = pairs.promise_record(result)
        store.shelf.keep(pairs.PROMISES, [record], most=pairs.PROMISES_KEPT)
    choice = {weight: curve(reweighed(found, weight), subject) for weight in weights}
    points = choice[result.similarity_weight if isinstance(result, Promise) else 0.0]
    if not verified:
        return Tuned(subject, result, points)
    by_cosine = curve([replace(one, score=_cosine_of(one)) for one in found], subject)
    return Tuned(subject, result, points, by_cosine, choice)


def _cosine_of(label: Labelled) -> float | None:
    return None if findings(label.asked, label.stored) else label.similarity


def _attempt(
    store: Store,
    subject: Subject,
    max_wrong: float,
    found: Sequence[Labelled],
    weights: Sequence[float],
) -> int:
    """Return the number of this attempt to prove it; the same labels and weights are no further one."""
    records = store.shelf.kept(pairs.PROMISES, pairs.PROMISES_KEPT)
    of_subject = [label for label in found if label.subject == subject]
    tried = f"{digest_of(of_subject)} {weights}"
    attempt = pairs.attempt_after(records, subject, max_wrong, tried)
    store.shelf.keep(pairs.PROMISES, [attempt.record], most=pairs.PROMISES_KEPT)
    return attempt.number


def _counting(store: Store) -> Sequence[Labelled]:
    records = store.shelf.kept(pairs.PROMISES, pairs.PROMISES_KEPT)
    return pairs.still_counting(labels(store), records)


def _on(store: Store, shelf: str) -> Sequence[Pair]:
    return pairs.pairs_of(store.shelf.kept(shelf, pairs.WAITING_KEPT))


def _unexpected(what: str, error: Exception) -> None:
    raise AssertionError(f"{Reason.STORE_ERROR.value}: {what}") from error
