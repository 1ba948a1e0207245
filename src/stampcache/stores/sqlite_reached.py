"""What a write does to the answers of a SQLite file: those in its reach, and those that have none.

Statements on the durable connection, inside one transaction.
"""

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stampcache import differing
from stampcache.corpora import Committed, Difference, Reach, Trace
from stampcache.errors import CodecError
from stampcache.stores import sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.codec import Codec
from stampcache.stores.reaches import Touched

_REACH = msgspec.msgpack.Decoder(Reach)
_DIFFERENCES = msgspec.msgpack.Decoder(tuple[Difference, ...])


class Row(Struct, frozen=True):
    """An answer with a reach: its row and address, its mark, and how it differs."""

    row: int
    partition: str
    key: str
    invalidated: str
    reach: Reach
    differences: tuple[Difference, ...]


def mark_beside(writer: sqlite3.Connection, codec: Codec, trace: Trace) -> None:
    """Mark what a write concerns of the entries that have no reach in its corpus, by what they cite."""
    for suspended in (True, False):
        rows = set[writes.Row]()
        for selector in trace.selectors:
            where = sqlite_text.selecting(selector, suspended=suspended, beside=trace.corpus)
            assert where is not None  # as it gives a corpus
            rows.update(writer.execute(where.statement, where.values))
        if suspended:
            writes.end(writer, rows)
        else:
            writes.mark(writer, codec, sorted(rows, key=lambda row: row[1:]), str(trace))


def shift(
    writer: sqlite3.Connection,
    codec: Codec,
    found: Sequence[Row],
    touched: Touched[int],
    change: str,
) -> Committed:
    """Keep how answers differ now; mark those that hold no more, restore those that hold again."""
    differing_now, stale, restored = list[tuple[bytes | None, int]](), list[Row](), list[Row]()
    for one in sorted(found, key=lambda one: (one.partition, one.key)):
        after = differing.settled(one.reach, one.differences, touched[one.row])
        if after != one.differences:
            raw = codec.hide(msgspec.msgpack.encode(after), "differences", str(one.row))
            differing_now.append((raw if after else None, one.row))
        holds = differing.holds(one.reach, after)
        if holds is bool(one.invalidated):
            (restored if holds else stale).append(one)
    writer.executemany(sqlite_text.DIFFER, differing_now)
    sequence = writes.log_all(writer, [(one.partition, one.key) for one in [*stale, *restored]])
    marks = [(change, sequence + at, one.row) for at, one in enumerate(stale)]
    writer.executemany(sqlite_text.SUSPEND, marks)
    if restored:
        sequence += len(stale)
        (latest,) = writer.execute(sqlite_text.LATEST_USE).fetchone()
        used = enumerate(restored, 1)
        values = [(sequence + at - 1, latest + at, one.row) for at, one in used]
        writer.executemany(sqlite_text.RESTORE, values)
    return Committed(len(stale), len(restored))


def read(writer: sqlite3.Connection, codec: Codec, row: int, corpus: str) -> Row | None:
    """Return an answer with a reach; ``None`` where it is gone."""
    found = writer.execute(sqlite_text.REACHED, (row,)).fetchone()
    if found is None:
        return None
    partition, key, invalidated, body, differences = found
    reach = reach_from(codec, body, row, corpus)
    differs: tuple[Difference, ...] = ()
    if differences is not None:
        try:
            differs = _DIFFERENCES.decode(codec.show(differences, "differences", str(row)))
        except CodecError:
            reach = replace(reach, for_good=True)  # nobody knows what would bring it back
            differs = (differing.LOST,)
    return Row(
        row=row,
        partition=partition,
        key=key,
        invalidated=codec.show_mark(invalidated, (partition, key)),
        reach=reach,
        differences=differs,
    )


def reach_from(codec: Codec, body: bytes, row: int, corpus: str) -> Reach:
    """Return the reach of the entry in a row; of one that cannot be read, that any write ends it."""
    try:
        return _REACH.decode(codec.show(body, "reach", str(row)))
    except CodecError:
        return Reach(corpus=corpus, for_good=True, why="its reach cannot be read")
