"""Which attributes of an object are its state: what its own calls write, such as a counter (pure)."""

import functools
from collections.abc import Hashable

from stampcache.adapters.fingerprint import attributes_written, functions_of

_CLASSES_KEPT = 1_024


def written_by(kind: type, calls: tuple[str, ...]) -> frozenset[str]:
    """Return the attributes that these methods write, and those methods of the class that they use.

    What other methods write, a setter for example, is how an object is set, and no state.
    """
    return _written_by(kind, calls)


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def _written_by(kind: Hashable, calls: tuple[str, ...]) -> frozenset[str]:
    assert isinstance(kind, type)
    todo, followed, written = list(calls), set[str](), set[str]()
    while todo:
        name = todo.pop()
        if name in followed:
            continue
        followed.add(name)
        for base in kind.__mro__:  # a method may hand on to the one that it overrides
            for function in functions_of(vars(base).get(name)):
                written |= attributes_written(function.__code__)
                todo += function.__code__.co_names
    return frozenset(written)
