"""What a plain function would do, as a JSON value: another function is another identity (ADR 0003).

A function is known by its name, its bytecode and every value that it sees: defaults, closure and
the global names it reads. Functions that it sees are followed; of those from installed packages the
globals do not count, since name and bytecode tell their version. What a function itself writes (a
counter, a list of its calls), iterators and locks are its state and do not count. What sees another
object without such a value (a client, an open file) raises `CanonicalError`: two of them could not
be told apart.
"""

import dis
import enum
import functools
import logging
import operator
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import PurePath
from types import NoneType
from typing import TypeAlias

from stampcache import canonical
from stampcache.errors import CanonicalError

Resolve: TypeAlias = Callable[[object], object]
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_CODES_KEPT = 1_024
_LOADS = frozenset({"LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_STORES = frozenset({"STORE_DEREF", "STORE_GLOBAL"})
_KEYS = _LOADS | {"LOAD_CONST", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_SMALL_INT"}
_ATTRIBUTES = frozenset({"LOAD_METHOD", "LOAD_ATTR"})
_CHANGES = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "COPY"})
_MUTATORS = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
    "popleft", "remove", "setdefault", "update",
})  # fmt: skip
_CONTAINERS = (list, dict, set, deque)
_PRIMITIVES = ("threading", "_thread", "asyncio.locks")
_CONSTANTS = (str, bytes, int, float, tuple, frozenset, re.Pattern, enum.Enum)


def no_form(thing: object) -> object:
    """Refuse an object of which nothing but its memory address is known.

    Raises:
        CanonicalError: always.
    """
    raise CanonicalError(f"an object of type {type(thing).__qualname__} has no canonical form")


def callable_identity(function: object, *, resolve: Resolve = no_form) -> object:
    """Return a JSON value that changes when what the function does may change.

    Args:
        function: a function, lambda, built-in, class or method of a class, `functools.partial`, or
            a getter of `operator`.
        resolve: gives the JSON value of an object that the function sees and that is neither JSON
            nor callable, or raises `CanonicalError`.

    Raises:
        CanonicalError: it cannot be identified; the message names the part.
    """
    return _Walk(resolve).callable(function)


def value_identity(seen: object, *, resolve: Resolve = no_form) -> object:
    """Return the JSON value of plain data, a function, or a container of them; see there.

    Raises:
        CanonicalError: a part of it cannot be identified.
    """
    return _Walk(resolve).value(seen)


class _Walk:
    """One identification; remembers what it has followed, since functions may call each other."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._followed: set[int] = set()
        self._package: str | None = None

    def callable(self, function: object) -> object:
        """Return the identity of a callable, or raise `CanonicalError`."""
        match function:
            case types.FunctionType():
                return self._function(function)
            case functools.partial():
                parts = {"args": list(function.args), "keywords": dict(function.keywords)}
                return {"partial": self.callable(function.func), "with": self.value(parts)}
            case types.MethodType() if isinstance(function.__self__, type):
                owner = _name(function.__self__)
                return {"method_of": owner, "is": self.callable(function.__func__)}
            case types.BuiltinFunctionType() if _is_free(function):
                return {"builtin": _name(function)}
            case types.MethodDescriptorType():
                return {"builtin": f"{function.__objclass__.__qualname__}.{function.__name__}"}
            case type():
                return self._class(function)
            case _ if isinstance(function, _GETTERS):
                return {"getter": _said(function)}
        raise CanonicalError(
            f"a {type(function).__qualname__} is no plain function, so what it does is unknown"
        )

    def _function(self, function: types.FunctionType) -> object:
        known: dict[str, object] = {"function": _name(function)}
        if id(function) in self._followed:
            return known
        self._followed.add(id(function))
        known["code"] = _code_digest(function.__code__)
        known["defaults"] = self.value(list(function.__defaults__ or ()))
        known["keywords"] = self.value(dict(function.__kwdefaults__ or {}))
        known["sees"] = self._seen(function, _closure(function))
        if self._is_ours(function.__module__ or "", function.__code__.co_filename):
            known["reads"] = self._seen(function, self._globals(function))
        return known

    def _seen(
        self, function: types.FunctionType, seen: Iterator[tuple[str, object]]
    ) -> dict[str, object]:
        """Return what a function sees; what it writes itself is its state, such as a counter."""
        written = _names_written(function.__code__)
        return {
            name: _state(value)
            if name in written and isinstance(value, (*_CONTAINERS, int, float, str, NoneType))
            else self.value(value)
            for name, value in seen
        }

    def _globals(self, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        """Yield the globals that a function reads, and what it reads of modules of the app."""
        for name in globals_read(function.__code__):
            if name not in function.__globals__:
                continue
            value: object = function.__globals__[name]
            yield name, value
            if isinstance(value, types.ModuleType):
                file = getattr(value, "__file__", None) or ""
                if file and self._is_ours(value.__name__, file):
                    for attribute in sorted(
                        _attributes_read(function.__code__) & vars(value).keys()
                    ):
                        yield f"{name}.{attribute}", vars(value)[attribute]

    def _is_ours(self, module: str, file: str) -> bool:
        """Tell code of the app from that of installed packages."""
        package = module.partition(".")[0]
        if self._package is None:
            self._package = package
        if package in sys.stdlib_module_names:
            return False
        return package == self._package or not re.search(r"(site|dist)-packages", file)

    def _class(self, kind: type) -> object:
        """Return the identity of a class: the code of its methods, its constants, its bases."""
        name = _name(kind)
        if id(kind) in self._followed or kind.__module__ == "builtins":
            return {"class": name}
        self._followed.add(id(kind))
        own = {
            label: _code_digest(function.__code__)
            for label, member in vars(kind).items()
            for function in functions_of(member)
        }
        constants = {
            label: self.value(member)
            for label, member in vars(kind).items()
            if not label.startswith("_") and isinstance(member, _CONSTANTS)
        }
        bases = [self._class(base) for base in kind.__bases__ if base is not object]
        return {"class": name, "code": own, "constants": constants, "bases": bases}

    def value(self, seen: object) -> object:
        """Return the identity of anything that a function may see, or raise `CanonicalError`."""
        match seen:
            case None | str() | bool() | int() | float() if not isinstance(seen, enum.Enum):
                return seen
            case list() | tuple():
                return [self.value(item) for item in seen]
            case Mapping():
                return {_key(name): self.value(item) for name, item in seen.items()}
            case set() | frozenset():
                return sorted((self.value(item) for item in seen), key=canonical.value)
            case enum.Enum():
                return {"enum": _name(type(seen)), "name": seen.name}
            case bytes() | PurePath() | re.Pattern():
                return {"constant": type(seen).__qualname__, "is": repr(seen)}
            case types.ModuleType():
                return {"module": seen.__name__}
            case logging.Logger():
                return {"logger": seen.name}
            case Iterator():
                return _state(seen)
        if isinstance(seen, (type, functools.partial, *_FUNCTIONS, *_GETTERS)):
            return self.callable(seen)
        if type(seen).__module__ in _PRIMITIVES:
            return _state(seen)
        return self._resolve(seen)


_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
)


def _name(thing: object) -> str:
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', None)}"


def _said(getter: object) -> str:
    """Return a getter as it was written, unless it holds an object that only has an address."""
    said = repr(getter)
    if " at 0x" in said:
        raise CanonicalError(f"{said} holds an object that has no canonical form")
    return said


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise CanonicalError(f"a mapping has the key {name!r}, which is no string")
    return name


def _is_free(function: types.BuiltinFunctionType) -> bool:
    """Tell a function of a C module from a method bound to an object, whose state is unknown."""
    return function.__self__ is None or isinstance(function.__self__, (types.ModuleType, type))


def _closure(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a name that is bound later
            yield name, None


def _state(value: object) -> object:
    """Return what stands for something that a function keeps between its calls."""
    return {"state": type(value).__qualname__}


def functions_of(member: object) -> Iterator[types.FunctionType]:
    """Yield the plain function behind a member of a class, whatever kind of method it is."""
    match member:
        case types.FunctionType():
            yield member
        case staticmethod() | classmethod():
            yield from functions_of(member.__func__)
        case property():
            yield from functions_of(member.fget)
        case functools.cached_property():
            yield from functions_of(member.func)


@functools.lru_cache(maxsize=_CODES_KEPT)
def _code_digest(code: types.CodeType) -> str:
    """Return a digest of what the code does; where it stands in its file does not enter."""
    parts = [code.co_code, code.co_exceptiontable]
    parts += [canonical.value([code.co_names, code.co_varnames, code.co_freevars])]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    parts += [canonical.value(counts), *(_constant(each) for each in code.co_consts)]
    return canonical.digest(parts, person=b"code")


def _constant(constant: object) -> bytes:
    """Return a constant of bytecode as bytes that do not depend on the order of a set."""
    match constant:
        case types.CodeType():
            return _code_digest(constant).encode()
        case tuple():
            return b"tuple" + canonical.joined(_constant(each) for each in constant)
        case frozenset():
            return b"set" + canonical.joined(sorted(_constant(each) for each in constant))
    return f"{type(constant).__name__}:{constant!r}".encode("utf-8", "surrogatepass")


@functools.lru_cache(maxsize=_CODES_KEPT)
def globals_read(code: types.CodeType) -> tuple[str, ...]:
    """Return the global names that the code, and the functions defined in it, read."""
    names = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname in _LOADS and step.opname != "LOAD_DEREF"
    }
    for inner in _inner(code):
        names.update(globals_read(inner))
    return tuple(sorted(names))


@functools.lru_cache(maxsize=_CODES_KEPT)
def _attributes_read(code: types.CodeType) -> frozenset[str]:
    """Return the names of all attributes that the code, and the functions in it, mention."""
    return frozenset(code.co_names).union(*(_attributes_read(inner) for inner in _inner(code)))


@functools.lru_cache(maxsize=_CODES_KEPT)
def _names_written(code: types.CodeType) -> frozenset[str]:
    """Return the outer names that the code rebinds or whose containers it changes in place.

    ``calls.append(1)``, ``seen[key] += 1`` and ``nonlocal count`` are found; what a function does
    through another name is not.
    """
    steps = _steps(code)
    names = {str(step.argval) for step in steps if step.opname in _STORES}
    for step, after in pairwise(steps):
        if step.opname in _LOADS and _mutates(after):
            names.add(str(step.argval))
    for step, key, after in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname in _LOADS and key.opname in _KEYS and after.opname in _CHANGES:
            names.add(str(step.argval))
    return frozenset(names).union(*(_names_written(inner) for inner in _inner(code)))


@functools.lru_cache(maxsize=_CODES_KEPT)
def attributes_written(code: types.CodeType) -> frozenset[str]:
    """Return the attributes of its object that a method sets, or whose containers it changes in place.

    ``self.calls += 1`` and ``self.seen.append(text)`` are found; what it does through another name,
    or to another object, is not.
    """
    return _written_to(code.co_varnames[0], code) if code.co_argcount else frozenset()


def _written_to(owner: str, code: types.CodeType) -> frozenset[str]:
    steps = _steps(code)
    names: set[str] = set()
    for at, step in enumerate(steps):
        if not _loads(step, owner):
            continue
        first, second, third = [*steps[at + 1 : at + 4], step, step, step][:3]
        if first.opname in ("STORE_ATTR", "DELETE_ATTR"):
            names.add(str(first.argval))
        if first.opname == "COPY" and second.opname in _ATTRIBUTES:  # self.calls += 1
            names.add(str(second.argval))
        in_place = _mutates(second) or (second.opname in _KEYS and third.opname in _CHANGES)
        if first.opname in _ATTRIBUTES and in_place:
            names.add(str(first.argval))
    return frozenset(names).union(*(_written_to(owner, inner) for inner in _inner(code)))


def _loads(step: dis.Instruction, name: str) -> bool:
    """Tell whether a step puts this variable on top of the stack, alone or after another one."""
    loaded = step.argval[-1] if isinstance(step.argval, tuple) and step.argval else step.argval
    ways = ("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")
    return step.opname.startswith(ways) and loaded == name


def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "NOP")]


def _mutates(step: dis.Instruction) -> bool:
    return step.opname in _ATTRIBUTES and step.argval in _MUTATORS


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [each for each in code.co_consts if isinstance(each, types.CodeType)]
