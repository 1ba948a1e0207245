"""One path for sync and async: a flow yields steps of IO, and two drivers carry them out.

Inside a flow, ``documents = yield from step`` has the type that the step gives; what fails comes
back into the flow at that place, so that what a failure means is decided once.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

Result = TypeVar("Result")
Done = TypeVar("Done")


class Step(Struct, Generic[Result], frozen=True):
    """One piece of IO in its sync and its async form."""

    sync: Callable[[], Result]
    aio: Callable[[], Awaitable[Result]]

    def __iter__(self) -> "Generator[Step[Any], Any, Result]":
        result: Result = yield self
        return result


Flow: TypeAlias = Generator[Step[Any], Any, Done]


def run(flow: Flow[Done]) -> Done:
    """Drive a flow to its end on the calling thread."""
    try:
        step = next(flow)
        while True:
            try:
                result = step.sync()
            except Exception as error:  # noqa: BLE001 - the flow decides what it means
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()


async def arun(flow: Flow[Done]) -> Done:
    """Drive a flow to its end in the running task."""
    try:
        step = next(flow)
        while True:
            try:
                result = await step.aio()
            except Exception as error:  # noqa: BLE001 - the flow decides what it means
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()
