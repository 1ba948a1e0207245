"""A flow inside another one, which retrieves for it (pure)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from stampcache.effects.base import Flow
from stampcache.effects.entries import Retrieve
from stampcache.errors import RetrieverError
from stampcache.model import Evidence

Done = TypeVar("Done")


def answered(
    flow: Flow[Done], retrieve: Callable[[str], Flow[Sequence[Evidence]]] | None
) -> Flow[Done]:
    """Run a flow inside another one, which answers its `Retrieve` effects by a flow of its own.

    Whatever fails in ``retrieve`` comes into the flow as a `RetrieverError`.
    """
    if retrieve is None:
        return (yield from flow)
    try:
        effect = next(flow)
        while True:
            try:
                if type(effect) is Retrieve:
                    answer: object = yield from _retrieved(retrieve, effect.question)
                else:
                    answer = yield effect
            except Exception as error:  # noqa: BLE001 - the inner flow decides what it means
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()


def _retrieved(
    retrieve: Callable[[str], Flow[Sequence[Evidence]]], question: str
) -> Flow[tuple[Evidence, ...]]:
    try:
        return tuple((yield from retrieve(question)))
    except RetrieverError:
        raise
    except Exception as error:
        raise RetrieverError(f"{type(error).__name__}: {error}") from error
