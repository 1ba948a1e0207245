"""One making for equal requests, given only to those for whom it still holds (ADR 0010, ADR 0014).

A request that begins after a change was announced must not be given an answer that was begun before it.
So each says at which sequence of changes it began, and what a leader brings says as of which sequence it
is known to be true. Who is given nothing that way asks once more, and then makes its own, so that nobody
waits longer than for two makings of others.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from stampcache.drivers import AsyncPorts, Ports, arun, run
from stampcache.effects import Flow, Step
from stampcache.singleflight import Flights

Value = TypeVar("Value")
_ROUNDS = 2


class Driven(Struct, frozen=True):
    """On which ports the flow of a leader runs."""

    sync: Ports
    aio: AsyncPorts


class Landed(Struct, Generic[Value], frozen=True):
    """What a leader brings, and the sequence as of which it is true; ``None``: nobody knows."""

    value: Value
    sequence: int | None

    def holds_for(self, since: int | None) -> bool:
        """Tell whether it may be given to one who began at this sequence."""
        return since is not None and self.sequence is not None and since <= self.sequence


class Shared(Struct, Generic[Value], frozen=True):
    """What one is given, and whether it was its own leader."""

    value: Value
    led: bool


def together(
    flights: Flights,
    key: Hashable,
    lead: Callable[[], Flow[Landed[Value]]],
    ports: Driven,
    since: int | None,
) -> Flow[Shared[Value]]:
    """Run ``lead`` once for all that come with this key meanwhile; its failure is shared too."""
    led: list[bool] = []

    def leading() -> Flow[Landed[Value]]:
        led.append(True)
        return (yield from lead())

    flight: Step[Landed[Value]] = Step(
        sync=lambda: flights.run(key, lambda: run(leading(), ports.sync)),
        aio=lambda: flights.arun(key, lambda: arun(leading(), ports.aio)),
    )
    for _ in range(_ROUNDS):
        landed = yield from flight
        if led or landed.holds_for(since):
            return Shared(landed.value, bool(led))
    own = yield from lead()
    return Shared(own.value, led=True)
