"""The SQL of the SQLite store, by what each statement is for."""

from msgspec import Struct

from stampcache.model import Selector, Stamps, stamp_values
from stampcache.stores.selection import names_document

ENTRY = (
    "SELECT body, changed, invalidated, expires_at FROM stampcache_entries"
    " WHERE partition = ? AND key = ?"
)
VECTOR = "SELECT vector FROM stampcache_entries WHERE partition = ? AND key = ?"
VECTORS = (
    "SELECT key, vector FROM stampcache_entries"
    " WHERE partition = ? AND vector IS NOT NULL AND length(vector) = ?"
)
BODY = "SELECT id, body FROM stampcache_entries WHERE partition = ? AND key = ?"
BY_ID = "SELECT id, partition, key FROM stampcache_entries WHERE entry_id = ?"
BY_SCOPE = "SELECT id, partition, key FROM stampcache_entries WHERE scope = ?"
HOLDING_ID = (
    "SELECT id, partition, key FROM stampcache_entries WHERE entry_id = ? AND invalidated = ''"
)
LONGEST_INVALIDATED = (
    "SELECT id, partition, key FROM stampcache_entries WHERE invalidated <> ''"
    " ORDER BY changed LIMIT ?"
)
LEAST_USED = (
    "SELECT id, partition, key FROM stampcache_entries WHERE invalidated = ''"
    " ORDER BY used, id LIMIT ?"
)
PURGEABLE = (
    "SELECT id, partition, key FROM stampcache_entries WHERE invalidated <> ''"
    " UNION SELECT id, partition, key FROM stampcache_entries WHERE expires_at <= ?"
)
DELETE = "DELETE FROM stampcache_entries WHERE id = ?"
DELETE_PLACE = "DELETE FROM stampcache_entries WHERE partition = ? AND key = ?"
PUT = (
    "INSERT INTO stampcache_entries (partition, key, entry_id, scope, tenant, model, tokenizer,"
    " embedder, prompt, indexed, body, vector, answer_bytes, expires_at, changed, used)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DEPEND = "INSERT INTO stampcache_dependencies (entry, corpus, source, chunk) VALUES (?, ?, ?, ?)"
NO_LONGER_DEPEND = "DELETE FROM stampcache_dependencies WHERE entry = ?"
INVALIDATE = (
    "UPDATE stampcache_entries SET invalidated = ?, changed = ?, vector = NULL WHERE id = ?"
)
RENEW = "UPDATE stampcache_entries SET expires_at = ?, changed = ? WHERE id = ?"
COUNT_ENTRIES = "SELECT value FROM stampcache_counts WHERE name = 'entries'"
LATEST_USE = "SELECT coalesce(max(used), 0) FROM stampcache_entries"
USE = "UPDATE stampcache_entries SET hits = hits + ?, used = ? WHERE partition = ? AND key = ?"

LOG = "INSERT INTO stampcache_log (partition, key) VALUES (?, ?)"
LOG_SINCE = (
    "SELECT sequence, partition, key FROM stampcache_log WHERE sequence > ? ORDER BY sequence"
)
LOG_FLOOR = "SELECT value FROM stampcache_counts WHERE name = 'log_floor'"
LAST_SEQUENCE = (
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'stampcache_log'), 0)"
)
LOG_CHANGE = "INSERT INTO stampcache_log (selector) VALUES (?)"
CHANGES_SINCE = (
    "SELECT selector FROM stampcache_log WHERE sequence > ? AND selector IS NOT NULL"
    " ORDER BY sequence"
)
RAISE_FLOOR = "UPDATE stampcache_counts SET value = ? WHERE name = 'log_floor'"
TRIM_LOG = "DELETE FROM stampcache_log WHERE sequence <= ?"

SERVED = (
    "INSERT OR IGNORE INTO stampcache_servings (entry_id, partition, key, asked)"
    " VALUES (?, ?, ?, ?)"
)
TRIM_SERVINGS = (
    "DELETE FROM stampcache_servings WHERE id <="
    " (SELECT coalesce(max(id), 0) - ? FROM stampcache_servings)"
)
BAD = "SELECT other FROM stampcache_bad WHERE partition = ? AND key = ?"
MARK_BAD = (
    "INSERT OR IGNORE INTO stampcache_bad SELECT partition, key, asked"
    " FROM stampcache_servings WHERE entry_id = ?"
)
MARK_BAD_BACK = (
    "INSERT OR IGNORE INTO stampcache_bad SELECT partition, asked, key"
    " FROM stampcache_servings WHERE entry_id = ?"
)

CLAIM = "INSERT OR IGNORE INTO stampcache_facts VALUES (?, ?)"
FACT = "SELECT value FROM stampcache_facts WHERE name = ?"
TALLIES = "SELECT name, count FROM stampcache_tallies"
TALLY = (
    "INSERT INTO stampcache_tallies VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
)
STATS = (
    "SELECT count(*), count(vector), coalesce(sum(answer_bytes), 0), coalesce(sum(hits), 0),"
    " (SELECT count(*) FROM stampcache_entries"
    "  WHERE invalidated <> '' AND (?1 IS NULL OR scope = ?1))"
    " FROM stampcache_entries WHERE invalidated = '' AND (?1 IS NULL OR scope = ?1)"
)


class Query(Struct, frozen=True):
    """A statement and the values it binds."""

    statement: str
    values: tuple[str, ...]


def selecting(selector: Selector) -> Query | None:
    """Return the query for the entries that hold and that a change touches, in the order of marking.

    It selects what `stampcache.stores.selection.touches` says; ``None`` where that is nothing.
    """
    if selector == Selector() or selector.stamps == Stamps():
        return None
    wanted = {"entry_id": selector.entry, "scope": selector.scope, **_stamped(selector.stamps)}
    given = {column: value for column, value in wanted.items() if value is not None}
    conditions = ["invalidated = ''", *(f"{column} = ?" for column in given)]
    values = list(given.values())
    if names_document(selector):
        parts = {"corpus": selector.corpus, "source": selector.source, "chunk": selector.chunk}
        named = {column: value for column, value in parts.items() if value is not None}
        inner = " AND ".join(f"{column} IN (?, '')" for column in named)
        depending = f"SELECT entry FROM stampcache_dependencies WHERE {inner}"  # noqa: S608 - own names
        conditions.append(f"id IN ({depending})")
        values.extend(named.values())
    chosen = " AND ".join(conditions)
    return Query(
        f"SELECT id, partition, key FROM stampcache_entries WHERE {chosen}"  # noqa: S608 - as above
        " ORDER BY partition, key",
        tuple(values),
    )


def _stamped(stamps: Stamps | None) -> dict[str, str | None]:
    if stamps is None:
        return {}
    columns = ("model", "tokenizer", "embedder", "prompt", "indexed")
    pairs = zip(columns, stamp_values(stamps), strict=True)
    return {column: value or None for column, value in pairs}
