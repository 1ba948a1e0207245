"""What a process can reach from its caches and from the modules of the package: texts, bytes, arrays."""

import gc
import io
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct


def _roots(given: object) -> Iterator[object]:
    yield given
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "stampcache":
            yield from vars(module).values()


def _is_end(one: object) -> bool:
    """Tell where to stop: what is behind a module, a class or the globals of one is not the cache's."""
    return isinstance(one, (ModuleType, type)) or (isinstance(one, dict) and "__builtins__" in one)


def _raw(one: object) -> bytes:
    if isinstance(one, str):
        return one.encode(errors="replace")
    if isinstance(one, (bytes, bytearray)):
        return bytes(one)
    if isinstance(one, np.ndarray):
        return bytes(one.tobytes())
    return bytes(one.getvalue()) if isinstance(one, io.BytesIO) and not one.closed else b""


def _parts(one: object) -> Iterator[object]:
    yield from gc.get_referents(one)
    if isinstance(one, Struct):  # many have no part in garbage collection, which then sees no field
        yield from (getattr(one, name) for name in one.__struct_fields__)


def holders(given: object, *marks: bytes) -> Sequence[str]:
    """Return how each value is reached that has one of these marks in it, as a chain of types."""
    found: list[str] = []
    seen: dict[int, Any] = {}
    waiting: deque[tuple[object, str]] = deque((one, type(one).__name__) for one in _roots(given))
    while waiting:
        one, chain = waiting.popleft()
        if id(one) in seen or _is_end(one):
            continue
        seen[id(one)] = one
        raw = _raw(one)
        if any(mark in raw for mark in marks):
            found.append(f"{chain}: {one!r:.100}")
        for other in _parts(one):
            if other is not seen and other is not waiting:
                waiting.append((other, f"{chain} > {type(other).__name__}"))
    return found
