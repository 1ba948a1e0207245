"""Embedders of LangChain and LlamaIndex, known by their methods alone: neither is imported here.

What such an object is called decides which vectors are compared with which. The name is built from
its class and from settings that change the vectors; keys and memory addresses never enter it.
"""

import asyncio
import hashlib
import inspect
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike

from stampcache.calibration import MINILM
from stampcache.embedders.scripts import check_english_script
from stampcache.errors import WindowError
from stampcache.model import Vector
from stampcache.unkeyed import is_secret

MINILM_DIMENSION = 384
MINILM_WINDOW = 256
_SPECIAL_TOKENS = 2
_MINILM_NAMES = frozenset({MINILM, f"sentence-transformers/{MINILM}"})
MODEL_NAMES = ("model", "model_name", "model_id", "repo_id", "deployment", "deployment_name",
          "azure_deployment")  # fmt: skip
_SHAPE = ("dimensions", "output_dimensionality", "truncate_dim", "revision", "task_type",
          "query_instruction", "embed_instruction", "query_prefix", "pooling")  # fmt: skip
_ENDPOINT = ("base_url", "api_base", "openai_api_base", "azure_endpoint", "endpoint",
             "endpoint_url")  # fmt: skip
_NESTED = ("model_kwargs", "encode_kwargs", "query_encode_kwargs", "additional_kwargs")
_NO_MATTER = frozenset({
    "batch_size", "chunk_size", "convert_to_numpy", "device", "embed_batch_size", "max_retries",
    "normalize", "normalize_embeddings", "num_workers", "show_progress", "show_progress_bar",
    "timeout", "trust_remote_code",
})  # fmt: skip


@runtime_checkable
class QueryEmbeddings(Protocol):
    """What is used of a LangChain ``Embeddings``."""

    def embed_query(self, text: str) -> ArrayLike:
        """Embed a text in the role of a query."""
        ...

    def embed_documents(self, texts: list[str]) -> ArrayLike:
        """Embed texts in the role of documents; never called here."""
        ...


@runtime_checkable
class AsyncQueryEmbeddings(Protocol):
    """What is used of a LangChain ``Embeddings`` in tasks."""

    async def aembed_query(self, text: str) -> ArrayLike:
        """Embed a text in the role of a query, without blocking the event loop."""
        ...


@runtime_checkable
class QueryEmbedding(Protocol):
    """What is used of a LlamaIndex ``BaseEmbedding``."""

    model_name: str

    def get_query_embedding(self, query: str) -> ArrayLike:
        """Embed a text in the role of a query."""
        ...


@runtime_checkable
class StandsBefore(Protocol):
    """A proxy, which gives the very vectors of another embedder."""

    @property
    def stands_before(self) -> object:
        """The embedder whose vectors it gives."""
        ...


class LangChainEmbedder:
    """A LangChain ``Embeddings`` object as an embedder of questions."""

    def __init__(self, raw: QueryEmbeddings) -> None:
        self._raw = raw
        self.name = name_of(raw)
        self.dimension = MINILM_DIMENSION if self.name == MINILM else None
        self.window = MINILM_WINDOW if self.name == MINILM else None

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text, embedded in the role of a query."""
        _check_readable(texts, self)
        return np.asarray([self._raw.embed_query(text) for text in texts], dtype=np.float32)

    async def aembed(self, texts: Sequence[str]) -> Vector:
        """Return the same without blocking the event loop."""
        if not isinstance(self._raw, AsyncQueryEmbeddings):
            return await asyncio.to_thread(self.embed, texts)
        _check_readable(texts, self)
        return np.asarray([await self._raw.aembed_query(text) for text in texts], dtype=np.float32)


class LlamaIndexEmbedder:
    """A LlamaIndex ``BaseEmbedding`` object as an embedder of questions.

    It has no ``aembed``, so that tasks run it in a thread: the framework's models on this machine
    implement ``aget_query_embedding`` by a plain call, which would block the event loop.
    """

    def __init__(self, raw: QueryEmbedding) -> None:
        self._raw = raw
        self.name = name_of(raw)
        self.dimension = MINILM_DIMENSION if self.name == MINILM else None
        declared = getattr(behind(raw), "max_length", None)
        known = declared if isinstance(declared, int) else None
        self.window = min(known or MINILM_WINDOW, MINILM_WINDOW) if self.name == MINILM else known

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text, embedded in the role of a query."""
        _check_readable(texts, self)
        return np.asarray([self._raw.get_query_embedding(text) for text in texts], dtype=np.float32)


def _check_readable(
    texts: Sequence[str], embedder: "LangChainEmbedder | LlamaIndexEmbedder"
) -> None:
    for text in texts:
        if embedder.name == MINILM:
            check_english_script(text)
        if embedder.window is not None:
            _check_window(text, embedder.window)


def _check_window(text: str, window: int) -> None:
    """Refuse what may be cut off: here is no tokenizer, but no token is shorter than a byte."""
    decomposed = unicodedata.normalize("NFKD", "".join(text.split()))
    most = len(decomposed.encode("utf-8", "replace")) + _SPECIAL_TOKENS
    if most > window:
        raise WindowError(
            f"The question may have up to {most} tokens, and this embedder reads {window} and cuts "
            'off the rest unseen; embedder="minilm" counts them exactly.'
        )


def is_minilm(model: str) -> bool:
    """Tell whether this is a name under which all-MiniLM-L6-v2 is published."""
    return model.lower() in _MINILM_NAMES


def name_of(raw: object) -> str:
    """Return a name that stands for the weights and for the settings that change the vectors.

    An object that does not name its model is called by its class and by the plain values that it
    was constructed with (texts among them as digests). A proxy is called as what it stands before.
    """
    raw = behind(raw)
    models = _texts(raw, MODEL_NAMES)
    facts: dict[str, object] = {**models, **_plain(raw, _SHAPE), **_endpoints(raw), **_nested(raw)}
    if models and facts == models and all(is_minilm(model) for model in models.values()):
        return MINILM
    if not models:
        facts |= dict(_constructed(raw))
    kind = type(raw)
    said = ",".join(f"{name}={facts[name]!r}" for name in sorted(facts))
    return f"{kind.__module__}.{kind.__qualname__}({said})"


def behind(raw: object) -> object:
    """Return the embedder that makes the vectors of a proxy, or what is none itself."""
    while isinstance(raw, StandsBefore) and hasattr(type(raw), "stands_before"):
        raw = raw.stands_before
    return raw


def _texts(raw: object, names: Sequence[str]) -> dict[str, str]:
    found = {name: getattr(raw, name, None) for name in names}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, str) and value and value != "unknown"
    }


def _plain(raw: object, names: Sequence[str]) -> dict[str, object]:
    found = {name: getattr(raw, name, None) for name in names}
    return {
        name: value
        for name, value in found.items()
        if value and isinstance(value, str | int | float)
    }


def _endpoints(raw: object) -> dict[str, object]:
    """Return host and path only: user names, passwords and queries of a URL may be secrets."""
    endpoints: dict[str, object] = {}
    for name, url in _texts(raw, _ENDPOINT).items():
        parts = urlsplit(url)
        endpoints[name] = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return endpoints


def _nested(raw: object) -> dict[str, object]:
    nested: dict[str, object] = {}
    for outer in _NESTED:
        settings = getattr(raw, outer, None)
        if isinstance(settings, Mapping):
            nested |= {f"{outer}.{name}": value for name, value in _chosen(settings)}
    return nested


def _constructed(raw: object) -> Iterator[tuple[str, object]]:
    """Give what the object was made with; other attributes may be counters that change with use."""
    declared = getattr(type(raw), "model_fields", None) or _parameters(type(raw))
    return _chosen({name: getattr(raw, name, None) for name in declared})


def _parameters(kind: type) -> Iterable[str]:
    try:
        return inspect.signature(kind).parameters
    except ValueError:  # a class written in C need not say
        return ()


def _chosen(settings: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if (
            name.startswith("_")
            or name in _NO_MATTER
            or is_secret(name)
            or name.endswith("headers")
        ):
            continue
        if isinstance(value, str):
            yield name, hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest()
        elif isinstance(value, int | float):
            yield name, value
