"""The SQL of the SQLite store, by what each statement is for."""

from msgspec import Struct

from stampcache.model import Selector, Stamps, stamp_values

ENTRY = "SELECT body, sequence FROM stampcache_entries WHERE partition = ? AND key = ?"
VECTOR = "SELECT vector FROM stampcache_entries WHERE partition = ? AND key = ?"
VECTORS = (
    "SELECT key, vector FROM stampcache_entries"
    " WHERE partition = ? AND vector IS NOT NULL AND length(vector) = ?"
)
BY_ID = "SELECT id, partition, key FROM stampcache_entries WHERE entry_id = ?"
BY_PLACE = "SELECT id, partition, key FROM stampcache_entries WHERE partition = ? AND key = ?"
LEAST_USED = "SELECT id, partition, key FROM stampcache_entries ORDER BY used, id LIMIT ?"
DELETE_PLACE = "DELETE FROM stampcache_entries WHERE partition = ? AND key = ?"
PUT = (
    "INSERT INTO stampcache_entries (partition, key, entry_id, scope, tenant, model, tokenizer,"
    " embedder, prompt, indexed, body, vector, answer_bytes, sequence, used)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
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
CHANGES_SINCE = "SELECT selector FROM stampcache_log WHERE sequence > ? AND selector IS NOT NULL"

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

FACT = "SELECT value FROM stampcache_facts WHERE name = ?"
TALLY = (
    "INSERT INTO stampcache_tallies VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
)
STATS = (
    "SELECT count(*), count(vector), coalesce(sum(answer_bytes), 0), coalesce(sum(hits), 0)"
    " FROM stampcache_entries WHERE ? IS NULL OR scope = ?"
)


class Query(Struct, frozen=True):
    """A statement and the values it binds."""

    statement: str
    values: tuple[str, ...]


def selecting(selector: Selector) -> Query | None:
    """Return the query for the entries that a selector touches; ``None`` where it gives nothing."""
    conditions: list[str] = []
    values: list[str] = []
    for column, value in (("entry_id", selector.entry), ("scope", selector.scope)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if selector.stamps is not None:
        if selector.stamps == Stamps():
            return None
        columns = ("model", "tokenizer", "embedder", "prompt", "indexed")
        for column, value in zip(columns, stamp_values(selector.stamps), strict=True):
            if value:
                conditions.append(f"{column} = ?")
                values.append(value)
    cited = {"corpus": selector.corpus, "source": selector.source, "chunk": selector.chunk}
    given = {column: value for column, value in cited.items() if value is not None}
    if given:
        inner = " AND ".join(f"{column} = ?" for column in given)
        cited_by = f"SELECT entry FROM stampcache_evidence WHERE {inner}"  # noqa: S608 - own names
        conditions.append(f"id IN ({cited_by})")
        values.extend(given.values())
    if not conditions:
        return None
    chosen = " AND ".join(conditions)
    statement = f"SELECT id, partition, key FROM stampcache_entries WHERE {chosen}"  # noqa: S608
    return Query(statement, tuple(values))
