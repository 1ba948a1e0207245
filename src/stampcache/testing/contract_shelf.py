"""The contract of a store's shelves: small records by name."""

import threading

import pytest
from msgspec.structs import replace

from stampcache.ports import Store
from stampcache.shelf import Record
from stampcache.testing.samples import make_entry


def record(key: str, body: bytes = b"b", tenant: str = "") -> Record:
    """Return a record with little in it."""
    return Record(key=key, body=body, tenant=tenant)


class ShelfContract:
    """What every store keeps of others."""

    def test_an_unknown_shelf_is_empty(self, store: Store) -> None:
        assert list(store.shelf.kept("x", 9)) == []
        assert list(store.shelf.take("x", ["a"])) == []

    def test_records_come_back_newest_first(self, store: Store) -> None:
        kept = [record("a", b"\x00\xff", "t"), record("b"), record("c", b"")]
        store.shelf.keep("x", kept[:2], most=9)
        store.shelf.keep("x", kept[2:], most=9)
        assert list(store.shelf.kept("x", 9)) == kept[::-1]
        assert list(store.shelf.kept("x", 2)) == kept[:0:-1]
        assert list(store.shelf.kept("x", 0)) == []
        store.shelf.keep("x", [], most=9)
        assert list(store.shelf.kept("x", 9)) == kept[::-1]

    def test_a_key_has_one_record_and_keeping_makes_it_the_newest(self, store: Store) -> None:
        store.shelf.keep("x", [record("a", b"1"), record("b", b"2")], most=9)
        store.shelf.keep("x", [record("a", b"3"), record("c"), record("c", b"4")], most=9)
        assert [(one.key, one.body) for one in store.shelf.kept("x", 9)] == [
            ("c", b"4"),
            ("a", b"3"),
            ("b", b"2"),
        ]

    def test_a_shelf_has_a_bound_and_the_oldest_go(self, store: Store) -> None:
        store.shelf.keep("y", [record("mine")], most=1)
        for at in range(5):
            store.shelf.keep("x", [record(f"{at}{side}") for side in "ab"], most=3)
        assert [one.key for one in store.shelf.kept("x", 9)] == ["4b", "4a", "3b"]
        store.shelf.keep("x", [record(str(at)) for at in range(9)], most=2)
        assert [one.key for one in store.shelf.kept("x", 9)] == ["8", "7"]
        assert [one.key for one in store.shelf.kept("y", 9)] == ["mine"]

    def test_taking_removes_and_tells_what_was_there(self, store: Store) -> None:
        store.shelf.keep("x", [record(key) for key in "abc"], most=9)
        store.shelf.keep("y", [record("a")], most=9)
        assert list(store.shelf.take("x", ["c", "z", "a", "a"])) == ["c", "a"]
        assert list(store.shelf.take("x", ["a", "c"])) == []
        assert [one.key for one in store.shelf.kept("x", 9)] == ["b"]
        assert [one.key for one in store.shelf.kept("y", 9)] == ["a"]

    @pytest.mark.parametrize("name", ["a:b", "{x}", "é\u0000", "%_'\";--", "*?[a]", ""])
    def test_no_name_of_a_shelf_or_a_record_is_special(self, store: Store, name: str) -> None:
        store.shelf.keep(name, [record(name, name.encode())], most=9)
        store.shelf.keep("a", [record("b")], most=9)
        assert [one.key for one in store.shelf.kept(name, 9)] == [name]
        assert list(store.shelf.take(name, [name])) == [name]
        assert [one.key for one in store.shelf.kept("a", 9)] == ["b"]

    def test_each_record_is_taken_by_one(self, store: Store) -> None:
        keys = [str(at) for at in range(60)]
        store.shelf.keep("x", [record(key) for key in keys], most=99)
        taken: list[list[str]] = [[] for _ in range(4)]

        def work(mine: list[str]) -> None:
            for key in keys:
                mine.extend(store.shelf.take("x", [key]))

        threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(key for mine in taken for key in mine) == sorted(keys)

    def test_records_are_no_entries(self, store: Store) -> None:
        entry = make_entry("k")
        store.put(entry, None, store.sequence())
        before = store.sequence()
        store.shelf.keep("x", [record("k", tenant=entry.identity.tenant)], most=9)
        assert (store.sequence(), store.stats().entries) == (before, 1)
        store.clear(entry.identity.scope)
        assert [one.key for one in store.shelf.kept("x", 9)] == ["k"]

    def test_a_record_that_names_an_entry_is_kept_only_if_that_is_there(self, store: Store) -> None:
        entry = make_entry("k")
        named = [replace(record(key, tenant="t"), entry=entry.id) for key in "ab"]
        store.shelf.keep("x", named[:1], most=9)
        assert list(store.shelf.kept("x", 9)) == []
        store.put(entry, None, store.sequence())
        store.shelf.keep("x", named, most=9)
        assert list(store.shelf.kept("x", 9)) == [record("b", tenant="t"), record("a", tenant="t")]

    def test_a_forgotten_tenant_has_no_records(self, store: Store) -> None:
        store.shelf.keep("x", [record("a", b"123", "t"), record("b", b"4", "u")], most=9)
        store.shelf.keep("y", [record("a", b"5", "t"), record("c", b"6")], most=9)
        assert store.forget("t").size_bytes >= 4
        assert [one.key for one in store.shelf.kept("x", 9)] == ["b"]
        assert [one.key for one in store.shelf.kept("y", 9)] == ["c"]
        entry = make_entry("k", tenant="t")
        store.put(entry, None, store.sequence())
        store.forget("t")
        store.shelf.keep("x", [replace(record("late", tenant="t"), entry=entry.id)], most=9)
        assert [one.key for one in store.shelf.kept("x", 9)] == ["b"]
