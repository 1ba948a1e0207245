"""What the SQLite store writes: statements on the durable connection, inside one transaction.

Whatever changes an entry logs its address, so that the replicas of all processes follow, and notes the
sequence of that as the entry's ``changed``, so that they know which copy is the newer one.
"""

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from stampcache import differing
from stampcache.corpora import Chunk, Reach, Trace
from stampcache.errors import CodecError
from stampcache.model import Entry, Selector, stamp_values
from stampcache.ports import Forgotten
from stampcache.reaching import is_reached
from stampcache.stores import sqlite_text
from stampcache.stores.codec import Codec
from stampcache.stores.pending_uses import Pending, Place
from stampcache.stores.selection import BEING_WRITTEN, FORGOTTEN, Logged, refused

Row = tuple[int, str, str]
"""Row id, partition and key of an entry."""


_SELECTOR = msgspec.msgpack.Decoder(Selector)
_TRACE = msgspec.msgpack.Decoder(Trace)
_MAP = range(0x80, 0x90)


def fenced(
    writer: sqlite3.Connection, codec: Codec, entry: Entry, fence: int, reach: Reach | None
) -> str:
    """Return what refuses an entry whose making began at this sequence; empty where nothing does.

    The connection is inside a transaction: floor and log must be those of one commit.
    """
    (floor,) = writer.execute(sqlite_text.LOG_FLOOR).fetchone()
    if fence < floor:
        return FORGOTTEN
    rows = writer.execute(sqlite_text.CHANGES_SINCE, (fence,))
    change = refused((_logged(codec.show(row[0], "change")) for row in rows), entry, reach)
    if change is not None:
        return str(change)
    if reach is not None and writer.execute(sqlite_text.IS_WRITTEN, (reach.corpus,)).fetchone():
        return BEING_WRITTEN.format(reach.corpus)
    if reach is not None and is_reached(reach, added_since(writer, reach.corpus, fence)):
        return str(Trace(corpus=reach.corpus))
    return ""


def _logged(raw: bytes) -> Logged:
    """Return what a row of the log tells: a selector is a map there, and a trace an array."""
    return _SELECTOR.decode(raw) if raw[0] in _MAP else _TRACE.decode(raw)


def added_since(reader: sqlite3.Connection, corpus: str, fence: int) -> list[Chunk]:
    """Return the chunks that were added to a corpus after the fence."""
    return [chunk_of(row) for row in reader.execute(sqlite_text.CHUNKS_SINCE, (corpus, fence))]


def chunk_of(row: tuple[str, str, str, bytes, int]) -> Chunk:
    """Return a chunk from its row."""
    return Chunk(id=row[0], source=row[1], digest=row[2], vector=row[3])


def log(writer: sqlite3.Connection, place: Place) -> int:
    """Tell all replicas that the entry at this address changed; return the sequence of that."""
    sequence = writer.execute(sqlite_text.LOG, place).lastrowid
    assert sequence is not None
    return sequence


def log_all(writer: sqlite3.Connection, places: Sequence[Place]) -> int:
    """Tell the same of many entries; return the sequence of the first, which the others' follow."""
    (last,) = writer.execute(sqlite_text.LAST_SEQUENCE).fetchone()
    writer.executemany(sqlite_text.LOG, places)
    return int(last) + 1


def log_change(writer: sqlite3.Connection, codec: Codec, change: Logged) -> int:
    """Refuse late fills that this change touches; return its sequence."""
    raw = codec.hide(msgspec.msgpack.encode(change), "change")
    sequence = writer.execute(sqlite_text.LOG_CHANGE, (raw,)).lastrowid
    assert sequence is not None
    return sequence


class Body(Struct, frozen=True):
    """What is written of an entry: itself and its vector as bytes, and its reach."""

    raw: bytes
    vector: bytes | None
    reach: Reach | None


def write(
    writer: sqlite3.Connection, codec: Codec, entry: Entry, body: Body, sequence: int
) -> None:
    """Put an entry in the place of any other at its address, as the most recently used one."""
    writer.execute(sqlite_text.DELETE_PLACE, entry.place)
    (latest,) = writer.execute(sqlite_text.LATEST_USE).fetchone()
    reach = body.reach
    size = len(entry.answer.text.encode()) + len(entry.answer.payload)
    who = (entry.id, entry.identity.scope, entry.identity.tenant)
    times = (entry.expires_at, entry.doubtful_at, entry.confirmed_at)
    what = (body.raw, body.vector, size, *times)
    values = (*entry.place, *who, *stamp_values(entry.stamps), *what, sequence, latest + 1)
    row = writer.execute(sqlite_text.PUT, values).lastrowid
    assert row is not None
    depend(writer, row, entry)
    if reach is not None:
        hidden = codec.hide(msgspec.msgpack.encode(reach), "reach", str(row))
        within = (reach.corpus, reach.settings, hidden)
        writer.execute(sqlite_text.ADD_REACH, (row, *within, sequence))
        for one in reach.doubts:
            found = writer.execute(sqlite_text.CHUNK, (reach.corpus, one)).fetchone()
            if found is not None:
                digest = differing.doubtful(chunk_of(found)).digest
                writer.execute(sqlite_text.DOUBT_CHUNK, (digest, reach.corpus, one))


def depend(writer: sqlite3.Connection, row: int, entry: Entry) -> None:
    """Write on which parts of which corpora the entry in this row depends."""
    parts = [(row, part.corpus, part.source, part.chunk) for part in entry.dependencies]
    writer.executemany(sqlite_text.DEPEND, parts)


def mark(writer: sqlite3.Connection, codec: Codec, rows: Iterable[Row], change: str) -> int:
    """Make entries stale, which so far hold; return how many."""
    touched = list(rows)
    for row, partition, key in touched:
        hidden = codec.hide_mark(change, (partition, key))
        values = (hidden, log(writer, (partition, key)), row)
        writer.execute(sqlite_text.INVALIDATE, values)
    _forget(writer, touched)
    return len(touched)


def end(writer: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Make sure that suspended entries will not hold again."""
    ended = list(rows)
    writer.executemany(sqlite_text.END, [(row,) for row, _, _ in ended])
    _forget(writer, ended)


def _forget(writer: sqlite3.Connection, rows: Iterable[Row]) -> None:
    ids = [(row,) for row, _, _ in rows]
    writer.executemany(sqlite_text.NO_LONGER_DEPEND, ids)
    writer.executemany(sqlite_text.DROP_REACH, ids)


def renew(writer: sqlite3.Connection, entry_id: str, expires_at: float) -> None:
    """Let an entry live until then, if it is there and holds."""
    for row, partition, key in writer.execute(sqlite_text.HOLDING_ID, (entry_id,)).fetchall():
        values = (expires_at, log(writer, (partition, key)), row)
        writer.execute(sqlite_text.RENEW, values)


def confirm(writer: sqlite3.Connection, entry: Entry, at: float, doubtful_at: float | None) -> bool:
    """Note that an entry was found fresh, if it is there, holds and has this doubt; tell whether."""
    judged = (entry.id, entry.doubtful_at)
    rows = writer.execute(sqlite_text.HOLDING_DOUBT, judged).fetchall()
    for row, partition, key in rows:
        values = (at, doubtful_at, log(writer, (partition, key)), row)
        writer.execute(sqlite_text.CONFIRM, values)
    return bool(rows)


def list_due(writer: sqlite3.Connection, entry: Entry, scope: bytes, *, early: bool) -> bool:
    """Put an entry on the list of what is to be looked after; tell whether it may be served."""
    row = writer.execute(sqlite_text.DOUBTED, (entry.id, entry.doubtful_at)).fetchone()
    if row is None:
        return False
    known = writer.execute(sqlite_text.LISTED, (row[0], entry.doubtful_at)).fetchone()
    waits, served = known or (False, False)
    if not waits:
        values = (row[0], scope, entry.doubtful_at, early, served or not early)
        writer.execute(sqlite_text.LIST_DUE, values)
    elif not early and not served:
        writer.execute(sqlite_text.SERVE_LISTED, (row[0],))
    return early or not served


def delete(writer: sqlite3.Connection, rows: Iterable[Row]) -> int:
    """Delete entries; return how many."""
    gone = list(rows)
    writer.executemany(sqlite_text.LOG, [(partition, key) for _, partition, key in gone])
    writer.executemany(sqlite_text.DELETE, [(row,) for row, _, _ in gone])
    return len(gone)


def forget(writer: sqlite3.Connection, tenant: str) -> Forgotten:
    """Delete everything that is kept of a tenant; say how much.

    The log goes as a whole, as a row of it does not say whose it is: every replica begins anew, and
    every fill that is under way is refused.
    """
    entries, size, verdicts = writer.execute(sqlite_text.OF_TENANT, (tenant,)).fetchone()
    for statement in sqlite_text.FORGET:
        writer.execute(statement, (tenant,))
    sequence = writer.execute(sqlite_text.LOG, (None, None)).lastrowid
    writer.execute(sqlite_text.RAISE_FLOOR, (sequence,))
    writer.execute(sqlite_text.TRIM_LOG, (sequence,))
    writer.execute(sqlite_text.COUNT_FORGET)
    return Forgotten(entries, size + verdicts)


def delete_damaged(writer: sqlite3.Connection, codec: Codec, place: Place) -> None:
    """Delete the entry at this address, unless somebody has written a sound one since."""
    for row, body in writer.execute(sqlite_text.BODY, place).fetchall():
        try:
            codec.decode(body, place)
        except CodecError:
            delete(writer, [(row, *place)])


def evict(writer: sqlite3.Connection, capacity: int) -> int:
    """Delete what is over capacity, invalidated entries first; return how many."""
    (count,) = writer.execute(sqlite_text.COUNT_ENTRIES).fetchone()
    over = max(0, int(count) - capacity)
    left = over
    for order in (sqlite_text.LONGEST_INVALIDATED, sqlite_text.LEAST_USED):
        if left:
            left -= delete(writer, writer.execute(order, (left,)).fetchall())
    return over


def write_uses(writer: sqlite3.Connection, pending: Pending) -> None:
    """Write hits, which make entries recently used, and servings to other questions."""
    writer.executemany(sqlite_text.SERVED, pending.servings)
    if pending.hits:
        (latest,) = writer.execute(sqlite_text.LATEST_USE).fetchone()
        hits = enumerate(pending.hits.items(), int(latest) + 1)
        writer.executemany(sqlite_text.USE, [(n, used, *place) for used, (place, n) in hits])


def trim(
    writer: sqlite3.Connection, sequence: int, *, log_kept: int, every: int, servings_kept: int
) -> None:
    """Cut the log to its last rows, whenever it has grown by ``every`` over that."""
    (known,) = writer.execute(sqlite_text.LOG_FLOOR).fetchone()
    floor = sequence - log_kept
    if floor - known < every:
        return
    writer.execute(sqlite_text.RAISE_FLOOR, (floor,))
    writer.execute(sqlite_text.TRIM_LOG, (floor,))
    writer.execute(sqlite_text.TRIM_SERVINGS, (servings_kept,))
