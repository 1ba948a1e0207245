"""What a SQLite file holds, read without opening it as a cache: nothing is created or written.

For people and their tools (``stampcache doctor``, ``stats``, ``explain``), never for serving.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from stampcache.errors import CodecError, StoreError
from stampcache.model import Entry, Stamps
from stampcache.stores.codec import Codec
from stampcache.stores.keys import EncryptionKey, open_codec
from stampcache.stores.sqlite_file import store_error

_HOLDING = "(SELECT * FROM stampcache_entries WHERE invalidated = '')"
_HOLDING_IN_SCHEMA_1 = "(SELECT *, NULL AS expires_at FROM stampcache_entries)"
_STAMPS = (
    "SELECT model, tokenizer, embedder, prompt, indexed, count(*) FROM {holding}"
    " WHERE ?1 IS NULL OR scope = ?1 GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC, 1, 2, 3, 4, 5"
)
_IN_PARTITION = "SELECT count(*) FROM {holding} WHERE partition = ?"
_IN_SCOPE = (
    "SELECT partition, key, body, expires_at FROM {holding} WHERE scope = ?"
    " ORDER BY used DESC LIMIT ?"
)
_TABLES = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
_DIMENSION = "dimension:"


class StampCount(Struct, frozen=True):
    """How many entries carry these very stamps."""

    stamps: Stamps
    entries: int


class SqliteSurvey:
    """A read-only view of one file; make one with `survey`."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        encryption_key: EncryptionKey | None = None,
    ) -> None:
        self.path = path
        self._connection = connection
        self._encryption_key = encryption_key
        self.holds_cache = self._number(_TABLES, "stampcache_facts") > 0
        self._facts = dict[str, str]()
        if self.holds_cache:
            rows = connection.execute("SELECT name, value FROM stampcache_facts")
            self._facts = {str(name): str(value) for name, value in rows}
        self._first_schema = self.schema == "1"  # which has no marks, and lifetimes in its bodies

    @property
    def schema(self) -> str:
        """The version of the tables."""
        return self._facts.get("schema", "unknown")

    @property
    def has_secret(self) -> bool:
        """Whether the tenants' keys are derived from a secret that the file itself holds."""
        return "secret" in self._facts

    @property
    def is_encrypted(self) -> bool:
        """Whether questions and answers are unreadable without a key."""
        return self._facts.get("encryption", "none") != "none"

    @property
    def dimensions(self) -> Mapping[str, int]:
        """How many components the vectors of each embedder have, by the embedder's name."""
        return {
            name.removeprefix(_DIMENSION): int(value)
            for name, value in self._facts.items()
            if name.startswith(_DIMENSION) and value.isdecimal()
        }

    @property
    def journal_mode(self) -> str:
        """SQLite's journal mode; ``wal`` for a file that a cache has opened."""
        (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        return str(mode)

    @property
    def size_bytes(self) -> int:
        """The size of the file and of the write-ahead log beside it."""
        log = self.path.with_name(self.path.name + "-wal")
        return sum(path.stat().st_size for path in (self.path, log) if path.exists())

    def stamps(self, scope: str | None = None) -> tuple[StampCount, ...]:
        """Return the distinct stamps of entries that hold, of all or one scope, by falling count."""
        rows = self._connection.execute(self._of_holding(_STAMPS), (scope,))
        names = Stamps.__struct_fields__
        return tuple(
            StampCount(Stamps(**dict(zip(names, row[:-1], strict=True))), row[-1]) for row in rows
        )

    def entries_in(self, partition: str) -> int:
        """Return how many entries of a partition hold."""
        return self._number(self._of_holding(_IN_PARTITION), partition)

    def latest(self, scope: str, limit: int) -> Iterator[Entry]:
        """Yield the entries of a scope digest that hold, latest used first, without damaged ones.

        Raises:
            ConfigError: they are encrypted, and the key is missing or another one.
        """
        codec = self._codec()
        rows = self._connection.execute(self._of_holding(_IN_SCOPE), (scope, limit))
        for partition, key, body, expires_at in rows:
            try:
                entry = codec.decode(body, (partition, key))
            except CodecError:
                continue  # counted and told by the store's own `problems`
            if self._first_schema:
                yield entry
            else:
                yield replace(entry, invalidated="", expires_at=expires_at)

    def _codec(self) -> Codec:
        facts = {"encryption": "none"} | self._facts  # what knew no encryption has none
        opened = open_codec(
            self._encryption_key,
            name=str(self.path),
            claim=facts.get,
            fact=facts.get,
        )
        return opened.codec

    def _of_holding(self, query: str) -> str:
        return query.format(holding=_HOLDING_IN_SCHEMA_1 if self._first_schema else _HOLDING)

    def _number(self, query: str, value: str) -> int:
        (count,) = self._connection.execute(query, (value,)).fetchone()
        return int(count)


@contextmanager
def survey(path: Path, *, encryption_key: EncryptionKey | None = None) -> Iterator[SqliteSurvey]:
    """Yield a read-only view of an existing file.

    Raises:
        StoreError: it cannot be read, or is no SQLite database.
    """
    try:
        name = f"{path.resolve().as_uri()}?mode=rw"  # "ro" would leave its log files behind
        with closing(sqlite3.connect(name, uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            yield SqliteSurvey(path, connection, encryption_key)
    except sqlite3.Error as error:
        if "no such table" in str(error):
            raise StoreError(
                f"{path} holds only a part of a cache ({error}): move the file away and let the"
                " cache start anew."
            ) from error
        said = str(store_error(error)).removeprefix("The SQLite store failed")
        raise StoreError(f"{path} cannot be read{said}") from error
