"""The SQL of the SQLite store, by what each statement is for."""

from msgspec import Struct

from stampcache.model import Selector, Stamps, stamp_values
from stampcache.stores.selection import names_document

ENTRY = (
    "SELECT changed, body, invalidated, expires_at, doubtful_at, confirmed_at"
    " FROM stampcache_entries"
    " WHERE partition = ? AND key = ?"
)
VECTOR = (
    "SELECT vector FROM stampcache_entries WHERE partition = ? AND key = ? AND invalidated = ''"
)
VECTORS = (
    "SELECT key, vector FROM stampcache_entries"
    " WHERE partition = ? AND invalidated = '' AND length(vector) = ?"
)
OF_TENANT = (
    "SELECT count(*), coalesce(sum(length(entries.body) + coalesce(length(vector), 0)"
    " + coalesce(length(reaches.body), 0) + coalesce(length(differences), 0)), 0),"
    " (SELECT coalesce(sum(length(body)), 0) FROM stampcache_verdicts WHERE tenant = ?1)"
    " + (SELECT coalesce(sum(length(body)), 0) FROM stampcache_shelves WHERE tenant = ?1)"
    " FROM stampcache_entries AS entries LEFT JOIN stampcache_reaches AS reaches"
    " ON entry = entries.id WHERE tenant = ?1"
)
FORGET = (
    "DELETE FROM stampcache_entries WHERE tenant = ?",
    "DELETE FROM stampcache_servings WHERE tenant = ?",
    "DELETE FROM stampcache_bad WHERE tenant = ?",
    "DELETE FROM stampcache_verdicts WHERE tenant = ?",
    "DELETE FROM stampcache_shelves WHERE tenant = ?",
)
COUNT_FORGET = (
    "UPDATE stampcache_counts SET value = value + 1 WHERE name IN ('forgets', 'rewrite_due')"
)
FORGETS = "SELECT value FROM stampcache_counts WHERE name = 'forgets'"
REWRITE_DUE = "SELECT value FROM stampcache_counts WHERE name = 'rewrite_due'"
REWRITTEN = "UPDATE stampcache_counts SET value = max(0, value - ?) WHERE name = 'rewrite_due'"
BODIES = "SELECT partition, key, body FROM stampcache_entries"
BODY = "SELECT id, body FROM stampcache_entries WHERE partition = ? AND key = ?"
BY_ID = "SELECT id, partition, key FROM stampcache_entries WHERE entry_id = ?"
BY_SCOPE = "SELECT id, partition, key FROM stampcache_entries WHERE scope = ?"
HOLDING_ID = (
    "SELECT id, partition, key FROM stampcache_entries WHERE entry_id = ? AND invalidated = ''"
)
HOLDING_DOUBT = HOLDING_ID + " AND doubtful_at IS ?"
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
    " embedder, prompt, indexed, body, vector, answer_bytes, expires_at, doubtful_at, confirmed_at,"
    " changed, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DEPEND = "INSERT INTO stampcache_dependencies (entry, corpus, source, chunk) VALUES (?, ?, ?, ?)"
NO_LONGER_DEPEND = "DELETE FROM stampcache_dependencies WHERE entry = ?"
INVALIDATE = (
    "UPDATE stampcache_entries SET invalidated = ?, changed = ?, vector = NULL WHERE id = ?"
)
END = "UPDATE stampcache_entries SET vector = NULL WHERE id = ?"
SUSPEND = "UPDATE stampcache_entries SET invalidated = ?, changed = ? WHERE id = ?"
RESTORE = "UPDATE stampcache_entries SET invalidated = '', changed = ?, used = ? WHERE id = ?"
RENEW = "UPDATE stampcache_entries SET expires_at = ?, changed = ? WHERE id = ?"
CONFIRM = (
    "UPDATE stampcache_entries SET confirmed_at = ?, doubtful_at = ?, changed = ? WHERE id = ?"
)
_COMPARED = "SELECT at FROM stampcache_sources WHERE corpus = ?1 AND source = ?2 AND announced = 0"
OBSERVE = (
    "INSERT INTO stampcache_sources (corpus, source, announced, changes, seconds, at)"
    " VALUES (?1, ?2, 0, ?3, ?4, ?5) ON CONFLICT (corpus, source, announced) DO UPDATE SET"
    " changes = changes + excluded.changes, seconds = seconds + excluded.seconds"
)
ANNOUNCE = (
    "INSERT INTO stampcache_sources (corpus, source, announced, changes, seconds, at)"  # noqa: S608 - own text
    f" VALUES (?1, ?2, 1, EXISTS ({_COMPARED}), coalesce(max(0, ?3 - ({_COMPARED})), 0), ?3)"
    " ON CONFLICT (corpus, source, announced) DO UPDATE SET"
    " changes = changes + 1, seconds = seconds + excluded.at - at, at = excluded.at"
    " WHERE excluded.at - at >= ?4"
)
OBSERVED = (
    "SELECT announced, changes, seconds FROM stampcache_sources"
    " WHERE corpus IN (?1, '') AND source = ?2"
)
JUDGED = (
    "INSERT INTO stampcache_verdicts (entry_id, tenant, body) SELECT ?1, ?2, ?3"
    " WHERE ?2 = '' OR EXISTS (SELECT 1 FROM stampcache_entries WHERE entry_id = ?1)"
)
TRIM_VERDICTS = (
    "DELETE FROM stampcache_verdicts WHERE id <="
    " (SELECT coalesce(max(id), 0) - ? FROM stampcache_verdicts)"
)
VERDICT = "SELECT body FROM stampcache_verdicts WHERE entry_id = ? ORDER BY id DESC LIMIT 1"
SHELVE = (
    "INSERT OR REPLACE INTO stampcache_shelves (shelf, key, tenant, body) SELECT ?1, ?2, ?3, ?4"
    " WHERE ?5 = '' OR EXISTS (SELECT 1 FROM stampcache_entries WHERE entry_id = ?5)"
)
SHELVED = (
    "SELECT key, tenant, body FROM stampcache_shelves WHERE shelf = ? ORDER BY id DESC LIMIT ?"
)
TRIM_SHELF = (
    "DELETE FROM stampcache_shelves WHERE id IN (SELECT id FROM stampcache_shelves"
    " WHERE shelf = ? ORDER BY id DESC LIMIT -1 OFFSET ?)"
)
UNSHELVE = "DELETE FROM stampcache_shelves WHERE shelf = ? AND key = ?"
VERDICTS = "SELECT body, entry_id FROM stampcache_verdicts ORDER BY id DESC LIMIT ?"
_NEXT_TURN = "(SELECT coalesce(max(turn), 0) + 1 FROM stampcache_due)"
_DUE = (
    " FROM stampcache_due AS due JOIN stampcache_entries AS entries ON entries.id = entry"
    " WHERE waiting = 1 AND invalidated = '' AND due.doubtful_at = entries.doubtful_at"
    " AND (expires_at IS NULL OR expires_at > ?1)"
)
_FREE = "(owner IN ('', ?1) OR taken_at > ?2 OR taken_at <= ?2 - ?3)"
_OF_ENTRY = "entry = (SELECT id FROM stampcache_entries WHERE entry_id = ?) AND doubtful_at = ?"
DOUBTED = (
    "SELECT id FROM stampcache_entries WHERE entry_id = ? AND invalidated = '' AND doubtful_at = ?"
)
LISTED = "SELECT waiting, served FROM stampcache_due WHERE entry = ? AND doubtful_at = ?"
LIST_DUE = (
    "INSERT OR REPLACE INTO stampcache_due (entry, turn, scope, doubtful_at, early, served)"  # noqa: S608 - own text
    f" VALUES (?, {_NEXT_TURN}, ?, ?, ?, ?)"
)
SERVE_LISTED = "UPDATE stampcache_due SET served = 1, early = 0 WHERE entry = ?"
DUE = (
    "SELECT entry_id, partition, key, due.scope, due.doubtful_at, early"
    f"{_DUE} ORDER BY turn LIMIT ?2"
)
WAITING = f"SELECT count(*){_DUE}"
TAKE = (
    "UPDATE stampcache_due SET owner = ?1, taken_at = ?2"  # noqa: S608 - own text
    f" WHERE waiting = 1 AND {_FREE} AND entry ="
    " (SELECT id FROM stampcache_entries WHERE entry_id = ?4) AND doubtful_at = ?5"
)
TAKE_FROM_LIST = (
    "UPDATE stampcache_due SET waiting = 0, owner = '', taken_at = NULL"  # noqa: S608 - own text
    f" WHERE owner IN ('', ?) AND {_OF_ENTRY}"
)
PUT_TO_END = (
    f"UPDATE stampcache_due SET turn = {_NEXT_TURN}, owner = '', taken_at = NULL"  # noqa: S608 - own text
    f" WHERE owner IN ('', ?) AND {_OF_ENTRY}"
)
PERIOD = "SELECT at, period_s FROM stampcache_work"
WORKED = "INSERT OR REPLACE INTO stampcache_work VALUES (1, ?, ?)"
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
LOG_CHANGE = "INSERT INTO stampcache_log (change) VALUES (?)"
CHANGES_SINCE = (
    "SELECT change FROM stampcache_log WHERE sequence > ? AND change IS NOT NULL ORDER BY sequence"
)
RAISE_FLOOR = "UPDATE stampcache_counts SET value = ? WHERE name = 'log_floor'"
TRIM_LOG = "DELETE FROM stampcache_log WHERE sequence <= ?"

DECLARE = "UPDATE stampcache_corpora SET heard_at = ?, silence_s = ? WHERE corpus = ?"
KNOW = "INSERT OR IGNORE INTO stampcache_corpora (corpus, heard_at) VALUES (?, ?)"
STANDING = (
    "SELECT problem, heard_at, silence_s, chunks, complete, swept_at, checked, drifted"
    " FROM stampcache_corpora WHERE corpus = ?"
)
CORPORA = "SELECT corpus FROM stampcache_corpora ORDER BY corpus"
BLOCK = "UPDATE stampcache_corpora SET problem = ? WHERE corpus = ?"
HEARD = "UPDATE stampcache_corpora SET heard_at = ? WHERE corpus = ?"
COMPLETE = "UPDATE stampcache_corpora SET complete = ? WHERE corpus = ?"
DOUBT = "UPDATE stampcache_corpora SET doubted = ? WHERE corpus = ?"
SWEPT = (
    "UPDATE stampcache_corpora SET heard_at = ?1, swept_at = ?1, checked = ?2, drifted = ?3"
    " WHERE corpus = ?4"
)
IS_COMPLETE = "SELECT complete, doubted FROM stampcache_corpora WHERE corpus = ?"
IS_WRITTEN = "SELECT 1 FROM stampcache_intents WHERE corpus = ? LIMIT 1"
INTENTS = "SELECT body FROM stampcache_intents WHERE corpus = ? ORDER BY id"
INTEND = "INSERT OR REPLACE INTO stampcache_intents (id, corpus, body) VALUES (?, ?, ?)"
RESOLVE = "DELETE FROM stampcache_intents WHERE id = ?"
CHUNKS = "SELECT chunk, source, digest, vector, sequence FROM stampcache_chunks WHERE corpus = ?"
CHUNK = CHUNKS + " AND chunk = ?"
OTHER_OF_VECTOR = (
    "SELECT chunk, source, digest, vector, sequence FROM stampcache_chunks WHERE corpus = ?1"
    " AND substr(vector, 1, 16) = substr(?2, 1, 16) AND vector = ?2 AND digest <> ?3 LIMIT 1"
)
CHUNKS_SINCE = CHUNKS + " AND sequence > ?"
ADD_CHUNK = (
    "INSERT INTO stampcache_chunks (corpus, chunk, source, digest, vector, sequence)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
DOUBT_CHUNK = "UPDATE stampcache_chunks SET digest = ? WHERE corpus = ? AND chunk = ?"
DROP_CHUNK = "DELETE FROM stampcache_chunks WHERE corpus = ? AND chunk = ?"
ADD_REACH = (
    "INSERT INTO stampcache_reaches (entry, corpus, settings, body, changed) VALUES (?, ?, ?, ?, ?)"
)
DROP_REACH = "DELETE FROM stampcache_reaches WHERE entry = ?"
REACHES_SINCE = (
    "SELECT entry, body, changed FROM stampcache_reaches WHERE corpus = ? AND changed > ?"
    " ORDER BY changed LIMIT ?"
)
REACH = (
    "SELECT body, entry, corpus FROM stampcache_reaches WHERE entry ="
    " (SELECT id FROM stampcache_entries WHERE entry_id = ?)"
)
REACHED = (
    "SELECT partition, key, invalidated, reaches.body, differences FROM stampcache_reaches AS reaches"
    " JOIN stampcache_entries AS entries ON entries.id = entry WHERE entry = ?"
)
DIFFER = "UPDATE stampcache_reaches SET differences = ? WHERE entry = ?"
SAMPLE = (
    "SELECT partition, key, entries.body, invalidated, expires_at, doubtful_at, confirmed_at"
    " FROM stampcache_entries AS entries"
    " JOIN stampcache_reaches AS reaches ON entries.id = entry"
    " WHERE reaches.corpus = ? AND settings = ? AND invalidated = '' AND entry_id {side} ?"
    " ORDER BY entry_id LIMIT ?"
)
SAMPLE_AFTER = SAMPLE.format(side=">")
SAMPLE_BEFORE = SAMPLE.format(side="<=")

SERVED = (
    "INSERT OR IGNORE INTO stampcache_servings (entry_id, partition, key, asked, tenant)"
    " SELECT ?1, ?2, ?3, ?4, ?5"
    " WHERE EXISTS (SELECT 1 FROM stampcache_entries WHERE tenant = ?5)"
)
TRIM_SERVINGS = (
    "DELETE FROM stampcache_servings WHERE id <="
    " (SELECT coalesce(max(id), 0) - ? FROM stampcache_servings)"
)
BAD = "SELECT other FROM stampcache_bad WHERE partition = ? AND key = ?"
MARK_BAD = (
    "INSERT OR IGNORE INTO stampcache_bad SELECT partition, key, asked, tenant"
    " FROM stampcache_servings WHERE entry_id = ?"
)
MARK_BAD_BACK = (
    "INSERT OR IGNORE INTO stampcache_bad SELECT partition, asked, key, tenant"
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


_HOLDING = "invalidated = ''"
_SUSPENDED = (
    "invalidated <> '' AND EXISTS"
    " (SELECT 1 FROM stampcache_reaches WHERE entry = id AND differences IS NOT NULL)"
)
_BESIDE = "NOT EXISTS (SELECT 1 FROM stampcache_reaches WHERE entry = id AND corpus = ?)"


class Query(Struct, frozen=True):
    """A statement and the values it binds."""

    statement: str
    values: tuple[str, ...]


def selecting(
    selector: Selector, *, suspended: bool = False, beside: str | None = None
) -> Query | None:
    """Return the query for the entries that hold and that a change touches, in the order of marking.

    It selects what `stampcache.stores.selection.touches` says; ``None`` where that is nothing. With
    ``suspended`` those that do not hold, but may again; ``beside`` a corpus those without a reach in it.
    """
    if selector == Selector() or selector.stamps == Stamps():
        return None
    wanted = {"entry_id": selector.entry, "scope": selector.scope, **_stamped(selector.stamps)}
    given = {column: value for column, value in wanted.items() if value is not None}
    conditions = [_SUSPENDED if suspended else _HOLDING, *(f"{column} = ?" for column in given)]
    values = list(given.values())
    if beside is not None:
        conditions.append(_BESIDE)
        values.append(beside)
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
