"""Vectors of texts through a `Front`: what an embedder made of a text is not made again.

A vector is found by the very text (no white space is folded) and by all that makes it: the embedder with
its parameters, its dimension and the role of the text (``query`` or ``document``), which the adapter puts
into ``settings`` (cases A19, A20). Nothing of it is ever matched by meaning.
"""

from collections.abc import Callable, Sequence

import numpy as np

from stampcache.adapters.front import Found, Front, Made
from stampcache.adapters.reporting import CacheFields
from stampcache.effects import Flow, Step
from stampcache.errors import CodecError
from stampcache.model import Answer
from stampcache.outcome import Miss, Stale
from stampcache.request import Request, Settings

VECTOR = "vector.f8.1"
_DTYPE = np.dtype("<f8")
Floats = list[float]
_Missing = dict[str, list[int]]


def stored(vector: Sequence[float]) -> Answer:
    """Return a vector as it is stored: every float comes back equal."""
    return Answer(text="", payload=np.asarray(vector, dtype=_DTYPE).tobytes(), format=VECTOR)


def read(answer: Answer, report: CacheFields | None = None) -> Floats:  # noqa: ARG001 - as a `Read`
    """Return a stored vector, as the caller's own list.

    Raises:
        CodecError: what is stored is none.
    """
    if answer.format != VECTOR or len(answer.payload) % _DTYPE.itemsize or not answer.payload:
        raise CodecError(f"the stored vector has the form {answer.format!r}, or is cut off")
    floats: Floats = np.frombuffer(answer.payload, dtype=_DTYPE).tolist()
    return floats


class Vectors:
    """The vectors of one embedder behind one cache."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def one(self, text: str, settings: Settings, make: Step[Sequence[float]]) -> Flow[Floats]:
        """Return the vector of a text; equal requests that run at once make it once."""
        ask = self._front.ask(_request(text, settings))
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            return list((yield from make))

        def made(outcome: Miss | Stale) -> Flow[Made[Floats]]:  # noqa: ARG001 - as `serve` calls it
            vector = list((yield from make))
            return Made(output=vector, answer=stored(vector) if vector else None)

        return (yield from self._front.serve(ask, recheck=None, read=read, make=made))

    def many(
        self,
        texts: Sequence[str],
        settings: Settings,
        make: Callable[[list[str]], Step[Sequence[Sequence[float]]]],
    ) -> Flow[list[Floats]]:
        """Return the vectors of texts in their order; those not known are made in one batch.

        Where the batch turns out to be of another width than what was known, the embedder is not the one
        that it was: then all of the texts are made anew, and stored over what was known.
        """
        found, missing = yield from self._known(texts, settings)
        if missing:
            fresh = yield from self._made(list(missing), settings, make)
            if any(len(known) != len(fresh[0]) for known in found.values() if fresh):
                self._front.event("adapter.embedding_width")
                return (yield from self._all_anew(texts, settings, make))
            for vector, places in zip(fresh, missing.values(), strict=True):
                found.update(dict.fromkeys(places, vector))
        return [list(found[place]) for place in range(len(texts))]

    def _known(
        self, texts: Sequence[str], settings: Settings
    ) -> Flow[tuple[dict[int, Floats], _Missing]]:
        found: dict[int, Floats] = {}
        missing: _Missing = {}
        for place, text in enumerate(texts):
            if text in missing:
                missing[text].append(place)
                continue
            ask = self._front.ask(_request(text, settings))
            looked = ask if isinstance(ask, Miss) else (yield from self._front.look(ask, read=read))
            if isinstance(looked, Found):
                found[place] = looked.output
            else:
                missing[text] = [place]
        return found, missing

    def _all_anew(
        self,
        texts: Sequence[str],
        settings: Settings,
        make: Callable[[list[str]], Step[Sequence[Sequence[float]]]],
    ) -> Flow[list[Floats]]:
        distinct = list(dict.fromkeys(texts))
        fresh = yield from self._made(distinct, settings, make)
        by_text = dict(zip(distinct, fresh, strict=True))
        return [list(by_text[text]) for text in texts]

    def _made(
        self,
        texts: list[str],
        settings: Settings,
        make: Callable[[list[str]], Step[Sequence[Sequence[float]]]],
    ) -> Flow[list[Floats]]:
        fresh = [list(vector) for vector in (yield from make(list(texts)))]
        if len(fresh) != len(texts):
            raise ValueError(f"the embedder made {len(fresh)} vectors of {len(texts)} texts")
        for text, vector in zip(texts, fresh, strict=True):
            if vector:
                request = _request(text, settings)
                yield from self._front.update(request, stored(vector), outcome=None)
        return fresh


def _request(text: str, settings: Settings) -> Request:
    return Request(prompt={"text": text}, settings=settings)
