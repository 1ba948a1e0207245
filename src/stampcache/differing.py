"""What a write differs in, and which answers it ends or brings back (pure; ADR 0021).

An answer ends with a difference within its reach. It is true again when all differences since it was
made are undone: then what its search would find is what it found.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from stampcache.corpora import Change, Chunk, Difference, Intent, Reach, Trace, Written
from stampcache.spaces import TOLERANCE

REMEMBERED = 64
"""So many differences of one answer are kept; with more it does not come back."""

_DOUBT = "?"

LOST = Difference("", None, added=True)
"""Stands for what can never be undone."""


def named(change: Change) -> tuple[str, ...]:
    """Return the ids of the chunks that a change names."""
    return tuple(dict.fromkeys([*(chunk.id for chunk in change.added), *change.removed]))


def written(known: Mapping[str, Chunk], change: Change, *, complete: bool) -> Written:
    """Return what a change differs in from the chunks known of the ids it names (or of all).

    Where not all chunks were known (``complete``), nobody can tell what went when all of them went. One
    that goes unknown may have been there in any case: others may have written around the watch.
    """
    added, removed = list[Chunk](), list[Chunk]()
    kept = {chunk.id: chunk for chunk in change.added}
    for chunk in kept.values():
        before = known.get(chunk.id)
        # what was deleted and written as it was may stand elsewhere among equals
        anew = change.doubts or change.emptied or chunk.id in change.removed
        if before == chunk and not anew:
            continue
        if before is not None:
            removed.append(before)
        added.append(chunk)
    gone = [*known] if change.emptied else change.removed
    unseen = list[str]()
    for one in dict.fromkeys(gone):
        if one in kept:
            continue
        if one in known:
            removed.append(known[one])
        else:
            unseen.append(one)
    return Written(
        added=tuple(added),
        removed=tuple(removed),
        unseen=tuple(unseen),
        unknown=change.unknown or (change.emptied and not complete),
    )


def contested(change: Change, intent: Intent | None) -> Change:
    """Return a change without what others may have written over meanwhile: of that nothing is known."""
    if intent is None or (not named(change) and not (change.emptied or change.unknown)):
        return change
    ids = set(intent.contested) if change.emptied else {*intent.contested} & {*named(change)}
    if intent.all_contested:
        ids = {*ids, *named(change)}
    unsure = [Chunk(id=one, digest="") for one in sorted(ids)]
    return replace(
        change,
        added=(*(chunk for chunk in change.added if chunk.id not in ids), *unsure),
        removed=tuple(one for one in change.removed if one not in ids),
        unknown=change.unknown or intent.all_contested,
        beyond=change.beyond or (intent.all_contested and not change.unknown),
    )


def is_complete(change: Change, *, before: bool) -> bool:
    """Tell whether all chunks are known after a change that was told of."""
    if change.unknown:
        return before and change.beyond and not (change.emptied or named(change))
    return before or change.emptied


def doubtful(chunk: Chunk) -> Chunk:
    """Return a chunk that may have gone or changed unseen: whatever takes its place differs from it."""
    return replace(chunk, digest=f"{_DOUBT}{chunk.digest.removeprefix(_DOUBT)}")


def own_intent(intents: Mapping[str, Intent], intent: str, now: float) -> Intent | None:
    """Return the intent of a write that is told of; ``None`` where it has none.

    Where it was resolved by somebody else, nobody noted who wrote since.
    """
    if not intent:
        return None
    return intents.get(intent) or Intent(id=intent, at=now, all_contested=True)


def contesting(intent: Intent, change: Change) -> Intent:
    """Return the intent of somebody who still writes, after a change that another one made."""
    return replace(
        intent,
        contested=tuple(dict.fromkeys([*intent.contested, *named(change)])),
        all_contested=intent.all_contested or change.emptied or change.unknown,
    )


def sources_of(done: Written) -> tuple[str, ...]:
    """Return the sources whose chunks came, went or changed; what came and went as it was did not."""
    counts: dict[tuple[str, str], int] = {}
    for chunks, step in ((done.added, 1), (done.removed, -1)):
        for chunk in chunks:
            place = (chunk.source, chunk.digest)
            counts[place] = counts.get(place, 0) + step
    return tuple(sorted({source for (source, _), count in counts.items() if count}))


def trace_of(corpus: str, done: Written) -> Trace:
    """Return what the log keeps of a write."""
    came = set(done.added)
    gone = [*(chunk.id for chunk in done.removed if chunk not in came), *done.unseen]
    return Trace(corpus=corpus, sources=sources_of(done), chunks=tuple(gone), unknown=done.unknown)


def settled(
    reach: Reach, before: Sequence[Difference], new: Sequence[Difference]
) -> tuple[Difference, ...]:
    """Return how what is in reach differs from when the answer was made.

    Args:
        reach: of the answer.
        before: how it differed before a write.
        new: what the write added and removed within reach.
    """
    if LOST in (*before, *new) or (new and reach.for_good):
        return (LOST,)
    left = list(before)
    for one in new:
        undone = next((other for other in left if _undoes(reach, one, other)), None)
        if undone is None:
            left.append(one)
        else:
            left.remove(undone)
    lost = len(left) > REMEMBERED or any(_was_beyond(reach, one) for one in left)
    return (LOST,) if lost else tuple(left)


def holds(reach: Reach, left: Sequence[Difference]) -> bool:
    """Tell whether an answer is true in spite of differences: chunks only moved, none past another."""
    gone = _scored(one for one in left if not one.added)
    come = _scored(one for one in left if one.added)
    if len(gone) + len(come) < len(left) or [d for d, _ in gone] != [d for d, _ in come]:
        return False
    ranked = list(reach.scores)
    for (digest, was), (_, now) in zip(gone, come, strict=True):
        at = _place(reach, digest, was)
        if at is None or now < reach.least:
            return False
        ranked[at] = now
    return not gone or all(one > other + 2 * reach.within for one, other in pairwise(ranked))


def _scored(differences: Iterable[Difference]) -> list[tuple[str, float]]:
    return sorted((one.digest, one.score) for one in differences if one.score is not None)


def _place(reach: Reach, digest: str, score: float) -> int | None:
    """Return which of the chunks that were found this one is."""
    ranked = enumerate(zip(reach.digests, reach.scores, strict=True))
    close = (at for at, (d, s) in ranked if d == digest and abs(s - score) <= reach.within)
    return next(close, None)


def _was_beyond(reach: Reach, one: Difference) -> bool:
    """Tell whether a chunk went that was in reach, but by chance was not found.

    One that is clearly closer than others that were found was left out by a filter.
    """
    if one.added or one.score is None or one.digest in reach.digests or not reach.scores:
        return False
    return reach.floor > float("-inf") and one.score <= reach.scores[-1] + 2 * reach.within


def _undoes(reach: Reach, one: Difference, other: Difference) -> bool:
    if one.digest != other.digest or one.added is other.added:
        return False
    if one.score is None or other.score is None:
        return one.score is other.score
    if abs(one.score - other.score) > max(reach.within, TOLERANCE):
        return False
    return not one.added or _stands_there(reach, one.digest, other.score, one.score)


def _stands_there(reach: Reach, digest: str, was: float, now: float) -> bool:
    """Tell whether a chunk that came back stands where it was found, and not elsewhere by chance."""
    if _place(reach, digest, was) is None:
        return True  # it was not found
    ranked = zip(reach.digests, reach.scores, strict=True)
    others = (score for one, score in ranked if one != digest)
    alone = all(abs(score - now) > 2 * reach.within for score in others)
    return alone and _place(reach, digest, now) is not None
