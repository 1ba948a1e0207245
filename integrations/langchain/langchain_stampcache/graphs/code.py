"""Which code a node of a graph has, read where LangGraph asks its cache.

LangGraph hands a cache a name: that of the function's module and its own, or ``__dynamic__``. Two graphs
may have the same one for different nodes, and a decorated function has that of the plain one. So the node
itself is taken from the task, in the frame that asks; where none is found, nothing is known of it.
"""

import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import FrameType

from langchain_core.runnables import RunnableConfig
from langgraph.cache.base import FullKey

from langchain_stampcache.fingerprint import Fingerprint
from stampcache.adapters import CanonicalError

NODES_KEPT = 1_024
_FRAMES_READ = 6
_LANGGRAPH = "langgraph."


def nodes_asked_for(keys: Sequence[FullKey]) -> Mapping[int, object]:
    """Return what runs for each key, by the id of its text, as far as the calling frames tell.

    It is a function, or another object that is the same one in each run of a graph.
    """
    asked = {id(key[1]) for key in keys}
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES_READ):
        if frame is None:
            break
        if str(frame.f_globals.get("__name__")).startswith(_LANGGRAPH):
            tasks = getattr(frame.f_locals.get("self"), "tasks", None)
            if isinstance(tasks, Mapping):
                return _nodes_of(tasks, asked)
        frame = frame.f_back
    return {}


def _nodes_of(tasks: Mapping[object, object], asked: set[int]) -> Mapping[int, object]:
    found: dict[int, object] = {}
    for task in tasks.values():
        place = id(getattr(getattr(task, "cache_key", None), "key", None))
        if place in asked:
            found[place] = _function_in(getattr(task, "proc", None))
    return found


def _function_in(runs: object) -> object:
    """Return the function that a node is, if it is one; LangGraph wraps it, in some cases anew."""
    steps = getattr(runs, "steps", None)
    first = steps[0] if isinstance(steps, Sequence) and steps else runs
    for name in ("func", "afunc"):
        function = getattr(first, name, None)
        if function is not None and type(first).__module__.startswith(_LANGGRAPH):
            return function
    return runs


class NodeCode:
    """What stands for the code of nodes; safe for threads."""

    def __init__(self) -> None:
        self._parts = Fingerprint(version=None)
        self._lock = threading.Lock()
        self._numbers: OrderedDict[int, tuple[object, int]] = OrderedDict()
        self._next = 0

    def of(self, node: object, config: RunnableConfig) -> object:
        """Return the code of a function of a module, as plain data; else ``None``."""
        if not isinstance(node, types.FunctionType) or not _is_of_module(node):
            return None
        try:
            return self._parts.read(node, config).described
        except CanonicalError:
            return None  # it holds something of unknown state

    def number(self, node: object) -> int:
        """Return a number that no other node has, as long as the node is known here."""
        with self._lock:
            known = self._numbers.get(id(node))
            if known is None:
                self._next += 1
                known = self._numbers[id(node)] = (
                    node,
                    self._next,
                )  # alive, so its id stays its own
                if len(self._numbers) > NODES_KEPT:
                    self._numbers.popitem(last=False)
            return known[1]


def _is_of_module(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__)
    return getattr(module, function.__qualname__, None) is function
