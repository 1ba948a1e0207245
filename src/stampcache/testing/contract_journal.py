"""The contract of a store's journal: observed changes of sources, confirmations, verdicts."""

import threading

from msgspec.structs import replace

from stampcache.freshness import ONE_CHANGE_S, Observed
from stampcache.journal import LEASE_S, Noted, Observation, Verdict
from stampcache.model import Entry, Scope, Selector, Usage
from stampcache.ports import Store
from stampcache.testing.samples import NOW, make_entry, unit

HOUR_S = 3_600.0
SCOPE = Scope(tenant="acme", audience="7")


def make_verdict(entry_id: str = "p/k", *, reason: str = "r", fresh: bool = True) -> Verdict:
    """Return a verdict with little to say."""
    return Verdict(entry_id=entry_id, question="q", fresh=fresh, reason=reason, at=NOW)


def told(announced: int, seconds: float) -> Observed:
    """Return what was seen of a source of which changes were announced alone."""
    return Observed(0, 0.0, announced, seconds)


def listed(store: Store, key: str = "k", *, early: bool = False, at: float = NOW) -> Entry:
    """Store an entry that is doubted from then on, put it on the list, and return it."""
    entry = replace(make_entry(key), doubtful_at=at)
    store.put(entry, None, store.sequence())
    assert store.journal.list_due(entry, SCOPE, early=early).may
    return entry


def ids(store: Store, *, now: float = NOW) -> list[str]:
    """Return the ids of what is on the list, in order."""
    return [one.entry_id for one in store.journal.due(99, now=now)]


class JournalContract:
    """What every store remembers of changes and verdicts."""

    # -- observations ------------------------------------------------------------------------------

    def test_nothing_was_seen_of_what_was_never_looked_at(self, store: Store) -> None:
        assert store.journal.observed("c", ["a"]) == {}
        assert store.journal.observed("c", []) == {}

    def test_what_was_compared_adds_up(self, store: Store) -> None:
        seen = [Observation("c", "a", True, 100.0), Observation("c", "b", False, 50.0)]
        store.journal.observe(seen, now=NOW)
        store.journal.observe([Observation("c", "a", False, 200.0)], now=NOW + 9.0)
        assert store.journal.observed("c", ["a", "b", "a", "x"]) == {
            "a": Observed(1, 300.0),
            "b": Observed(0, 50.0),
        }

    def test_corpora_and_sources_are_told_apart(self, store: Store) -> None:
        for corpus, source in (("c", "d"), ("cd", ""), ("", "cd"), ("c", "%"), ("é", "a\u0000b")):
            store.journal.observe([Observation(corpus, source, True, 10.0)], now=NOW)
        assert store.journal.observed("c", ["d", "x", "%"]) == {
            "d": Observed(1, 10.0),
            "%": Observed(1, 10.0),
        }
        assert store.journal.observed("é", ["a\u0000b"]) == {"a\u0000b": Observed(1, 10.0)}

    def test_that_a_source_is_there_says_nothing_of_how_often_it_changes(
        self, store: Store
    ) -> None:
        for later in range(3):
            store.journal.observe([Observation("c", "a", False, 0.0)], now=NOW + later)
        assert store.journal.observed("c", ["a"]) == {"a": Observed()}

    def test_announced_changes_count_from_when_a_source_was_first_seen(self, store: Store) -> None:
        store.journal.observe([Observation("c", "a", False, 0.0)], now=NOW)
        for hours in (4, 5):
            store.journal.observe([Observation("c", "a", True)], now=NOW + hours * HOUR_S)
        assert store.journal.observed("c", ["a"]) == {"a": told(2, 5 * HOUR_S)}

    def test_the_first_that_is_announced_of_an_unseen_source_counts_for_nothing(
        self, store: Store
    ) -> None:
        store.journal.observe([Observation("c", "a", True)], now=NOW)
        assert store.journal.observed("c", ["a"]) == {"a": Observed()}
        store.journal.observe([Observation("c", "a", True)], now=NOW + HOUR_S)
        assert store.journal.observed("c", ["a"]) == {"a": told(1, HOUR_S)}

    def test_what_is_announced_at_once_is_one_change(self, store: Store) -> None:
        """Whoever ingests may say so of each chunk, or twice."""
        for later in (0.0, HOUR_S, HOUR_S + 1.0, HOUR_S + ONE_CHANGE_S - 1.0, 5.0):
            store.journal.observe([Observation("c", "a", True)], now=NOW + later)
        assert store.journal.observed("c", ["a"]) == {"a": told(1, HOUR_S)}
        store.journal.observe([Observation("c", "a", True)], now=NOW + HOUR_S + ONE_CHANGE_S)
        assert store.journal.observed("c", ["a"]) == {"a": told(2, HOUR_S + ONE_CHANGE_S)}

    def test_what_is_announced_is_told_apart_from_what_nobody_told(self, store: Store) -> None:
        store.journal.observe([Observation("c", "a", True, HOUR_S)], now=NOW)
        for hours in (2, 4):
            store.journal.observe([Observation("c", "a", True)], now=NOW + hours * HOUR_S)
        seen = store.journal.observed("c", ["a"])["a"]
        assert seen == Observed(1, HOUR_S, 2, 4 * HOUR_S)
        assert (seen.per_hour, seen.announced_per_hour) == (1.0, 0.5)

    def test_what_was_announced_in_no_named_corpus_counts_in_all(self, store: Store) -> None:
        for hours in (0, 2):
            store.journal.observe([Observation("", "a", True)], now=NOW + hours * HOUR_S)
        for corpus in ("", "c", "d"):
            assert store.journal.observed(corpus, ["a"]) == {"a": told(1, 2 * HOUR_S)}
        store.journal.observe([Observation("c", "b", True, HOUR_S)], now=NOW)
        assert store.journal.observed("", ["b"]) == {}, "but not the other way round"

    def test_threads_observe_without_losing_anything(self, store: Store) -> None:
        def observe() -> None:
            for _ in range(5):
                store.journal.observe([Observation("c", "a", True, 10.0)], now=NOW)

        threads = [threading.Thread(target=observe) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.journal.observed("c", ["a"]) == {"a": Observed(40, 400.0)}

    # -- confirmations -----------------------------------------------------------------------------

    def test_a_confirmed_entry_says_when_and_until_when(self, store: Store) -> None:
        entry = replace(make_entry("k"), doubtful_at=NOW + 5.0)
        store.put(entry, unit(1, 0), store.sequence())
        assert store.fetch("p", "k") == entry
        assert store.journal.confirm(entry, at=NOW + 6.0, doubtful_at=NOW + 99.0)
        confirmed = replace(entry, confirmed_at=NOW + 6.0, doubtful_at=NOW + 99.0)
        assert store.fetch("p", "k") == confirmed
        (near,) = store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
        assert near.entry == confirmed
        assert store.journal.confirm(confirmed, at=NOW + 7.0, doubtful_at=None)
        assert store.fetch("p", "k") == replace(entry, confirmed_at=NOW + 7.0, doubtful_at=None)

    def test_only_the_doubt_that_was_looked_at_is_put_off(self, store: Store) -> None:
        entry = replace(make_entry("k"), doubtful_at=NOW + 5.0)
        store.put(entry, None, store.sequence())
        assert store.journal.confirm(entry, at=NOW + 6.0, doubtful_at=NOW + 99.0)
        assert not store.journal.confirm(entry, at=NOW + 7.0, doubtful_at=NOW + 999.0)
        kept = store.fetch("p", "k")
        assert kept is not None and kept.doubtful_at == NOW + 99.0

    def test_only_this_very_entry_is_confirmed(self, store: Store) -> None:
        old, new = make_entry("k", entry_id="1"), make_entry("k", entry_id="2")
        other = make_entry("o", entry_id="3")
        for entry in (old, new, other):
            store.put(entry, None, store.sequence())
        assert not store.journal.confirm(old, at=NOW, doubtful_at=None)
        assert (store.fetch("p", "k"), store.fetch("p", "o")) == (new, other)

    def test_what_does_not_hold_is_not_confirmed(self, store: Store) -> None:
        entry = make_entry("k")
        store.put(entry, None, store.sequence())
        store.invalidate(Selector(entry=entry.id, because="said so"))
        assert not store.journal.confirm(entry, at=NOW, doubtful_at=None)
        kept = store.fetch("p", "k")
        assert kept is not None
        assert (kept.invalidated, kept.confirmed_at) == ("said so", None)

    def test_a_confirmed_entry_may_be_renewed_marked_and_replaced(self, store: Store) -> None:
        entry = replace(make_entry("k", expires_at=NOW + 9.0), doubtful_at=NOW + 5.0)
        store.put(entry, None, store.sequence())
        store.journal.confirm(entry, at=NOW + 6.0, doubtful_at=NOW + 7.0)
        store.renew(entry, NOW + 50.0)
        store.invalidate(Selector(entry=entry.id))
        kept = store.fetch("p", "k")
        assert kept is not None and kept.invalidated
        assert (kept.confirmed_at, kept.doubtful_at, kept.expires_at) == (
            NOW + 6.0,
            NOW + 7.0,
            NOW + 50.0,
        )
        anew = make_entry("k", entry_id="anew")
        store.put(anew, None, store.sequence())
        assert store.fetch("p", "k") == anew

    def test_confirming_refuses_no_fill(self, store: Store) -> None:
        entry = make_entry("k")
        store.put(entry, None, store.sequence())
        fence = store.sequence()
        store.journal.confirm(entry, at=NOW, doubtful_at=None)
        assert store.put(make_entry("k", entry_id="2"), None, fence).stored

    # -- verdicts ----------------------------------------------------------------------------------

    def test_a_verdict_is_kept_as_it_was(self, store: Store) -> None:
        said = Verdict(
            entry_id="p/k",
            question="多少钱？",
            fresh=False,
            reason='it "moved" {once}\n价格',
            at=NOW + 0.25,
            judge="deepseek-chat",
            seconds=1.7,
            usage=Usage(input_tokens=300, output_tokens=20),
            failure="f",
            kind="price",
        )
        store.journal.judged(said)
        assert store.journal.verdict("p/k") == said
        assert list(store.journal.verdicts(5)) == [said]

    def test_the_latest_verdict_is_the_one_that_counts(self, store: Store) -> None:
        assert store.journal.verdict("1") is None
        assert list(store.journal.verdicts(3)) == []
        for at, entry_id in enumerate("1221"):
            store.journal.judged(make_verdict(entry_id, reason=str(at)))
        latest = store.journal.verdict("2")
        assert latest is not None and latest.reason == "2"
        assert [one.reason for one in store.journal.verdicts(3)] == ["3", "2", "1"]
        assert list(store.journal.verdicts(0)) == []

    def test_verdicts_outlive_their_entries(self, store: Store) -> None:
        entry = make_entry("k")
        store.put(entry, None, store.sequence())
        store.journal.judged(make_verdict(entry.id))
        store.clear("s")
        assert store.journal.verdict(entry.id) is not None

    # -- the list ----------------------------------------------------------------------------------

    def test_what_is_listed_is_there_as_it_was_asked_for(self, store: Store) -> None:
        entry = listed(store)
        assert list(store.journal.due(5, now=NOW)) == [
            Noted(entry.id, ("p", "k"), SCOPE, NOW, False)
        ]
        assert store.journal.waiting(now=NOW) == 1
        assert [len(store.journal.due(count, now=NOW)) for count in (-1, 0, 1)] == [0, 0, 1]

    def test_one_that_is_doubted_may_be_served_once_for_each_doubt(self, store: Store) -> None:
        entry = listed(store)
        for _ in range(2):
            assert not store.journal.list_due(entry, SCOPE, early=False).may
        assert store.journal.confirm(entry, at=NOW, doubtful_at=NOW + 9.0)
        later = replace(entry, doubtful_at=NOW + 9.0)
        again = [store.journal.list_due(later, SCOPE, early=False).may for _ in range(2)]
        assert again == [True, False]
        assert ids(store) == [entry.id], "once"

    def test_early_uses_up_nothing(self, store: Store) -> None:
        entry = listed(store, early=True)
        assert store.journal.list_due(entry, SCOPE, early=True).may
        assert [one.early for one in store.journal.due(5, now=NOW)] == [True]
        assert store.journal.list_due(entry, SCOPE, early=False).may
        assert [one.early for one in store.journal.due(5, now=NOW)] == [False]
        assert not store.journal.list_due(entry, SCOPE, early=False).may
        assert store.journal.list_due(entry, SCOPE, early=True).may

    def test_what_was_looked_after_in_vain_is_served_no_second_time(self, store: Store) -> None:
        entry = listed(store)
        (noted,) = store.journal.due(5, now=NOW)
        assert store.journal.take(noted, owner="me", now=NOW)
        store.journal.end(noted, owner="me", done=True)
        assert ids(store) == []
        assert not store.journal.list_due(entry, SCOPE, early=False).may
        assert ids(store) == [entry.id], "but it is looked after once more"

    def test_those_that_wait_for_longest_come_first(self, store: Store) -> None:
        for key in "abc":
            listed(store, key)
        first, second, _ = store.journal.due(9, now=NOW)
        store.journal.end(first, owner="me", done=False)
        assert ids(store) == ["p/b", "p/c", "p/a"]
        store.journal.end(second, owner="me", done=True)
        assert ids(store) == ["p/c", "p/a"]
        assert store.journal.waiting(now=NOW) == 2

    def test_nobody_takes_what_another_one_has(self, store: Store) -> None:
        listed(store)
        (noted,) = store.journal.due(9, now=NOW)
        assert store.journal.take(noted, owner="me", now=NOW)
        assert not store.journal.take(noted, owner="you", now=NOW + LEASE_S - 1.0)
        assert store.journal.take(noted, owner="me", now=NOW + 1.0), "who was torn off"
        store.journal.end(noted, owner="you", done=True)
        assert ids(store) == [noted.entry_id], "it is not theirs"
        store.journal.end(noted, owner="me", done=False)
        assert store.journal.take(noted, owner="you", now=NOW + 1.0)

    def test_what_a_process_took_that_died_is_free_after_a_while(self, store: Store) -> None:
        listed(store)
        (noted,) = store.journal.due(9, now=NOW)
        assert store.journal.take(noted, owner="me", now=NOW)
        assert store.journal.take(noted, owner="you", now=NOW + LEASE_S)
        assert store.journal.take(noted, owner="me", now=NOW - 9.0), "a clock that went back"

    def test_of_threads_that_take_at_once_one_has_it(self, store: Store) -> None:
        listed(store)
        (noted,) = store.journal.due(9, now=NOW)
        taken: list[bool] = []

        def take(at: int) -> None:
            taken.append(store.journal.take(noted, owner=f"worker {at}", now=NOW))

        threads = [threading.Thread(target=take, args=(at,)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(taken) == 1

    def test_what_needs_nobody_any_more_is_not_on_the_list(self, store: Store) -> None:
        names = ("invalidated", "replaced", "gone", "expired", "confirmed", "left")
        entries = {name: listed(store, name) for name in names}
        store.invalidate(Selector(entry=entries["invalidated"].id))
        store.put(make_entry("replaced", entry_id="anew"), None, store.sequence())
        store.remove(entries["gone"])
        store.renew(entries["expired"], NOW - 1.0)
        store.journal.confirm(entries["confirmed"], at=NOW, doubtful_at=NOW + 9.0)
        assert ids(store) == ["p/left"]
        assert store.journal.waiting(now=NOW) == 1

    def test_nothing_is_listed_or_served_of_what_is_not_there(self, store: Store) -> None:
        absent = replace(make_entry("k"), doubtful_at=NOW)
        assert not store.journal.list_due(absent, SCOPE, early=False).may
        store.put(absent, None, store.sequence())
        for other in (replace(absent, id="o"), replace(absent, doubtful_at=NOW - 1.0)):
            assert not store.journal.list_due(other, SCOPE, early=False).may
        store.invalidate(Selector(entry=absent.id))
        assert not store.journal.list_due(absent, SCOPE, early=False).may
        unknown = Noted("o", ("p", "k"), SCOPE, NOW, False)
        assert not store.journal.take(unknown, owner="me", now=NOW)
        store.journal.end(unknown, owner="me", done=True)
        assert ids(store) == []

    def test_the_list_never_outgrows_the_store(self, store: Store) -> None:
        for at in range(8):
            listed(store, str(at))
        store.clear("s")
        assert store.journal.waiting(now=NOW) == 0
        entry = listed(store, "0")
        assert ids(store) == [entry.id]

    def test_the_time_between_two_rounds_is_measured(self, store: Store) -> None:
        assert store.journal.worked(now=NOW) == 0.0
        assert store.journal.worked(now=NOW + 60.0) == 60.0
        entry = replace(make_entry("k"), doubtful_at=NOW)
        store.put(entry, None, store.sequence())
        assert store.journal.list_due(entry, SCOPE, early=True).period_s == 60.0
        assert store.journal.worked(now=NOW + 60.0) == 30.0, "by and by"
