"""SQLite, seen through two stores on one file, agrees with memory after any history."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, settings

from stampcache.ports import Store
from stampcache.stores.sqlite import SqliteStore
from tests.histories import CAPACITY, Histories


class SqliteHistories(Histories):
    """The second store has nearly no near-cache."""

    def open(self) -> Sequence[Store]:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "cache.db"
        return [
            SqliteStore(path, capacity=CAPACITY),
            SqliteStore(path, capacity=CAPACITY, near_capacity=1, vector_capacity=1),
        ]

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestHistories = SqliteHistories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
