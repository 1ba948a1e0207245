"""The identities of functions that were read before, while a quick look finds nothing changed in them.

Reading a function anew (`callable_identity`) follows all that it sees. Most functions see nothing but
constants, classes and other functions: of those it is enough to see that each is the very same object,
with the very same code. Whatever sees more is read anew each time.
"""

import enum
import operator
import re
import sys
import types
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from stampcache.adapters.fingerprint import (
    Resolve,
    callable_identity,
    functions_of,
    globals_read,
)

FUNCTIONS_KEPT = 256
_MISSING = object()
_CONSTANTS = (str, bytes, int, float, types.NoneType, enum.Enum, re.Pattern, PurePath)
_HOLDERS = (tuple, frozenset)


class _Unwatchable(Exception):
    """It sees something whose state does not show in what it is."""


class _FunctionSeen(Struct, frozen=True):
    function: Any  # a plain function, which as a member would be taken for a method
    is_: list[object]
    reads: tuple[str, ...]

    def holds(self) -> bool:
        """Tell whether it, and each thing that it sees, are the very same."""
        return _same(_parts_of(self.function, self.reads), self.is_)


class _ClassSeen(Struct, frozen=True):
    kind: type
    bases: tuple[type, ...]
    names: list[str]
    members: list[object]
    functions: list[types.FunctionType]
    codes: list[object]

    def holds(self) -> bool:
        """Tell whether its members are the very same, with the same code."""
        own = vars(self.kind)
        return (
            self.kind.__bases__ == self.bases
            and [self.kind.__qualname__, *own] == self.names
            and _same(list(own.values()), self.members)
            and _same([each.__code__ for each in self.functions], self.codes)
        )


class _Known(Struct, frozen=True):
    """An identity, and all that it was read from; kept alive, so that no other has its id."""

    identity: object
    watched: "_Watched"


class KnownFunctions:
    """Identities of callables, by the objects themselves; bounded, safe for threads."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def identity(self, function: object, *, resolve: Resolve) -> object:
        """Return the identity of a callable, as `callable_identity` does.

        Raises:
            CanonicalError: see there.
        """
        if not isinstance(function, types.FunctionType):
            return callable_identity(function, resolve=resolve)
        known = self._known.get(id(function))
        if known is not None and known.watched.holds():
            return known.identity
        watched = _watched(function)  # before it is read: a change meanwhile will show
        identity = callable_identity(function, resolve=resolve)
        if watched is not None:
            if len(self._known) >= FUNCTIONS_KEPT:
                self._known = {}
            self._known[id(function)] = _Known(identity, watched)
        return identity


class _Watched:
    """All that one function sees, and what those see in turn."""

    def __init__(self) -> None:
        self._seen: dict[int, _FunctionSeen | _ClassSeen] = {}

    def holds(self) -> bool:
        """Tell whether nothing has changed since."""
        return all(seen.holds() for seen in self._seen.values())

    def function(self, function: types.FunctionType) -> None:
        """Take down a function, or raise `_Unwatchable`."""
        if id(function) in self._seen:
            return
        reads = globals_read(function.__code__)
        parts = _parts_of(function, reads)
        self._seen[id(function)] = _FunctionSeen(function, parts, reads)
        for part in parts:
            self._part(part)

    def _part(self, part: object) -> None:
        if part is _MISSING or isinstance(part, (*_CONSTANTS, types.CodeType)):
            return
        if isinstance(part, types.FunctionType):
            self.function(part)
        elif isinstance(part, type):
            self._class(part)
        elif type(part) in _HOLDERS:
            for each in part:  # type: ignore[attr-defined]  # of both
                self._part(each)
        elif not _is_of_stdlib(part):
            raise _Unwatchable

    def _class(self, kind: type) -> None:
        if id(kind) in self._seen or kind.__module__ == "builtins":
            return
        own = dict(vars(kind))
        functions = [each for member in own.values() for each in functions_of(member)]
        self._seen[id(kind)] = _ClassSeen(
            kind,
            kind.__bases__,
            [kind.__qualname__, *own],
            list(own.values()),
            functions,
            [each.__code__ for each in functions],
        )
        for member in own.values():
            if type(member) in _HOLDERS:
                self._part(member)
        for base in kind.__bases__:
            self._class(base)


def _watched(function: types.FunctionType) -> _Watched | None:
    watched = _Watched()
    try:
        watched.function(function)
    except _Unwatchable:
        return None
    return watched


def _parts_of(function: types.FunctionType, reads: tuple[str, ...]) -> list[object]:
    """Return what the identity of a function is read from, of which a mapping is never the same."""
    parts: list[object] = [function.__module__, function.__qualname__, function.__code__]
    parts += [function.__defaults__, dict(function.__kwdefaults__ or {}) or None]
    parts += _closure(function)
    known = function.__globals__
    parts += [known.get(name, _MISSING) for name in reads]
    return parts


def _closure(function: types.FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # of a name that is bound later
            yield _MISSING


def _is_of_stdlib(part: object) -> bool:
    """Tell whether a part is a module or a function of Python itself."""
    name = getattr(part, "__name__" if isinstance(part, types.ModuleType) else "__module__", None)
    kinds = (types.ModuleType, types.BuiltinFunctionType)
    top = str(name).partition(".")[0]
    return isinstance(part, kinds) and top in sys.stdlib_module_names


def _same(parts: list[object], others: list[object]) -> bool:
    return len(parts) == len(others) and all(map(operator.is_, parts, others))
