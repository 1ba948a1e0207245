"""Which metadata a search looks at that may change without a write that is told of."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from langchain_core.documents import Document

_WORD = re.compile(r"\w+")
_ANYTHING = "anything"


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


def function_looks_at(
    given: Callable[..., Any], found: Sequence[Document], volatile: frozenset[str]
) -> str:
    """Return what a function that filters looks at of the volatile, in documents that it let through.

    A function that could not be watched is said to look at everything.
    """
    if not found:
        return _ANYTHING
    seen = set[str]()
    for one in found:
        metadata = _Lasting(one.metadata)
        document = one.model_copy()
        document.metadata = metadata
        if not any(
            [_runs(given, document), _runs(given, metadata)]
        ):  # stores give one or the other
            return _ANYTHING
        seen |= metadata.seen
    return _ANYTHING if _ANYTHING in seen else min(volatile.intersection(seen), default="")


def _runs(given: Callable[..., Any], argument: object) -> bool:
    try:
        given(argument)
    except Exception:  # noqa: BLE001 - it is asked with two arguments, one of which it takes
        return False
    return True
