"""What a search looks at that may change without a write that is told of: metadata, white space."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from langchain_core.documents import Document

_WORD = re.compile(r"\w+")
_ANYTHING = "anything"
SPACES = "white space"
"""What of a text counts as no change, beside the forms of its letters."""


class _TooMuch(Exception):
    """A filter looks at all metadata there is."""


class _Lasting(dict[str, Any]):
    """Metadata that tells which names are looked up in it, and lets nobody look at all of it."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.seen.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return super().__contains__(name)

    def _all(self, *_: object, **__: object) -> NoReturn:
        self.seen.add(_ANYTHING)
        raise _TooMuch

    __iter__ = __reversed__ = __len__ = __eq__ = __ne__ = __or__ = __ror__ = __repr__ = _all
    items = keys = values = copy = pop = popitem = setdefault = update = clear = _all
    __reduce_ex__ = _all
    __hash__ = None


def looked_at(given: object, volatile: frozenset[str]) -> str:
    """Return metadata among the volatile that an option of a search names; empty where it names none."""
    if callable(given) and not isinstance(given, type):
        return ""  # see `function_looks_at`
    return min(volatile.intersection(_WORD.findall(repr(given))), default="")


def text_looked_at(given: object) -> str:
    """Return what a filter over texts looks at that is folded: white space, and forms of letters."""
    said = [one for one in _strings_in(given) if not one.startswith("$")]
    is_plain = all(one.isascii() and not any(map(str.isspace, one)) for one in said)
    return "" if is_plain and "regex" not in repr(given) else SPACES


def function_looks_at(
    given: Callable[..., Any], found: Sequence[Document], volatile: frozenset[str]
) -> str:
    """Return what a function that filters looks at of what changes unseen.

    It is watched while it looks at documents that it let through. At those that it left out it may look
    otherwise, so the names in its code count, too. A function that cannot be watched or read is said to
    look at everything.
    """
    if not found or not isinstance(given, FunctionType):
        return _ANYTHING
    named = {word for one in _functions_from(given) for word in _words_in(one)}
    seen = {*named & volatile, *([SPACES] if "page_content" in named else ())}
    for one in found:
        metadata = _Lasting(one.metadata)
        document = one.model_copy()
        document.metadata = metadata
        if not any(
            [_runs(given, document), _runs(given, metadata)]
        ):  # stores give one or the other
            return _ANYTHING
        seen |= metadata.seen
    return _ANYTHING if _ANYTHING in seen else min(seen & {*volatile, SPACES}, default="")


def _functions_from(given: FunctionType) -> list[FunctionType]:
    """Return a function with those that it sees, and those that these see."""
    found = [given]
    for one in found:  # which grows meanwhile
        seen = (other for other in _seen_by(one) if isinstance(other, FunctionType))
        found += [other for other in seen if other not in found]
    return found


def _words_in(given: FunctionType) -> Iterator[str]:
    """Yield the words in the code of a function, and in what it sees that is no function."""
    for code in _codes_in(given.__code__):
        yield from (*code.co_names, *_WORD.findall(repr(code.co_consts)))
    for one in _seen_by(given):
        if not isinstance(one, FunctionType | ModuleType):
            yield from _WORD.findall(repr(one))


def _seen_by(given: FunctionType) -> Iterator[object]:
    """Yield what a function sees from around it."""
    for code in _codes_in(given.__code__):
        yield from (given.__globals__[one] for one in code.co_names if one in given.__globals__)
    yield from (*(given.__defaults__ or ()), *(given.__kwdefaults__ or {}).values())
    for cell in given.__closure__ or ():
        with suppress(ValueError):  # a name that is bound later
            yield cell.cell_contents


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes_in(one)


def _strings_in(given: object) -> Iterator[str]:
    match given:
        case str():
            yield given
        case Mapping():
            for name, value in given.items():
                yield from (*_strings_in(name), *_strings_in(value))
        case list() | tuple():
            for one in given:
                yield from _strings_in(one)


def _runs(given: Callable[..., Any], argument: object) -> bool:
    try:
        given(argument)
    except Exception:  # noqa: BLE001 - it is asked with two arguments, one of which it takes
        return False
    return True
