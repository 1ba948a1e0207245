"""What a verb asks of a server, as values: verbs are generators that two drivers run, sync and async."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

Done = TypeVar("Done")
Word: TypeAlias = str | bytes | int | float


class Run(Struct, frozen=True):
    """A Lua verb with its arguments.

    With ``slow`` it may take long; one that must not be repeated after a broken connection is sent
    ``once``.
    """

    verb: str
    args: tuple[Word, ...]
    slow: bool = False
    once: bool = False


class Command(Struct, frozen=True):
    """A plain command; its first argument is a name below the base."""

    name: str
    key: bytes
    args: tuple[Word, ...] = ()


Ask: TypeAlias = Run | Command
Verb: TypeAlias = Generator[Ask, Any, Done]


def drive(verb: Verb[Done], answer: Callable[[Ask], Any]) -> Done:
    """Run a verb to its end."""
    try:
        ask = next(verb)
        while True:
            try:
                reply = answer(ask)
            except Exception as error:  # noqa: BLE001 - the verb decides what it means
                ask = verb.throw(error)
            else:
                ask = verb.send(reply)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        verb.close()


async def adrive(verb: Verb[Done], answer: Callable[[Ask], Awaitable[Any]]) -> Done:
    """Run a verb to its end, for a task."""
    try:
        ask = next(verb)
        while True:
            try:
                reply = await answer(ask)
            except Exception as error:  # noqa: BLE001 - the verb decides what it means
                ask = verb.throw(error)
            else:
                ask = verb.send(reply)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        verb.close()
