"""A promise of a wrong-hit rate: what it says, where it holds, and why there is none (pure; ADR 0024)."""

import enum
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from stampcache.calibration.bounds import Interval, check_share
from stampcache.calibration.labels import Subject
from stampcache.calibration.weighing import check_weights, weighed
from stampcache.errors import ConfigError

VERSION = 1
DELTA = 0.05
"""The chance of a false promise, where nobody says another."""
GROWTH = 4.0
"""How many times larger or smaller than stated the store may be: its nearest candidates are others."""


class Lack(enum.Enum):
    """What is missing where nothing is promised; the value is the word for tables and logs."""

    TOO_FEW = "too few labels"
    TOO_WRONG = "too many wrong"
    TIED = "tied scores"
    GROUPED = "groups disagree"
    NONE = "no promise"
    EMBEDDER = "another embedder"
    DECIDER = "another decider"
    NAMESPACE = "another namespace"
    MAX_WRONG = "a looser promise"
    STORE_SIZE = "another store size"
    WITHDRAWN = "withdrawn"


class Refusal(Struct, frozen=True, forbid_unknown_fields=True):
    """Why there is no promise, in one sentence that says what to do; prints as that sentence.

    ``needed``: how many labelled pairs without an error would prove it; 0 where that is not the matter.
    """

    lack: Lack
    message: str
    needed: int = 0

    def __str__(self) -> str:
        return self.message


class Promise(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most ``max_wrong`` of the semantic hits at ``threshold`` are wrong, but for a chance ``delta``.

    It holds for its subject, for a store of about ``entries`` entries, for requests like those of
    ``data``, and for "wrong" as its ``labellers`` see it (pairs labelled by each). ``pairs`` were
    labelled, in ``groups`` that share no question; ``served`` of them score at or above the threshold,
    ``wrong`` of these are wrong. ``digest`` is that of the labels, ``made_at`` in epoch seconds. Scores
    are `weighed` with the cosine at ``similarity_weight`` before they are compared with the threshold.

    Raises:
        ConfigError: ``max_wrong`` or ``delta`` is no share, the weight no weight, or the format is of
            another version.
    """

    threshold: float
    max_wrong: float
    delta: float
    subject: Subject
    data: str
    entries: int
    pairs: int
    groups: int
    served: int
    wrong: int
    share: Interval
    labellers: Mapping[str, int]
    made_at: float
    digest: str
    similarity_weight: float = 0.0
    version: int = VERSION

    def __post_init__(self) -> None:
        check_share("max_wrong", self.max_wrong)
        check_share("delta", self.delta)
        check_weights((self.similarity_weight,))
        if self.version != VERSION:
            raise ConfigError(
                f"The promise has version {self.version}, this release reads {VERSION}; tune again."
            )

    def __str__(self) -> str:
        """Print the whole statement, with what it was proved on."""
        low, high = self._sizes()
        counted = (
            f", the cosine counted at {self.similarity_weight:g}," if self.similarity_weight else ""
        )
        by = ", ".join(f"{name} ({count:,})" for name, count in sorted(self.labellers.items()))
        day = np.datetime64(int(self.made_at), "s").astype("datetime64[D]")
        return (
            f"At most {percent(self.max_wrong)} of the semantic hits in namespace "
            f"{self.subject.namespace!r} are wrong, at {percent(1 - self.delta)} confidence: with the "
            f"embedder {self.subject.embedder}, decided by {self.subject.decider}{counted} at "
            f"{self.threshold:.4g} or above, while the store holds {low:,} to {high:,} entries. Proved "
            f"on {day} with {self.pairs:,} pairs in {self.groups:,} groups from {self.data}, a store of "
            f"{self.entries:,} entries, labelled by {by}: {self.share} of them are served, "
            f"{self.served:,}, with {self.wrong:,} wrong among these."
        )

    def reached(self, score: float, similarity: float) -> bool:
        """Tell whether a pair with this score and cosine is one of the hits that it speaks of."""
        return weighed(score, similarity, self.similarity_weight) >= self.threshold

    def _sizes(self) -> tuple[int, int]:
        return int(-(-self.entries // GROWTH)), int(self.entries * GROWTH)

    def uncovered(
        self, subject: Subject, *, max_wrong: float, entries: int, delta: float = DELTA
    ) -> Refusal | None:
        """Say why it does not cover this subject, rate and size of the store, or ``None`` if it does."""
        mine = self.subject
        if mine.embedder != subject.embedder:
            return _other(Lack.EMBEDDER, "embedder", mine.embedder, subject.embedder)
        if mine.decider != subject.decider:
            return _other(Lack.DECIDER, "decider", mine.decider, subject.decider)
        if mine.namespace != subject.namespace:
            return _other(Lack.NAMESPACE, "namespace", mine.namespace, subject.namespace)
        if self.max_wrong > max_wrong or self.delta > delta:
            return Refusal(
                Lack.MAX_WRONG,
                f"Proved is {goal(self.max_wrong, self.delta)}, and not {goal(max_wrong, delta)}; label "
                f"more pairs and tune, or open the cache with max_wrong={self.max_wrong:g}.",
            )
        low, high = self._sizes()
        if not low <= entries <= high:
            return Refusal(
                Lack.STORE_SIZE,
                f"The store holds {entries:,} entries; the promise was proved on {self.entries:,} and "
                f"holds from {low:,} to {high:,}; tune again with the store as it is.",
            )
        return None


class Promises(Struct, frozen=True, forbid_unknown_fields=True):
    """All promises that are known, and those of them that were withdrawn (digest of labels: why).

    Immutable: what changes it returns a new one. `to_json` and `promises_from` are a round trip.
    """

    kept: tuple[Promise, ...] = ()
    withdrawn: Mapping[str, str] = {}

    def __iter__(self) -> Iterator[Promise]:
        return iter(self.kept)

    def with_promise(self, promise: Promise) -> "Promises":
        """Return them with one more, instead of any on the same subject and rate."""
        about = (promise.subject, promise.max_wrong)
        others = tuple(one for one in self.kept if (one.subject, one.max_wrong) != about)
        return Promises((*others, promise), self.withdrawn)

    def without(self, promise: Promise, why: str) -> "Promises":
        """Return them with all that rests on the same labels withdrawn, for a reason."""
        return Promises(self.kept, {**self.withdrawn, promise.digest: why})

    def covering(
        self, subject: Subject, *, max_wrong: float, entries: int, delta: float = DELTA
    ) -> Promise | Refusal:
        """Return the promise that covers this, or what is missing.

        Of several the loosest that is strict enough, which serves most; then the latest. The refusal
        is about the one that comes closest.

        Raises:
            ConfigError: ``max_wrong`` is no share.
        """
        check_share("max_wrong", max_wrong)
        best: Promise | None = None
        nearest = Refusal(
            Lack.NONE,
            f"Nothing is proved for the embedder {subject.embedder} in namespace "
            f"{subject.namespace!r} yet; label pairs and run `stampcache tune`.",
        )
        for one in self._in_order():
            lacking = one.uncovered(subject, max_wrong=max_wrong, entries=entries, delta=delta)
            if lacking is None and one.digest in self.withdrawn:
                why = self.withdrawn[one.digest]
                lacking = Refusal(Lack.WITHDRAWN, f"The promise was withdrawn: {why}; tune again.")
            if lacking is None:
                best = one
            elif _CLOSENESS.index(lacking.lack) >= _CLOSENESS.index(nearest.lack):
                nearest = lacking
        return best or nearest

    def _in_order(self) -> Sequence[Promise]:
        return sorted(self.kept, key=lambda one: (one.max_wrong, one.made_at, one.digest))

    def to_json(self) -> bytes:
        """Return them as JSON."""
        return msgspec.json.encode(self)


_CLOSENESS: Sequence[Lack] = (
    Lack.NONE,
    Lack.EMBEDDER,
    Lack.DECIDER,
    Lack.NAMESPACE,
    Lack.MAX_WRONG,
    Lack.STORE_SIZE,
    Lack.WITHDRAWN,
)


def promises_from(raw: bytes | str) -> Promises:
    """Return the promises of a JSON text.

    Raises:
        ConfigError: it is no such text.
    """
    try:
        return msgspec.json.decode(raw, type=Promises)
    except msgspec.DecodeError as error:
        raise ConfigError(f"These are no promises: {error}.") from error


def goal(max_wrong: float, delta: float) -> str:
    """Return what is to be proved, for a sentence."""
    return f"at most {percent(max_wrong)} wrong at {percent(1 - delta)} confidence"


def percent(share: float) -> str:
    """Return a share as a percentage for a sentence, such as ``0.5 %``."""
    return f"{share * 100:.4g} %"


def _other(lack: Lack, what: str, proved: str, asked: str) -> Refusal:
    return Refusal(
        lack,
        f"What is proved holds for the {what} {proved!r}, and this is {asked!r}; tune with it.",
    )
