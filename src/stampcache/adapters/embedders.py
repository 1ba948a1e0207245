"""What an embedder would make of a text, read from its live object: the settings of its vectors.

Frameworks' embedders are known by what they hold: nothing of a framework is imported. Everything is
keyed but secrets, how calls are paced, and what the embedder's own calls write (a counter, a client that
is made when it is needed). It is read anew for each call, so that a changed setting is another identity.
"""

import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from stampcache import canonical
from stampcache.adapters.fingerprint import callable_identity, no_form, value_identity
from stampcache.adapters.state import written_by
from stampcache.embedders.frameworks import MODEL_NAMES, behind
from stampcache.errors import CanonicalError, ConfigError
from stampcache.model import Stamps
from stampcache.request import Seam, Settings
from stampcache.unkeyed import CALLING, holds_secret, shaping

Role: TypeAlias = Literal["query", "document"]
"""What a text is embedded as: the vectors of the two are never exchanged (case A19)."""

_CALLS = (
    "embed_query", "embed_documents", "aembed_query", "aembed_documents",
    "_get_query_embedding", "_get_text_embedding", "_get_text_embeddings",
    "_aget_query_embedding", "_aget_text_embedding", "_aget_text_embeddings",
)  # fmt: skip
_NO_SETTING = CALLING | {"embeddings_cache"}  # LlamaIndex's own cache is not asked
_MAX_DEPTH = 8
_SETTINGS_KEPT = 64
_MODULES_KEPT = 1_024


class _Part(Struct, frozen=True):
    """One attribute. A ``hidden`` one that is no plain value is the client or the weights.

    They go by the name of the model, where there is one.
    """

    name: str
    value: object
    hidden: bool


class EmbedderSettings:
    """Reads one embedder, again and again; safe for threads and tasks."""

    def __init__(self, embedder: object, *, framework: str, version: str | None) -> None:
        """``version`` stands for the parts of the embedder that cannot be identified."""
        self._embedder = behind(embedder)
        self._framework = framework
        self._version = version
        self._classes: dict[type, object] = {}
        self._known: dict[bytes, Settings] = {}

    def check(self) -> None:
        """Refuse at construction what could never be cached.

        Raises:
            ConfigError: it is no embedder, or a part of it has no identity.
        """
        if not _embeds(self._embedder):
            what = getattr(self._embedder, "__qualname__", type(self._embedder).__qualname__)
            raise ConfigError(f"{what} is no embedder; pass an object that embeds texts.")
        try:
            self.of("query")
        except CanonicalError as error:
            raise ConfigError(
                f"This embedder cannot be told from another one: {error}. Pass version= (any text that"
                " you change whenever its vectors change), or use plain settings there."
            ) from error

    def of(self, role: Role) -> Settings:
        """Return the settings in force for texts of this role.

        Raises:
            CanonicalError: a part of the embedder has no identity; the message names it.
        """
        params = {
            "framework": self._framework,
            "role": role,
            "version": self._version,
            "embedder": self._described(self._embedder, type(self._embedder).__name__, 0),
        }
        written = canonical.value(params)
        known = self._known.get(written)
        if known is None:
            model = _named_model(self._embedder) or _dotted(type(self._embedder))
            stamps = Stamps(embedder=model)
            known = Settings(params=params, stamps=stamps, seam=Seam.VECTOR)
            if len(self._known) >= _SETTINGS_KEPT:
                self._known.clear()
            self._known[written] = known
        return known

    def _described(self, item: object, where: str, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise CanonicalError(f"{where} is nested deeper than {_MAX_DEPTH} levels")
        state, named = written_by(type(item), _CALLS), bool(_named_model(item))
        read: dict[str, object] = {}
        for part in _parts_of(item):
            bare = part.name.lstrip("_")
            if bare in _NO_SETTING or holds_secret(bare, part.value) or _is_state(part, state):
                continue
            if part.hidden and part.value is None:
                continue  # what is made when it is needed
            try:
                read[part.name] = self._value(part, f"{where}.{part.name}", depth)
            except CanonicalError:
                if self._version is None and (not (part.hidden and named) or _embeds(part.value)):
                    raise
        return {"class": self._class(type(item)), "settings": read}

    def _value(self, part: _Part, where: str, depth: int) -> object:
        def resolve(seen: object) -> object:
            if isinstance(seen, np.generic):
                return seen.item()
            if callable(getattr(type(seen), "get_secret_value", None)):
                return {"secret": type(seen).__qualname__}
            inner = behind(seen)
            if _embeds(inner) or isinstance(_fields_of(type(inner)), Mapping):
                return self._described(inner, where, depth + 1)
            return no_form(seen)

        try:
            return value_identity(_kept(part.name, part.value), resolve=resolve)
        except CanonicalError as error:
            if self._version is None or part.hidden:
                raise CanonicalError(f"{where}: {error}") from error
            return {"opaque": _dotted(type(part.value))}

    def _class(self, kind: type) -> object:
        """Return a class by its name and, unless it comes with a package, the code of its methods."""
        known = self._classes.get(kind)
        if known is None:
            try:
                known = _dotted(kind) if _is_installed(kind) else callable_identity(kind)
            except CanonicalError as error:
                if self._version is None:
                    raise CanonicalError(f"{_dotted(kind)}: {error}") from error
                known = _dotted(kind)
            self._classes[kind] = known
        return known


def _parts_of(item: object) -> Iterator[_Part]:
    """Give the attributes of an object; of a pydantic one its fields, before what it hides."""
    kind = type(item)
    installed, fields = _is_installed(kind), _fields_of(kind)
    if fields is None:
        held = dict(getattr(item, "__dict__", {}))
        slots = {name for base in kind.__mro__ for name in _slots(base) if hasattr(item, name)}
        held |= {name: getattr(item, name) for name in slots}
        yield from (_Part(name, value, hidden=installed) for name, value in held.items())
        return
    for name, field in fields.items():
        excluded = getattr(field, "exclude", None) is True
        yield _Part(name, getattr(item, name), hidden=excluded or installed)
    for holder, hidden in (("__pydantic_extra__", installed), ("__pydantic_private__", True)):
        for name, value in (getattr(item, holder, None) or {}).items():
            yield _Part(name, value, hidden=hidden)


def _fields_of(kind: type) -> Mapping[str, object] | None:
    fields = getattr(kind, "model_fields", None)
    return fields if isinstance(fields, Mapping) else None


def _slots(kind: type) -> tuple[str, ...]:
    slots: Any = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


def _is_state(part: _Part, written: frozenset[str]) -> bool:
    """Tell whether an attribute is written by calls; what names the model never is their state."""
    return part.name in written and not (part.name in MODEL_NAMES and isinstance(part.value, str))


def _kept(name: str, value: object) -> object:
    """Return a value without the secrets that are in it, however deep."""
    shaped = shaping(name, value)
    if isinstance(shaped, Mapping):
        return {
            key: _kept(str(key), inner)
            for key, inner in shaped.items()
            if not holds_secret(str(key), inner)
        }
    if isinstance(shaped, list | tuple):
        return [_kept(name, inner) for inner in shaped]
    if isinstance(shaped, str) and "://" in shaped:
        scheme, _, rest = shaped.partition("://")
        authority, slash, path = rest.partition("/")
        return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"  # no user, no password
    return shaped


def _embeds(seen: object) -> bool:
    names = ("embed_query", "get_query_embedding")
    return any(callable(getattr(type(seen), name, None)) for name in names)


def _is_installed(kind: type) -> bool:
    """Tell whether a class comes with a package, whose model's name stands for its weights."""
    return _is_of_package(kind.__module__)


@functools.lru_cache(maxsize=_MODULES_KEPT)
def _is_of_package(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _named_model(embedder: object) -> str:
    found = (getattr(embedder, name, None) for name in MODEL_NAMES)
    named = (each for each in found if isinstance(each, str) and each and each != "unknown")
    return next(named, "")


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
