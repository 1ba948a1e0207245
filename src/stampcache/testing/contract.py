"""The contract of a store as a test suite: subclass it, give the fixture ``store``, done.

The store must be empty and of room for at least 100 entries; ``small_store`` must hold exactly 3.
"""

import threading
from collections.abc import Callable

import pytest

from stampcache.errors import StoreError
from stampcache.model import Evidence, Selector, Stamps
from stampcache.ports import Store
from stampcache.testing.contract_changes import ChangeContract
from stampcache.testing.contract_corpora import CorporaContract
from stampcache.testing.contract_forget import ForgetContract
from stampcache.testing.contract_intents import IntentsContract
from stampcache.testing.contract_journal import JournalContract
from stampcache.testing.contract_reaches import ReachContract
from stampcache.testing.contract_shelf import ShelfContract
from stampcache.testing.samples import NOW, make_entry, unit

__all__ = ["NOW", "StoreContract", "in_threads", "make_entry", "unit"]


class StoreContract(
    ChangeContract,
    CorporaContract,
    ForgetContract,
    IntentsContract,
    JournalContract,
    ReachContract,
    ShelfContract,
):
    """What every store does, as `stampcache.stores.memory` does it."""

    @pytest.fixture
    def small_store(self) -> Store:
        """Override: an empty store with a capacity of exactly 3 entries."""
        pytest.skip("the store has no capacity to set")

    # -- entries -----------------------------------------------------------------------------------

    def test_fetch_of_an_empty_store_is_none(self, store: Store) -> None:
        assert store.fetch("p", "k") is None

    def test_put_then_fetch_returns_an_equal_entry(self, store: Store) -> None:
        cited = (Evidence(corpus="c", source="s", chunk="1", text="t", score=0.5, rank=0).sealed(),)
        entry = make_entry("k", evidence=cited, stamps=Stamps(model="m", index="i"), expires_at=NOW)
        receipt = store.put(entry, unit(1, 0), store.sequence())
        assert receipt.stored
        assert receipt.evicted == 0
        assert store.fetch("p", "k") == entry

    def test_partitions_are_invisible_to_each_other(self, store: Store) -> None:
        store.put(make_entry("k", partition="a"), unit(1, 0), store.sequence())
        assert store.fetch("b", "k") is None
        assert not store.nearest("b", unit(1, 0), 5, asked="x", now=NOW)

    def test_the_same_key_in_two_partitions_is_two_entries(self, store: Store) -> None:
        store.put(make_entry("k", partition="a", text="A"), None, store.sequence())
        store.put(make_entry("k", partition="b", text="B"), None, store.sequence())
        answers = [store.fetch(partition, "k") for partition in "ab"]
        assert [entry and entry.answer.text for entry in answers] == ["A", "B"]

    @pytest.mark.parametrize("name", ["a[b]*?", "a:b", "a,b/c", "a\nb", "é\u0000x", "%_'\";--"])
    def test_no_name_is_special(self, store: Store, name: str) -> None:
        store.put(make_entry(name, partition=name, scope=name), None, store.sequence())
        store.put(make_entry("other", partition="ab", scope="ab"), None, store.sequence())
        assert store.fetch(name, name) is not None
        assert store.clear(name) == 1
        assert store.fetch("ab", "other") is not None

    def test_writing_twice_replaces(self, store: Store) -> None:
        store.put(make_entry("k", entry_id="1", text="old"), unit(1, 0), store.sequence())
        store.put(make_entry("k", entry_id="2", text="new"), unit(0, 1), store.sequence())
        entry = store.fetch("p", "k")
        assert entry is not None and entry.answer.text == "new"
        assert store.stats().entries == 1
        (candidate,) = store.nearest("p", unit(0, 1), 5, asked="x", now=NOW)
        assert candidate.similarity == pytest.approx(1.0, abs=1e-6)

    def test_remove_deletes_this_very_entry_only(self, store: Store) -> None:
        old = make_entry("k", entry_id="1")
        store.put(old, unit(1, 0), store.sequence())
        store.put(make_entry("k", entry_id="2"), unit(1, 0), store.sequence())
        assert not store.remove(old)
        new = store.fetch("p", "k")
        assert new is not None and store.remove(new)
        assert store.fetch("p", "k") is None
        assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)

    # -- vectors -----------------------------------------------------------------------------------

    def test_nearest_is_ordered_by_falling_similarity(self, store: Store) -> None:
        for key, vector in (("far", unit(0, 1)), ("near", unit(1, 0.1)), ("mid", unit(1, 1))):
            store.put(make_entry(key), vector, store.sequence())
        found = store.nearest("p", unit(1, 0), 2, asked="x", now=NOW)
        assert [one.entry.identity.key for one in found] == ["near", "mid"]
        assert found[1].similarity == pytest.approx(0.7071, abs=1e-3)

    def test_an_entry_without_a_vector_is_never_near(self, store: Store) -> None:
        store.put(make_entry("k"), None, store.sequence())
        assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)

    def test_an_entry_that_loses_its_vector_is_no_longer_near(self, store: Store) -> None:
        store.put(make_entry("k", entry_id="1"), unit(1, 0), store.sequence())
        store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
        store.put(make_entry("k", entry_id="2"), None, store.sequence())
        assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)

    def test_expired_entries_hide_no_live_one(self, store: Store) -> None:
        for at in range(20):
            store.put(make_entry(f"old{at}", expires_at=NOW), unit(1, at / 1e4), store.sequence())
        store.put(make_entry("live", expires_at=NOW + 9), unit(1, 1), store.sequence())
        found = store.nearest("p", unit(1, 0), 2, asked="x", now=NOW + 1)
        assert [one.entry.identity.key for one in found] == ["live"]

    def test_a_vector_of_another_size_finds_nothing(self, store: Store) -> None:
        store.put(make_entry("k"), unit(1, 0), store.sequence())
        assert not store.nearest("p", unit(1, 0, 0), 5, asked="x", now=NOW)

    # -- wrong hits --------------------------------------------------------------------------------

    def test_a_reported_pair_stays_marked_when_the_entry_comes_back(self, store: Store) -> None:
        entry = make_entry("k", entry_id="1")
        store.put(entry, unit(1, 0), store.sequence())
        store.touch(entry, "asked")
        assert store.report_bad("1")
        assert store.fetch("p", "k") is None
        store.put(make_entry("k", entry_id="2"), unit(1, 0), store.sequence())
        (bad,) = store.nearest("p", unit(1, 0), 5, asked="asked", now=NOW)
        (good,) = store.nearest("p", unit(1, 0), 5, asked="other", now=NOW)
        assert bad.reported_bad
        assert not good.reported_bad

    def test_a_reported_pair_is_marked_the_other_way_round_too(self, store: Store) -> None:
        entry = make_entry("k", entry_id="1")
        store.put(entry, unit(1, 0), store.sequence())
        store.touch(entry, "asked")
        store.report_bad("1")
        store.put(make_entry("asked", entry_id="3"), unit(1, 0), store.sequence())
        (bad,) = store.nearest("p", unit(1, 0), 5, asked="k", now=NOW)
        assert bad.reported_bad

    def test_reporting_an_unknown_entry_is_no_error(self, store: Store) -> None:
        assert not store.report_bad("nothing")

    # -- capacity ----------------------------------------------------------------------------------

    def test_the_capacity_is_hard_and_the_least_used_gives_way(self, small_store: Store) -> None:
        entries = [make_entry(str(at)) for at in range(4)]
        for entry in entries[:3]:
            small_store.put(entry, unit(1, 0), small_store.sequence())
        small_store.touch(entries[0], "0")
        receipt = small_store.put(entries[3], unit(1, 0), small_store.sequence())
        assert receipt.evicted == 1
        assert small_store.stats().entries == 3
        assert [small_store.fetch("p", str(at)) is None for at in range(4)] == [
            False,
            True,
            False,
            False,
        ]
        found = small_store.nearest("p", unit(1, 0), 9, asked="x", now=NOW)
        assert {one.entry.identity.key for one in found} == {"0", "2", "3"}

    def test_replacing_at_capacity_evicts_nothing(self, small_store: Store) -> None:
        for at in range(3):
            small_store.put(make_entry(str(at)), None, small_store.sequence())
        receipt = small_store.put(make_entry("0", entry_id="new"), None, small_store.sequence())
        assert receipt.evicted == 0
        assert small_store.stats().entries == 3

    # -- facts and figures -------------------------------------------------------------------------

    def test_the_first_claim_stays_in_force(self, store: Store) -> None:
        assert store.claim("fact", "1") == "1"
        assert store.claim("fact", "2") == "1"

    def test_tallies_add_up(self, store: Store) -> None:
        store.tally({"a": 1, "b": 2})
        store.tally({"a": 3})
        assert dict(store.tallies()) == {"a": 4, "b": 2}

    def test_stats_count_one_scope_or_all(self, store: Store) -> None:
        entry = make_entry("k", partition="a", scope="a", text="four")
        store.put(entry, unit(1, 0), store.sequence())
        store.put(make_entry("k", partition="b", scope="b"), None, store.sequence())
        store.touch(entry, "k")
        mine, everything = store.stats("a"), store.stats()
        assert (mine.entries, mine.vectors, mine.answer_bytes, mine.hits) == (1, 1, 4, 1)
        assert (everything.entries, everything.vectors, everything.hits) == (2, 1, 1)

    def test_a_healthy_store_has_no_problems(self, store: Store) -> None:
        store.put(make_entry("k"), unit(1, 0), store.sequence())
        assert not store.problems()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.fetch("p", "k")

    # -- concurrency -------------------------------------------------------------------------------

    def test_threads_write_the_same_key_without_error(self, store: Store) -> None:
        def write(worker: int) -> None:
            for at in range(5):
                entry = make_entry("k", entry_id=f"{worker}.{at}")
                assert store.put(entry, unit(1, 0), store.sequence()).stored
                store.touch(entry, "k")
                assert store.fetch("p", "k") is not None

        in_threads(write, count=16)
        assert store.stats().entries == 1
        assert len(store.nearest("p", unit(1, 0), 9, asked="x", now=NOW)) == 1

    def test_of_threads_that_invalidate_one_marks_each_entry(self, store: Store) -> None:
        for at in range(20):
            store.put(make_entry(str(at), evidence=()), unit(1, at), store.sequence())
        marked: list[int] = []

        def work(worker: int) -> None:
            marked.append(store.invalidate(Selector(source=f"{worker}")))
            assert not store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)

        in_threads(work, count=8)
        assert sum(marked) == 20
        assert store.stats().invalidated == 20
        assert store.purge(NOW) == 20

    def test_threads_write_and_delete_without_leaving_orphans(self, store: Store) -> None:
        def work(worker: int) -> None:
            for at in range(5):
                entry = make_entry(f"{worker}.{at}", scope=f"s{worker}")
                store.put(entry, unit(1, at + 1), store.sequence())
                store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)
            store.clear(f"s{worker}")

        in_threads(work, count=8)
        assert store.stats().entries == 0
        assert not store.nearest("p", unit(1, 0), 3, asked="x", now=NOW)


def in_threads(work: Callable[[int], None], *, count: int) -> None:
    """Run ``work(0..count-1)`` in threads at once and raise the first error of any."""
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def guarded(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - carried over to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
