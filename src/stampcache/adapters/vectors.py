"""Vectors of texts through a `Front`: what an embedder made of a text is not made again.

A vector is found by the very text (no white space is folded) and by all that makes it: the embedder with
its parameters, its dimension and the role of the text, which are in the settings of its request
(`EmbedderSettings`; cases A19, A20). Nothing of it is ever matched by meaning.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stampcache.adapters.asking import Build, built
from stampcache.adapters.front import Found, Front, Kept, Made
from stampcache.adapters.reporting import CacheFields
from stampcache.effects import Flow, Step
from stampcache.errors import CanonicalError, CodecError
from stampcache.flows import Ask
from stampcache.model import Answer, Reason
from stampcache.outcome import Miss, Stale
from stampcache.request import Request

VECTOR = "vector.f8.1"
_DTYPE = np.dtype("<f8")
_BREATH = 32
"""So many texts are looked up or stored before other tasks of an event loop have their turn."""

Floats: TypeAlias = list[float]
MakeRows: TypeAlias = Callable[[list[str]], Step[list[Floats]]]


def stored(vector: Sequence[float]) -> Answer:
    """Return a vector as it is stored: every float comes back equal.

    Raises:
        CanonicalError: it is empty, not finite, or no vector of numbers that a float holds exactly.
    """
    try:
        row = np.asarray(vector, dtype=_DTYPE)
    except (TypeError, ValueError, OverflowError) as error:
        raise CanonicalError(f"the embedder made no vector of numbers ({error})") from error
    if row.ndim != 1 or not row.size or not np.isfinite(row).all() or row.tolist() != list(vector):
        raise CanonicalError("the embedder made no vector of finite numbers that come back equal")
    return Answer(text="", payload=row.tobytes(), format=VECTOR)


def read(answer: Answer, report: CacheFields | None = None) -> Floats:  # noqa: ARG001 - as a `Read`
    """Return a stored vector, as the caller's own list.

    Raises:
        CodecError: what is stored is none.
    """
    if answer.format != VECTOR or len(answer.payload) % _DTYPE.itemsize or not answer.payload:
        raise CodecError(f"the stored vector has the form {answer.format!r}, or is cut off")
    floats: Floats = np.frombuffer(answer.payload, dtype=_DTYPE).tolist()
    return floats


class _Wanted(Struct, frozen=True):
    """A text that is not known: where it stands, and what its lookup came to."""

    ask: Ask | Miss
    outcome: Miss | Stale
    places: list[int]


class _Sorted(Struct, frozen=True):
    """The texts of a batch: vectors that are known, by place, and texts that are not."""

    base: Request
    found: dict[int, Floats]
    missing: dict[str, _Wanted]


class Vectors:
    """The vectors of one embedder behind one cache."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def one(self, text: str, build: Build, make: Step[Floats]) -> Flow[Floats]:
        """Return the vector of a text; equal requests that run at once make it once.

        Args:
            text: the text.
            build: builds a request with the embedder's settings; the text is added here.
            make: embeds the text; its failure is the caller's.
        """
        base = built(self._front, build)
        ask = base if isinstance(base, Miss) else self._front.ask(_of_text(base, text))
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            return list((yield from make))

        def made(outcome: Miss | Stale) -> Flow[Made[Floats]]:  # noqa: ARG001 - as `serve` calls it
            vector = list((yield from make))
            kept = self._kept(vector)
            return Made(output=vector, answer=None if kept is None else kept.answer)

        return (yield from self._front.serve(ask, recheck=None, read=read, make=made))

    def many(self, texts: Sequence[str], build: Build, make: MakeRows) -> Flow[list[Floats]]:
        """Return the vectors of texts in their order; those not known are made by one call.

        Where that gives another number of vectors, or vectors of another width than what was known,
        the embedder is not the one that it was: all of the texts are made anew, as without a cache,
        and stored over what was known.

        Args:
            texts: the texts; of equal ones one is made.
            build: see `one`.
            make: embeds texts; its failure is the caller's, and nothing is stored.
        """
        base = built(self._front, build)
        batch = base if isinstance(base, Miss) else (yield from self._sorted(texts, base))
        if isinstance(batch, Miss):
            self._front.bypassed(batch)
            return [list(row) for row in (yield from make(list(texts)))]
        if not batch.missing:
            return [batch.found[place] for place in range(len(texts))]
        rows = [list(row) for row in (yield from make(list(batch.missing)))]
        if not _fits(rows, batch):
            self._front.event("adapter.embedding_width")
            return (yield from self._all_anew(texts, batch.base, make))
        yield from self._keep(rows, list(batch.missing.values()))
        for row, wanted in zip(rows, batch.missing.values(), strict=True):
            batch.found.update((place, list(row)) for place in wanted.places)
        return [batch.found[place] for place in range(len(texts))]

    def _sorted(self, texts: Sequence[str], base: Request) -> Flow[_Sorted | Miss]:
        """Look all texts up; a Miss where nobody knows who asks."""
        batch = _Sorted(base, {}, {})
        down: Miss | None = None
        for place, text in enumerate(texts):
            if text in batch.missing:
                batch.missing[text].places.append(place)
                continue
            yield from _breath(place)
            ask = self._front.ask(_of_text(base, text))
            if isinstance(ask, Miss):
                if ask.reason is Reason.UNSCOPED:
                    return ask
                batch.missing[text] = _Wanted(ask, ask, [place])
                continue
            looked = down or (yield from self._front.look(ask, read=read))
            if isinstance(looked, Found):
                batch.found[place] = looked.output
                continue
            batch.missing[text] = _Wanted(ask, looked, [place])
            if isinstance(looked, Miss) and looked.reason is Reason.STORE_ERROR:
                down = looked  # it is not asked again for each of the others
        return batch

    def _all_anew(self, texts: Sequence[str], base: Request, make: MakeRows) -> Flow[list[Floats]]:
        wanted: dict[str, _Wanted] = {}
        for text in texts:
            if text not in wanted:  # with the fence of before they are made
                ask = self._front.ask(_of_text(base, text))
                if isinstance(ask, Miss):
                    wanted[text] = _Wanted(ask, ask, [])
                else:
                    outcome = yield from self._front.passed_over(ask, "of another width")
                    wanted[text] = _Wanted(ask, outcome, [])
        rows = [list(row) for row in (yield from make(list(texts)))]
        if len(rows) == len(texts):
            by_text = dict(zip(texts, rows, strict=True))
            kept = [by_text[text] for text in wanted]
            yield from self._keep(kept, list(wanted.values()))
        return rows

    def _keep(self, rows: Sequence[Floats], wanted: Sequence[_Wanted]) -> Flow[None]:
        for place, (row, one) in enumerate(zip(rows, wanted, strict=True)):
            if isinstance(one.ask, Miss) or one.outcome.reason is Reason.STORE_ERROR:
                continue
            yield from _breath(place)
            kept = self._kept(row)
            if kept is not None:
                yield from self._front.update(one.ask.request, kept, outcome=one.outcome)

    def _kept(self, vector: Sequence[float]) -> Kept | None:
        def keep() -> Kept | None:
            try:
                return Kept(stored(vector))
            except CanonicalError:
                return None

        return self._front.kept(keep)


def _of_text(base: Request, text: str) -> Request:
    return replace(base, prompt={"text": text})


def _fits(rows: Sequence[Floats], batch: _Sorted) -> bool:
    if len(rows) != len(batch.missing):
        return False
    return all(len(known) == len(rows[0]) for known in batch.found.values())


def _breath(place: int) -> Flow[None]:
    if place % _BREATH == _BREATH - 1:
        yield from Step(sync=lambda: None, aio=lambda: asyncio.sleep(0))
