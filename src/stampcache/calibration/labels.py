"""Pairs of questions with the label "same question?", and which of them depend on each other (pure)."""

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from math import isfinite

from msgspec import Struct
from msgspec.structs import replace

from stampcache.errors import ConfigError

REPORT = "report"
"""The labeller of what users reported of their own accord."""


class Subject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a threshold belongs to: another one of any of these has another wrong-hit rate.

    ``decider`` names what scores a pair, with its version: ``cosine+guards-1``, or a verifier's name.
    """

    namespace: str = "default"
    embedder: str
    decider: str


class Labelled(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An asked question, its nearest candidate of a store, and whether both are the same question.

    ``score`` is the decider's (higher is surer; ``None``: vetoed, never served), ``similarity`` the
    cosine. ``labeller`` names who said so, ``at`` when (epoch seconds). ``sampled``: drawn at random
    from the candidates, as a proof needs; what somebody reported of their own accord is not.
    ``drawn_at`` tells one draw of a pair from another (epoch seconds), and ``served`` whether a cache
    served it then, which it did from the score ``least`` on, with the cosine counted at ``weight``.
    ``group``: pairs of one group depend on each other; empty: those that share a question do.

    Raises:
        ConfigError: the score is no finite number.
    """

    asked: str
    stored: str
    same: bool
    score: float | None
    similarity: float
    labeller: str
    at: float
    subject: Subject
    sampled: bool = True
    group: str = ""
    drawn_at: float = 0.0
    served: bool = False
    weight: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.score is not None and not isfinite(self.score):
            raise ConfigError(
                f"The score {self.score} is no finite number; a veto has the score None."
            )


def settled(labels: Iterable[Labelled], subject: Subject) -> list[Labelled]:
    """Return one label for each draw of a pair of this subject, in an order by the texts alone.

    A pair that is asked often is drawn often, and is as often among the hits. All its draws have one
    label: the latest, and of two at one time the one that says "not the same"; a report of a pair that
    was drawn is a label like any other. Of a pair that was not drawn only a report counts, once, and only
    if it speaks against the promise, since nobody reports at random; what was judged because a decider
    was in doubt is no sample either.
    """
    of_pair: dict[tuple[str, str], list[Labelled]] = {}
    for label in labels:
        if label.subject == subject:
            of_pair.setdefault((label.asked, label.stored), []).append(label)
    found = (one for given in of_pair.values() for one in [_latest(given)] * _times(given))
    return sorted(found, key=drawn)


def _times(given: Sequence[Labelled]) -> int:
    """Return how often a pair counts that has these labels."""
    draws = len({label.drawn_at for label in given if label.sampled})
    against = any(label.labeller == REPORT and not label.same for label in given)
    return draws or int(against)


def _latest(given: Sequence[Labelled]) -> Labelled:
    if len(given) == 1:
        return given[0]
    last = max(given, key=_order)
    scored = max((one for one in given if one.sampled), key=_order, default=last)
    return replace(scored, same=last.same, labeller=last.labeller, at=last.at)


def _order(label: Labelled) -> tuple[float, bool, bytes]:
    return label.at, not label.same, _raw(label)


def drawn(label: Labelled) -> bytes:
    """Return what orders pairs as if drawn by lot: a digest of their texts, never of their label."""
    lot = hashlib.blake2b(digest_size=16, person=b"pair")
    for text in (label.asked, label.stored):
        raw = text.encode("utf-8", "surrogatepass")
        lot.update(len(raw).to_bytes(8, "big") + raw)
    return lot.digest()


def groups(labels: Sequence[Labelled]) -> list[list[Labelled]]:
    """Return the labels in groups that share nothing: no question, or no ``group`` where it is given.

    Two pairs that both share a question with a third are in one group (connected components).
    """
    leader: dict[Hashable, Hashable] = {}

    def first(node: Hashable) -> Hashable:
        while leader.setdefault(node, node) != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    linked = [_nodes(label) for label in labels]
    for nodes in linked:
        for node in nodes[1:]:
            leader[first(node)] = first(nodes[0])
    found: dict[Hashable, list[Labelled]] = {}
    for label, nodes in zip(labels, linked, strict=True):
        found.setdefault(first(nodes[0]), []).append(label)
    return list(found.values())


def _nodes(label: Labelled) -> list[tuple[str, str]]:
    if label.group:
        return [("group", label.group)]
    return [("question", " ".join(text.casefold().split())) for text in (label.asked, label.stored)]


def one_each(grouped: Iterable[Sequence[Labelled]]) -> list[Labelled]:
    """Return one label of each group: the first, which is by lot where the labels are `settled`."""
    return [group[0] for group in grouped]


def digest_of(labels: Iterable[Labelled]) -> str:
    """Return 32 hex digits that change with any of these labels, or with their order."""
    whole = hashlib.blake2b(digest_size=16, person=b"labels")
    for raw in map(_raw, labels):
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()


def _raw(label: Labelled) -> bytes:
    return repr(label).encode("utf-8", "backslashreplace")
