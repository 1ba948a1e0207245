"""The context variable that carries who asks, and what its calls are told, to every adapter below.

It is visible in tasks, in ``asyncio.to_thread`` and in the frameworks' executors, which copy the
context; a thread started by hand sees no scope, and is treated as unscoped.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import ParamSpec, TypeVar, cast

from msgspec import Struct

from stampcache.errors import ConfigError
from stampcache.model import AS_SET, Controls, Evidence, Scope

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class Surroundings(Struct, frozen=True):
    """What is said of a call by the scopes around it.

    ``question`` and ``evidence`` are of the call of a model whose prompt does not show them.
    """

    scope: Scope
    controls: Controls = AS_SET
    question: str = ""
    evidence: tuple[Evidence, ...] | None = None


class _Frame(Struct, frozen=True):
    """One entered scope; ``owner`` is the object that entered it and will leave it."""

    said: Surroundings
    outer: "_Frame | None"
    owner: object


_CURRENT: ContextVar[_Frame | None] = ContextVar("stampcache_scope", default=None)


def surroundings() -> Surroundings | None:
    """Return what the scopes around the running code say, or ``None`` outside of all."""
    frame = _CURRENT.get()
    return frame.said if frame is not None else None


def current_scope() -> Scope | None:
    """Return the innermost scope of the running context, or ``None`` outside of all."""
    frame = _CURRENT.get()
    return frame.said.scope if frame is not None else None


class scope:
    """Set who asks, as context manager or as decorator of a function or coroutine function.

    What is not given is taken from the scope around it. One object may be entered many times, also
    by several threads and tasks at once.

        with stampcache.scope(tenant="acme", audience="group-7"):
            chain.invoke(...)

    ``no_cache``, ``no_store``, ``ttl_s`` and ``variety`` are the `Controls` of each request inside.
    ``question`` and ``evidence`` tell an adapter that sees nothing but a rendered prompt (a model's
    cache) what is asked in it and what it was made from.

    Raises:
        ConfigError: something given is of another type, or a number out of range.
    """

    __slots__ = ("_audience", "_controls", "_evidence", "_namespace", "_question", "_tenant")

    def __init__(
        self,
        *,
        tenant: str | None = None,
        namespace: str | None = None,
        audience: str | None = None,
        question: str | None = None,
        evidence: Sequence[Evidence] | None = None,
        no_cache: bool = False,
        no_store: bool = False,
        ttl_s: float | None = None,
        variety: int = 1,
    ) -> None:
        given: dict[str, object] = {
            "tenant": tenant,
            "namespace": namespace,
            "audience": audience,
            "question": question,
        }
        for name, value in given.items():
            if value is not None and not isinstance(value, str):
                kind = type(value).__name__
                raise ConfigError(f"{name}= takes a string, not {kind}; convert the id first.")
        if tenant == "":
            raise ConfigError("tenant= is empty; name the tenant, or leave it out.")
        self._tenant = tenant
        self._namespace = namespace
        self._audience = audience
        self._question = question
        self._evidence = None if evidence is None else tuple(evidence)
        if not all(isinstance(chunk, Evidence) for chunk in self._evidence or ()):
            raise ConfigError("evidence= takes a sequence of Evidence.")
        self._controls = Controls(
            no_cache=no_cache, no_store=no_store, ttl_s=ttl_s, variety=variety
        )

    def __enter__(self) -> Scope:
        outer = _CURRENT.get()
        around = outer.said if outer is not None else Surroundings(Scope(tenant=""))
        base = around.scope
        inner = Scope(
            base.tenant if self._tenant is None else self._tenant,
            base.namespace if self._namespace is None else self._namespace,
            base.audience if self._audience is None else self._audience,
        )
        controls = self._controls.over(around.controls)
        said = Surroundings(
            inner,
            AS_SET if controls == AS_SET else controls,
            around.question if self._question is None else self._question,
            around.evidence if self._evidence is None else self._evidence,
        )
        _CURRENT.set(_Frame(said, outer, self))
        return inner

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _CURRENT.set(_without(_CURRENT.get(), self))

    def __call__(self, function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        """Return the function, run inside this scope."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(
                "scope() cannot decorate a generator, whose caller runs between its steps; "
                "use `with scope(...)` around the code that consumes it."
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def scoped_coroutine(
                *args: Parameters.args, **options: Parameters.kwargs
            ) -> object:
                with self:
                    return await function(*args, **options)

            return cast(Callable[Parameters, Returned], scoped_coroutine)

        @functools.wraps(function)
        def scoped(*args: Parameters.args, **options: Parameters.kwargs) -> Returned:
            with self:
                returned = function(*args, **options)
            if inspect.iscoroutine(returned):  # it has not begun; it must begin inside the scope
                return cast(Returned, self._inside(returned))
            return returned

        return scoped

    async def _inside(self, coroutine: Coroutine[object, object, object]) -> object:
        with self:
            return await coroutine


class said_before(scope):
    """Set what the scopes around an earlier call said, and nothing of those around this code.

    For what runs later than it was asked for, such as a stream. ``None``: no scope was around it.
    """

    __slots__ = ("_said",)

    def __init__(self, said: Surroundings | None) -> None:
        self._said = Surroundings(Scope(tenant="")) if said is None else said

    def __enter__(self) -> Scope:
        _CURRENT.set(_Frame(self._said, _CURRENT.get(), self))
        return self._said.scope


def _without(frame: _Frame | None, owner: scope) -> _Frame | None:
    """Return the frames without the latest one of this owner.

    It is the topmost, unless generators that hold scopes are left in another order than entered:
    then those that are still inside of their own scope stay there.
    """
    if frame is None or frame.owner is owner:
        return frame.outer if frame is not None else None
    return _Frame(frame.said, _without(frame.outer, owner), frame.owner)
