"""Redis, seen through two strict stores on one server, agrees with memory after any history."""

from collections.abc import Sequence
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from stampcache.ports import Store
from stampcache.stores.redis.store import RedisStore
from tests.histories import CAPACITY, Histories

HOW = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_histories(url: str) -> None:
    numbers = count()

    class RedisHistories(Histories):
        """The second store has nearly no near-cache."""

        def open(self) -> Sequence[Store]:
            named = f"{url}&strict=1&prefix=history{next(numbers)}"
            return [
                RedisStore(named, capacity=CAPACITY),
                RedisStore(named, capacity=CAPACITY, near_capacity=1, vector_capacity=1),
            ]

    run_state_machine_as_test(RedisHistories, settings=HOW)
