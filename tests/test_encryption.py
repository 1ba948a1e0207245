"""Encryption at rest: nothing can be read without the key, and nothing that was changed is believed."""

import base64
import importlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache import Cache, ConfigError, Hit, Reason, Request, Stored, open_cache
from stampcache.corpora import Change, Chunk, Committed, Metric, Reach
from stampcache.errors import CodecError
from stampcache.journal import Verdict
from stampcache.model import Selector
from stampcache.shelf import Record
from stampcache.spaces import as_bytes
from stampcache.stores.codec import Codec
from stampcache.stores.keys import EncryptionKey, Key, keys_from, open_codec
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.stores.sqlite_survey import survey
from stampcache.testing import AngleEmbedder
from stampcache.testing.contract import NOW, make_entry, unit
from tests.test_forget import bytes_beside, lived, traces

pytest.importorskip("cryptography")
from stampcache.stores.aes import AesSeal

OLD, NEW, OTHER = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
ADDRESSES = st.lists(st.text(max_size=4), max_size=3).map(tuple)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rag.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, near_capacity=1, encryption_key=OLD)
    yield store
    store.close()


def sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


# -- the seal ----------------------------------------------------------------------------------------


@given(plain=st.binary(max_size=200), address=ADDRESSES)
def test_what_was_sealed_opens_with_its_key_at_its_address(
    plain: bytes, address: tuple[str, ...]
) -> None:
    seal = AesSeal(keys_from(OLD))
    sealed = seal.close(plain, address)
    assert seal.open(sealed, address) == plain
    assert len(sealed) == len(plain) + seal.overhead
    assert seal.close(plain, address) != sealed, "nobody sees that two are equal"
    assert AesSeal(keys_from([NEW, OLD])).open(sealed, address) == plain
    with pytest.raises(CodecError, match="a key that was not given"):
        AesSeal(keys_from(NEW)).open(sealed, address)


@given(address=ADDRESSES, other=ADDRESSES)
def test_what_was_sealed_opens_at_no_other_address(
    address: tuple[str, ...], other: tuple[str, ...]
) -> None:
    seal = AesSeal(keys_from(OLD))
    sealed = seal.close(b"plain", address)
    if address != other:
        with pytest.raises(CodecError, match="changed or moved"):
            seal.open(sealed, other)


@given(plain=st.binary(max_size=40), data=st.data())
def test_a_changed_bit_or_a_lost_byte_opens_nothing(plain: bytes, data: st.DataObject) -> None:
    seal = AesSeal(keys_from(OLD))
    sealed = bytearray(seal.close(plain, ("a",)))
    at = data.draw(st.integers(0, len(sealed) * 8 - 1))
    changed = bytearray(sealed)
    changed[at // 8] ^= 1 << at % 8
    for wrong in (changed, sealed[: at // 8], sealed + b"\0"):
        with pytest.raises(CodecError):
            seal.open(bytes(wrong), ("a",))


def test_a_codec_without_a_seal_keeps_bytes_as_they_are() -> None:
    codec = Codec()
    assert not codec.is_sealed
    assert codec.show(codec.hide(b"x", "kind", "a"), "kind", "b") == b"x"
    assert codec.vector_size(3) == 12
    with pytest.raises(CodecError, match="cut off"):
        codec.decode_vector(b"12345", ("p", "k"))


def test_an_entry_at_the_address_of_another_is_damaged() -> None:
    codec = Codec()
    raw = codec.encode(make_entry("k"))
    assert codec.decode(raw, ("p", "k")) == make_entry("k")
    with pytest.raises(CodecError, match="address of another"):
        codec.decode(raw, ("p", "other"))


# -- keys --------------------------------------------------------------------------------------------


def test_a_key_is_given_as_bytes_or_as_text() -> None:
    text = base64.urlsafe_b64encode(bytes([251] * 32)).decode()
    (key,) = keys_from(bytes([251] * 32))
    assert keys_from(text) == keys_from(text.rstrip("=")) == keys_from(f" {text}\n") == (key,)
    assert keys_from([text, OLD, text]) == (key, Key(OLD))
    assert keys_from(None) == ()
    assert text not in repr(key)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (b"short", "has 5 bytes"),
        ("", "has 0 bytes"),
        (b"x" * 33, "has 33 bytes"),
        ("correct horse battery staple!", "no base64"),
        ("dGVzdHRlc3Q=", "has 8 bytes"),
        (7, "type int"),
        ([], "empty list"),
        ([OLD, "x"], "no base64"),
        ([None], "type NoneType"),
        ({OLD: 1}, "type dict"),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_is_no_key_is_refused_without_showing_it(
    wrong: EncryptionKey, said: str, kind: str, path: Path
) -> None:
    url = "memory://" if kind == "memory" else f"sqlite:///{path}"
    with pytest.raises(ConfigError, match=said) as caught:
        open_cache(url, encryption_key=wrong)
    assert "32 random bytes" in str(caught.value)
    assert "horse" not in str(caught.value)


def test_the_memory_store_takes_a_key_and_a_store_object_does_not() -> None:
    open_cache("memory://", encryption_key=OLD).close()
    with pytest.raises(ConfigError, match="give it to the store itself"):
        open_cache(MemoryStore(), encryption_key=OLD)


def test_a_missing_library_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ConfigError, match=r"stampcache\[encryption\]"):
        SqliteStore(path, encryption_key=OLD)
    SqliteStore(path).close()


# -- which store with which key ----------------------------------------------------------------------


def test_an_encrypted_store_is_refused_without_its_key(path: Path) -> None:
    SqliteStore(path, encryption_key=OLD).close()
    with pytest.raises(ConfigError, match="is encrypted: give the key"):
        SqliteStore(path)
    for wrong in (NEW, [NEW, OTHER]):
        with pytest.raises(ConfigError, match="under another key"):
            SqliteStore(path, encryption_key=wrong)
    SqliteStore(path, encryption_key=OLD).close()


def test_a_store_in_plain_is_refused_with_a_key(path: Path) -> None:
    SqliteStore(path).close()
    with pytest.raises(ConfigError, match="kept in plain"):
        SqliteStore(path, encryption_key=OLD)
    SqliteStore(path).close()


def test_keys_change_while_processes_come_and_go(path: Path) -> None:
    """The new one is given behind the old one everywhere, then before it, then alone."""
    url = f"sqlite:///{path}"
    questions = {name: Request(question=name) for name in ("first", "second", "third")}

    def fill(name: str, *keys: bytes) -> None:
        with open_cache(url, encryption_key=keys) as cache:
            assert isinstance(cache.update(questions[name], name), Stored)

    fill("first", OLD)
    fill("second", OLD, NEW)
    with pytest.raises(ConfigError, match="under another key"):
        open_cache(url, encryption_key=NEW)
    fill("third", NEW, OLD)
    with open_cache(url, encryption_key=[OLD, NEW]) as cache:
        assert all(isinstance(cache.lookup(one), Hit) for one in questions.values())
    with open_cache(url, encryption_key=NEW) as cache:
        outcomes = [cache.lookup(one).reason for one in questions.values()]
        assert outcomes == [Reason.CORRUPT, Reason.CORRUPT, Reason.SAME_TOKENS]
        assert cache.stats().counters["miss.corrupt"] == 2
        assert cache.stats().entries == 1, "what nobody can read was dropped"


def test_of_two_who_open_a_new_store_at_once_one_decides() -> None:
    facts: dict[str, str] = {}

    def opened(*keys: bytes) -> str | None:
        return open_codec(keys, name="s", claim=facts.setdefault, fact=facts.get).secret

    facts["encryption"] = Key(OLD).id.hex()  # the other one came so far
    with pytest.raises(ConfigError, match="under another key"):
        opened(NEW)
    secret = opened(NEW, OLD)
    assert secret is not None and len(secret) == 64
    assert opened(OLD) == opened(NEW) == secret
    assert secret not in str(facts)


def test_facts_that_somebody_changed_open_nothing(path: Path) -> None:
    SqliteStore(path, encryption_key=OLD).close()
    sql(path, "UPDATE stampcache_facts SET value = 'ff' || value WHERE name LIKE 'encryption:%'")
    with pytest.raises(ConfigError, match="was changed"):
        SqliteStore(path, encryption_key=OLD)


def test_opening_an_encrypted_store_again_writes_nothing(path: Path) -> None:
    for _ in range(2):
        SqliteStore(path, encryption_key=OLD).close()
    facts: dict[str, str] = dict(sql(path, "SELECT name, value FROM stampcache_facts"))  # type: ignore[arg-type]  # rows of two

    def refuse(name: str, value: str) -> str:
        raise AssertionError(f"{name} is claimed anew")

    assert open_codec(OLD, name="s", claim=refuse, fact=facts.get).codec.is_sealed


# -- what is in a file -------------------------------------------------------------------------------


def test_no_question_answer_verdict_or_vector_can_be_read_in_the_file(
    store: SqliteStore, path: Path
) -> None:
    words = ("Zanzibar", "Quagga", "Xylograph")
    entries = lived(store, "acme", words)
    store.put(make_entry("k", text="Zanzibar"), unit(1, 0), store.sequence())
    content = traces("acme", words)[: len(words) + 18]  # words and vectors, not digests
    raw = bytes_beside(path)
    assert [trace for trace in content if trace in raw] == []
    assert b"question" not in raw
    assert store.fetch(*entries[5].place) == entries[5]
    assert b"tenant-acme" in raw, "digests stay, so that indexes work"


def test_neither_key_nor_body_of_a_record_can_be_read_in_the_file(
    store: SqliteStore, path: Path
) -> None:
    record = Record(key="a digest of Zanzibar", body=b"Zanzibar", tenant="t")
    store.shelf.keep("x", [record], most=9)
    assert list(store.shelf.kept("x", 9)) == [record]
    assert b"Zanzibar" not in bytes_beside(path)
    sql(path, "UPDATE stampcache_shelves SET key = 'other'")
    assert list(store.shelf.kept("x", 9)) == []


def test_the_secret_of_tenants_cannot_be_read_in_the_file(path: Path) -> None:
    with open_cache(f"sqlite:///{path}", encryption_key=OLD) as cache:
        secret = cache.core.intake.terms.master_secret
    raw = bytes_beside(path)
    assert secret not in raw
    assert secret.hex().encode() not in raw
    with open_cache(f"sqlite:///{path}", encryption_key=OLD) as cache:
        assert cache.core.intake.terms.master_secret == secret
    with survey(path) as seen:
        assert seen.has_secret


def test_exact_and_semantic_hits_work_through_an_encrypted_file(path: Path) -> None:
    angles = AngleEmbedder({"How many days of leave?": 0, "How many leave days?": 5})

    def opened() -> Cache:
        return open_cache(f"sqlite:///{path}", encryption_key=OLD, embedder=angles, calibration=0.9)

    request = Request(question="How many days of leave?")
    with opened() as cache:
        cache.update(request, "30", outcome=cache.lookup(request))
    with opened() as cache:
        for question in ("How many days of leave?", "How many leave days?"):
            outcome = cache.lookup(Request(question=question))
            assert isinstance(outcome, Hit), outcome
            assert outcome.answer.text == "30"


# -- what somebody did to a file ---------------------------------------------------------------------


def move(path: Path, column: str, source: str) -> None:
    """Put into a column of each of two rows what stands in a column of the other one."""
    first, second = (
        row[0] for row in sql(path, f"SELECT {source} FROM stampcache_entries ORDER BY id")
    )
    for row, raw in ((1, second), (2, first)):
        sql(path, f"UPDATE stampcache_entries SET {column} = ? WHERE id = ?", raw, row)


def put_two(store: SqliteStore) -> None:
    for key, vector in (("k", unit(1, 0)), ("l", unit(1, 1))):
        store.put(make_entry(key), vector, store.sequence())
    store._replica.flush()


CUT = "UPDATE stampcache_entries SET body = substr(body, 1, length(body) - 1)"
EMPTY = "UPDATE stampcache_entries SET body = x''"
HEADED = "UPDATE stampcache_entries SET body = CAST(x'53434501' || substr(body, 5) AS BLOB)"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: move(path, "body", "body"),
        lambda path: move(path, "body", "vector"),
        lambda path: sql(path, CUT),
        lambda path: sql(path, EMPTY),
        lambda path: sql(path, HEADED),
    ],
)
def test_what_was_changed_in_the_file_is_a_miss_and_dropped(
    store: SqliteStore, path: Path, damage: Callable[[Path], object]
) -> None:
    put_two(store)
    damage(path)
    assert store.problems() == ["Damaged entries: 2; each is dropped when it is asked for."]
    assert not store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)
    for key in ("k", "l"):
        with pytest.raises(CodecError):
            store.fetch("p", key)
        assert store.fetch("p", key) is None


def test_an_entry_in_plain_is_not_believed(store: SqliteStore, path: Path) -> None:
    put_two(store)
    forged = Codec().encode(make_entry("k", text="forged"))
    sql(path, "UPDATE stampcache_entries SET body = ? WHERE key = 'k'", forged)
    with pytest.raises(CodecError, match="in plain"):
        store.fetch("p", "k")


def test_swapped_rows_of_a_plain_file_are_misses_too(path: Path) -> None:
    store = SqliteStore(path)
    put_two(store)
    move(path, "body", "body")
    with pytest.raises(CodecError, match="address of another"):
        store.fetch("p", "k")
    store.close()


def test_vectors_that_were_swapped_find_nothing(store: SqliteStore, path: Path) -> None:
    put_two(store)
    move(path, "vector", "vector")
    assert not store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)
    assert store.fetch("p", "k") == make_entry("k")


def test_a_vector_that_was_changed_leaves_a_loaded_index(store: SqliteStore, path: Path) -> None:
    put_two(store)
    assert len(store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)) == 2
    sql(path, "UPDATE stampcache_entries SET vector = substr(vector, 2) WHERE key = 'k'")
    sql(path, "INSERT INTO stampcache_log (partition, key) VALUES ('p', 'k')")
    (near,) = store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)
    assert near.entry.identity.key == "l"


def test_a_mark_that_was_changed_still_marks(store: SqliteStore, path: Path) -> None:
    put_two(store)
    store.invalidate(Selector(entry="p/k", because="said so"))
    assert store.fetch("p", "k").invalidated == "said so"  # type: ignore[union-attr]  # it is there
    sql(path, "UPDATE stampcache_entries SET invalidated = x'00' WHERE key = 'k'")
    store._replica.flush()
    assert "cannot be read" in store.fetch("p", "k").invalidated  # type: ignore[union-attr]  # as above


def test_a_verdict_that_was_changed_says_nothing(store: SqliteStore, path: Path) -> None:
    for entry_id in ("1", "2"):
        verdict = Verdict(entry_id=entry_id, question="q", fresh=True, reason="r", at=NOW)
        store.journal.judged(verdict)
    sql(path, "UPDATE stampcache_verdicts SET body = zeroblob(90) WHERE entry_id = '1'")
    assert store.journal.verdict("1") is None
    assert [one.entry_id for one in store.journal.verdicts(9)] == ["2"]


REACH = Reach(corpus="c", question=as_bytes([1.0, 0.0]), metric=Metric.COSINE, floor=0.9)


def written(store: SqliteStore, *, added: tuple[float, float] | None = None) -> Committed:
    chunks = () if added is None else (Chunk(id="1", digest="d", vector=as_bytes(added)),)
    removed = () if chunks else ("1",)
    return store.corpora.commit("c", "", Change(added=chunks, removed=removed), now=NOW)


def test_what_has_an_unreadable_reach_is_ended_by_any_write(store: SqliteStore, path: Path) -> None:
    store.corpora.commit("c", "", Change(emptied=True), now=NOW)
    entry = make_entry("k")
    store.put(entry, None, store.sequence(), REACH)
    sql(path, "UPDATE stampcache_reaches SET body = zeroblob(90)")
    found = store.corpora.reach(entry)
    assert found is not None and found.why == "its reach cannot be read"
    assert written(store, added=(0.0, 1.0)) == Committed(stale=1)
    assert written(store).restored == 0


def test_what_has_unreadable_differences_does_not_come_back(store: SqliteStore, path: Path) -> None:
    store.corpora.commit("c", "", Change(emptied=True), now=NOW)
    store.put(make_entry("k"), None, store.sequence(), REACH)
    assert written(store, added=(1.0, 0.0)) == Committed(stale=1)
    sql(path, "UPDATE stampcache_reaches SET differences = zeroblob(90)")
    assert written(store) == Committed()


def test_a_log_that_was_changed_refuses_a_fill(store: SqliteStore, path: Path) -> None:
    store.invalidate(Selector(source="s"))
    forged = msgspec.msgpack.encode(Selector(source="another"))
    sql(path, "UPDATE stampcache_log SET change = ? WHERE change IS NOT NULL", forged)
    with pytest.raises(CodecError):
        store.put(make_entry("k"), None, 0)


# -- looking into a file -----------------------------------------------------------------------------


def test_a_survey_of_an_encrypted_file_needs_the_key_only_for_entries(
    store: SqliteStore, path: Path
) -> None:
    put_two(store)
    with survey(path) as seen:
        assert seen.is_encrypted
        assert not seen.has_secret, "the application may have one of its own"
        assert seen.entries_in("p") == 2
        with pytest.raises(ConfigError, match="is encrypted"):
            list(seen.latest("s", 9))
    for keys in (OLD, [NEW, OLD]):
        with survey(path, encryption_key=keys) as seen:
            assert len(list(seen.latest("s", 9))) == 2
    assert len(sql(path, "SELECT * FROM stampcache_facts WHERE name LIKE 'encryption%'")) == 2
