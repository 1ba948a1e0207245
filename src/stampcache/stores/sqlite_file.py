"""The SQLite file of a store: its connections and transactions, and its errors in our words.

Connections belong to one process; after a fork the child opens its own.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stampcache.errors import ConfigError, StoreError
from stampcache.stores.sqlite_schema import migrate


@contextmanager
def translated() -> Iterator[None]:
    """Raise what SQLite says as a `StoreError` with one sentence that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(error) from error


def store_error(error: Exception) -> StoreError:
    """Return the error in our words."""
    said = str(error)
    mend = "run `stampcache doctor` on it"
    for sign, advice in (
        ("full", "free disk space or lower capacity="),
        ("locked", "another process holds it for long; see which one writes"),
        ("readonly", "give this user write permission to the file and its folder"),
        ("unable to open", "check that its folder exists and may be written"),
        ("malformed", "move the file away and let the cache start anew"),
        ("not a database", "move the file away and let the cache start anew"),
    ):
        if sign in said:
            mend = advice
            break
    return StoreError(f"The SQLite store failed ({said}): {mend}.")


class SqliteFile:
    """Three connections to one file: to read, to write durably, and to note what may be lost.

    ``reading`` and ``writing`` are the locks of the first two (a connection serves one thread at a
    time); the third is used under ``writing``. In WAL mode readers do not wait for writers.
    """

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        self.reading = threading.Lock()
        self.writing = threading.Lock()
        self._timeout_s = timeout_s
        self._closed = False
        self._open()

    def check_process(self) -> bool:
        """Open anew in a forked child, which must not use its parent's connections; tell if it did.

        Raises:
            StoreError: the store was closed.
        """
        if self._closed:
            raise StoreError("The SQLite store is closed; open the cache again.")
        if os.getpid() == self.pid:
            return False
        self.reading = threading.Lock()
        self.writing = threading.Lock()
        self._inherited = (self.reader, self.writer, self.noting)  # never closed: the parent's
        del self.reader, self.writer, self.noting
        self._open()
        return True

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the durable connection inside one immediate transaction."""
        with self.writing, translated():
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            except BaseException:
                if self.writer.in_transaction:  # a full disk has already rolled it back
                    self.writer.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yield the reading connection, whose reads all see one and the same commit.

        The caller holds ``reading``. Without this, each statement sees the last commit before it.
        """
        try:
            self.reader.execute("BEGIN")
            yield self.reader
        finally:
            if self.reader.in_transaction:  # nothing was written, so this only ends the reading
                self.reader.execute("ROLLBACK")

    def rewrite(self) -> None:
        """Write the file anew, so that neither it nor its log holds what was deleted.

        Raises:
            StoreError: it is not done; what was deleted is not served, but may still be there.
        """
        with self.writing, self.reading, translated():
            self.writer.execute("VACUUM")
            (busy, _, _) = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreError(
                "Another process reads the SQLite file for long, so that deleted bytes are still in"
                " its log; run this again."
            )

    def close(self) -> None:
        """Close all connections; closing twice does nothing."""
        if not self._closed:
            self._closed, self.pid = True, -1  # which no process has: every verb looks here first
            with self.reading, self.writing:
                for connection in (self.reader, self.noting, self.writer):
                    connection.close()

    def _open(self) -> None:
        try:
            self._open_all()
        except BaseException:
            for name in ("reader", "noting", "writer"):
                if name in vars(self):
                    vars(self)[name].close()
            raise

    def _open_all(self) -> None:
        try:
            self.writer = self._connect("FULL", self._timeout_s)
            migrate(self.writer, self.path)
            self.reader = self._connect("FULL", self._timeout_s)
            self.versions = self.reader.cursor()  # kept: asked before every read
            self.noting = self._connect("NORMAL", 0.0)
            self.noting.execute("PRAGMA wal_autocheckpoint = 0")
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"Cannot open {self.path} as a cache. {store_error(error)}"
            ) from error
        self.pid = os.getpid()

    def _connect(self, synchronous: str, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=timeout_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
