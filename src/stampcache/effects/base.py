"""What an effect is, and the two that need no port of ours (pure; ADR 0002)."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

Result = TypeVar("Result")
Done = TypeVar("Done")


class Effect(Struct, Generic[Result], frozen=True):
    """A request for IO; ``yield from`` it to get its typed answer."""

    def __iter__(self) -> "Generator[Effect[Any], Any, Result]":
        answer: Result = yield self
        return answer


class Step(Effect[Result], frozen=True):
    """IO of somebody else's code, a framework's for example, in its sync and its async form."""

    sync: Callable[[], Result]
    aio: Callable[[], Awaitable[Result]]


class Note(Effect[None], frozen=True):
    """Count and log a failure that the application must not see."""

    what: str
    error: Exception


Flow: TypeAlias = Generator[Effect[Any], Any, Done]
