"""SQLite, seen through two stores on one file, agrees with memory after any history."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings

from stampcache.ports import Store
from stampcache.stores.sqlite import SqliteStore
from tests.histories import CAPACITY, Histories


class SqliteHistories(Histories):
    """The second store has nearly no near-cache."""

    ENCRYPTION_KEY: ClassVar[bytes | None] = None

    def open(self) -> Sequence[Store]:
        self.folder = tempfile.TemporaryDirectory()
        path, key = Path(self.folder.name) / "cache.db", self.ENCRYPTION_KEY
        return [
            SqliteStore(path, capacity=CAPACITY, encryption_key=key),
            SqliteStore(
                path, capacity=CAPACITY, near_capacity=1, vector_capacity=1, encryption_key=key
            ),
        ]

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class EncryptedHistories(SqliteHistories):
    """The same, where the file is encrypted."""

    ENCRYPTION_KEY: ClassVar[bytes | None] = bytes(range(32))


TestHistories = SqliteHistories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestEncryptedHistories = EncryptedHistories.TestCase
TestEncryptedHistories.settings = settings(TestHistories.settings, max_examples=15)
