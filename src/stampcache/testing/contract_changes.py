"""What every store does when something changed: marks, fences, renewal and purging.

A part of `stampcache.testing.contract.StoreContract`.
"""

import pytest
from msgspec.structs import replace

from stampcache.model import Entry, Evidence, Selector, Stamps
from stampcache.ports import Store
from stampcache.testing.samples import NOW, make_entry, unit

CITED = (Evidence(corpus="c", source="s", chunk="1", text="old").sealed(),)
CHANGE = Selector(corpus="c", source="s")


def kept(store: Store, key: str = "k") -> Entry:
    """Return what the store has at (p, key)."""
    entry = store.fetch("p", key)
    assert entry is not None
    return entry


class ChangeContract:
    @pytest.fixture
    def small_store(self) -> Store:
        """Override: an empty store with a capacity of exactly 3 entries."""
        pytest.skip("the store has no capacity to set")

    # -- what a change touches ---------------------------------------------------------------------

    @pytest.mark.parametrize(
        "selector",
        [
            Selector(corpus="c"),
            Selector(source="s1"),
            Selector(corpus="c", source="s1"),
            Selector(chunk="k1"),
            Selector(corpus="c", source="s1", chunk="k1"),
            Selector(entry="p/cited"),
            Selector(entry="p/cited", chunk="k1"),
            Selector(stamps=Stamps(model="m1")),
            Selector(scope="s-cited"),
            Selector(scope="s-cited", corpus="c"),
        ],
    )
    def test_invalidate_marks_what_matches_and_nothing_else(
        self, store: Store, selector: Selector
    ) -> None:
        cites = (Evidence(corpus="c", source="s1", chunk="k1", text="1").sealed(),)
        others = (Evidence(corpus="d", source="s2", chunk="k2", text="2").sealed(),)
        cited = make_entry("cited", scope="s-cited", evidence=cites, stamps=Stamps(model="m1"))
        other = make_entry("other", evidence=others, stamps=Stamps(model="m2"))
        store.put(cited, unit(1, 0), store.sequence())
        store.put(other, unit(1, 1), store.sequence())
        assert store.invalidate(selector) == 1
        assert kept(store, "cited") == replace(cited, invalidated=str(selector))
        assert kept(store, "other") == other
        near = store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
        assert [one.entry for one in near] == [other]

    @pytest.mark.parametrize(
        ("evidence", "corpus", "whole", "selector", "touched"),
        [
            # a name that is unknown may be any name
            ([Evidence(source="a.md")], "", False, Selector(corpus="c", source="a.md"), True),
            ([Evidence(source="a.md")], "", False, Selector(corpus="c", source="b.md"), False),
            ([Evidence(corpus="c")], "", False, Selector(corpus="c", source="a.md"), True),
            ([Evidence(corpus="c")], "", False, Selector(corpus="d", source="a.md"), False),
            ([Evidence(corpus="c")], "", False, Selector(chunk="1"), True),
            ([Evidence(chunk="1")], "", False, Selector(corpus="c", chunk="1"), True),
            ([Evidence(chunk="1")], "", False, Selector(corpus="c", chunk="2"), False),
            ([Evidence(text="of nowhere")], "", False, Selector(source="a.md"), True),
            # the names must be those of one part
            (
                [Evidence(corpus="c", source="x"), Evidence(corpus="d", source="s")],
                "",
                False,
                Selector(corpus="c", source="s"),
                False,
            ),
            # what cites nothing depends on all of what was asked
            ([], "c", False, Selector(corpus="c", source="a.md"), True),
            ([], "c", False, Selector(corpus="d"), False),
            ([], "", False, Selector(corpus="c", source="a.md", chunk="1"), True),
            ([], "", False, Selector(corpus=""), True),
            # and so does what may cite anything
            (None, "c", False, Selector(corpus="c", chunk="1"), True),
            (None, "c", False, Selector(corpus="d", chunk="1"), False),
            (None, "", False, Selector(corpus="c"), False),
            (None, "", True, Selector(corpus="c"), True),
            # an answer from a whole corpus
            ([Evidence(corpus="c", source="a")], "c", True, Selector(corpus="c", source="b"), True),
            ([Evidence(corpus="c", source="a")], "c", False, Selector(source="b"), False),
            ([Evidence(corpus="c", source="a")], "", True, Selector(source="b"), True),
        ],
    )
    def test_what_an_entry_depends_on(
        self,
        store: Store,
        evidence: list[Evidence] | None,
        corpus: str,
        whole: bool,
        selector: Selector,
        touched: bool,
    ) -> None:
        cited = None if evidence is None else tuple(one.sealed() for one in evidence)
        entry = make_entry("k", evidence=cited, corpus=corpus, whole_corpus=whole)
        fence = store.sequence()
        store.put(entry, None, fence)
        assert store.invalidate(selector) == int(touched)
        assert kept(store).invalidated == (str(selector) if touched else "")
        late = store.put(replace(entry, id="late"), None, fence)
        assert late.stored is not touched, "the fence has the same rule"

    def test_an_empty_selector_marks_nothing(self, store: Store) -> None:
        entry = make_entry("k", evidence=())
        store.put(entry, None, store.sequence())
        assert store.invalidate(Selector()) == 0
        assert store.invalidate(Selector(stamps=Stamps())) == 0
        assert store.invalidate(Selector(stamps=Stamps(), corpus="c")) == 0
        assert kept(store) == entry

    # -- invalidated entries -----------------------------------------------------------------------

    def test_an_entry_keeps_the_mark_of_the_first_change(self, store: Store) -> None:
        entry = make_entry("k", evidence=CITED, stamps=Stamps(model="m"))
        store.put(entry, unit(1, 0), store.sequence())
        assert store.invalidate(CHANGE) == 1
        for later in (
            Selector(corpus="c"),
            Selector(entry="p/k"),
            Selector(scope="s"),
            Selector(stamps=Stamps(model="m")),
        ):
            assert store.invalidate(later) == 0
        assert kept(store).invalidated == "source 's' of corpus 'c' changed"

    def test_invalidated_entries_are_counted_apart(self, store: Store) -> None:
        stale = make_entry("k", scope="a", evidence=CITED, text="12345")
        store.put(stale, unit(1, 0), store.sequence())
        store.put(make_entry("l", scope="b", text="four"), unit(1, 1), store.sequence())
        store.touch(stale, "k")
        store.invalidate(CHANGE)
        of_a, everything = store.stats("a"), store.stats()
        assert (of_a.entries, of_a.vectors, of_a.answer_bytes, of_a.hits) == (0, 0, 0, 0)
        assert of_a.invalidated == 1
        assert (everything.entries, everything.vectors, everything.answer_bytes) == (1, 1, 4)
        assert everything.invalidated == 1
        assert store.stats("b").invalidated == 0

    def test_a_put_replaces_an_invalidated_entry(self, store: Store) -> None:
        store.put(make_entry("k", entry_id="1", evidence=CITED), unit(1, 0), store.sequence())
        store.invalidate(CHANGE)
        new = make_entry("k", entry_id="2", evidence=CITED)
        assert store.put(new, unit(0, 1), store.sequence()).stored
        assert kept(store) == new
        (near,) = store.nearest("p", unit(0, 1), 5, asked="x", now=NOW)
        assert near.entry == new
        sizes = store.stats()
        assert (sizes.entries, sizes.vectors, sizes.invalidated) == (1, 1, 0)
        assert store.invalidate(CHANGE) == 1, "it depends on its own evidence again"

    def test_an_entry_that_is_put_holds_whatever_was_said_of_it(self, store: Store) -> None:
        store.put(make_entry("k", evidence=CITED), unit(1, 0), store.sequence())
        store.invalidate(CHANGE)
        store.put(kept(store), unit(1, 0), store.sequence())
        assert kept(store).invalidated == ""
        assert len(store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)) == 1

    def test_touch_and_renew_do_not_bring_an_invalidated_entry_back(self, store: Store) -> None:
        store.put(make_entry("k", evidence=CITED, expires_at=NOW), unit(1, 0), store.sequence())
        store.invalidate(CHANGE)
        stale = kept(store)
        store.touch(stale, "k")
        store.renew(stale, NOW + 100)
        assert kept(store) == stale
        assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW - 1)
        sizes = store.stats()
        assert (sizes.entries, sizes.vectors, sizes.hits, sizes.invalidated) == (0, 0, 0, 1)

    def test_an_invalidated_entry_can_be_removed_and_reported(self, store: Store) -> None:
        for key in ("k", "l"):
            store.put(make_entry(key, evidence=CITED), None, store.sequence())
        assert store.invalidate(CHANGE) == 2
        assert store.remove(kept(store, "k"))
        assert store.report_bad(kept(store, "l").id)
        assert store.fetch("p", "k") is store.fetch("p", "l") is None
        assert store.stats().invalidated == 0

    # -- fences ------------------------------------------------------------------------------------

    def test_a_late_fill_is_refused_when_its_source_changed(self, store: Store) -> None:
        entry, fence = make_entry("k", evidence=CITED), store.sequence()
        store.invalidate(CHANGE)
        receipt = store.put(entry, None, fence)
        assert not receipt.stored
        assert receipt.change == str(CHANGE)
        assert store.fetch("p", "k") is None
        again = store.put(entry, None, store.sequence())
        assert again.stored
        assert again.change == ""

    def test_whether_a_fill_would_be_late_can_be_asked(self, store: Store) -> None:
        entry, fence = make_entry("k", evidence=CITED), store.sequence()
        assert store.fenced(entry, fence) == ""
        store.invalidate(Selector(corpus="c", source="other"))
        assert store.fenced(entry, fence) == ""
        store.invalidate(CHANGE)
        assert store.fenced(entry, fence) == str(CHANGE)
        assert store.fenced(entry, store.sequence()) == ""
        assert store.fetch("p", "k") is None

    def test_a_late_fill_is_told_the_first_change_that_touches_it(self, store: Store) -> None:
        fence = store.sequence()
        for source in ("other", "s", ""):
            store.invalidate(Selector(corpus="c", source=source))
        store.invalidate(Selector(corpus="c"))
        assert store.put(make_entry("k", evidence=CITED), None, fence).change == str(CHANGE)

    def test_a_late_fill_whose_evidence_did_not_change_is_stored(self, store: Store) -> None:
        fence = store.sequence()
        for at in range(50):
            store.invalidate(Selector(corpus="c", source=f"busy{at}"))
        assert store.put(make_entry("k", evidence=CITED), None, fence).stored

    def test_a_late_fill_of_a_cleared_scope_is_refused(self, store: Store) -> None:
        fence = store.sequence()
        store.clear("s")
        receipt = store.put(make_entry("k", scope="s"), None, fence)
        assert not receipt.stored
        assert receipt.change == str(Selector(scope="s"))
        assert store.put(make_entry("k", scope="other"), None, fence).stored

    def test_a_late_fill_does_not_care_for_purging_and_renewal(self, store: Store) -> None:
        entry, fence = make_entry("k", expires_at=NOW), store.sequence()
        store.put(entry, None, fence)
        store.renew(entry, NOW + 1)
        store.purge(NOW + 1)
        assert store.put(entry, None, fence).stored

    # -- purging and renewal -----------------------------------------------------------------------

    def test_clear_purges_its_scope_only(self, store: Store) -> None:
        for scope in ("app", "app2", "app:b"):
            store.put(make_entry("k", partition=scope, scope=scope), None, store.sequence())
        assert store.clear("app") == 1
        left = [store.fetch(scope, "k") is not None for scope in ("app", "app2", "app:b")]
        assert left == [False, True, True]

    def test_clear_purges_invalidated_entries_too(self, store: Store) -> None:
        store.put(make_entry("k", evidence=CITED), unit(1, 0), store.sequence())
        store.put(make_entry("l"), unit(1, 0), store.sequence())
        store.invalidate(CHANGE)
        assert store.clear("s") == 2
        assert store.fetch("p", "k") is store.fetch("p", "l") is None
        sizes = store.stats()
        assert (sizes.entries, sizes.vectors, sizes.invalidated) == (0, 0, 0)

    def test_purge_deletes_what_is_invalidated_or_expired(self, store: Store) -> None:
        lives = {"ended": NOW, "ends": NOW + 1, "late": NOW + 1.5, "endless": None}
        for key, expires_at in lives.items():
            store.put(make_entry(key, expires_at=expires_at), unit(1, 0), store.sequence())
        for key in ("stale", "stale and ended"):
            entry = make_entry(key, evidence=CITED, expires_at=NOW if "ended" in key else None)
            store.put(entry, unit(1, 0), store.sequence())
        store.invalidate(CHANGE)
        assert store.purge(NOW + 1) == 4
        assert [store.fetch("p", key) is not None for key in lives] == [False, False, True, True]
        assert store.fetch("p", "stale") is store.fetch("p", "stale and ended") is None
        near = store.nearest("p", unit(1, 0), 9, asked="x", now=NOW - 1)
        assert {one.entry.identity.key for one in near} == {"late", "endless"}
        sizes = store.stats()
        assert (sizes.entries, sizes.vectors, sizes.invalidated) == (2, 2, 0)
        assert store.purge(NOW + 1) == 0

    def test_renew_lets_an_entry_live_until_then(self, store: Store) -> None:
        entry = make_entry("k", expires_at=NOW)
        store.put(entry, unit(1, 0), store.sequence())
        assert not store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
        store.renew(entry, NOW + 10.25)
        assert kept(store) == replace(entry, expires_at=NOW + 10.25)
        (near,) = store.nearest("p", unit(1, 0), 5, asked="x", now=NOW)
        assert near.entry == kept(store)
        assert store.purge(NOW + 10) == 0
        assert store.purge(NOW + 10.25) == 1

    def test_a_renewed_entry_depends_on_what_it_did(self, store: Store) -> None:
        entry = make_entry("k", evidence=CITED, expires_at=NOW)
        store.put(entry, unit(1, 0), store.sequence())
        store.renew(entry, NOW + 10)
        assert store.invalidate(CHANGE) == 1
        assert kept(store) == replace(entry, expires_at=NOW + 10, invalidated=str(CHANGE))

    def test_renew_extends_no_other_entry_and_creates_none(self, store: Store) -> None:
        old = make_entry("k", entry_id="1", expires_at=NOW)
        store.renew(old, NOW + 10)
        assert store.fetch("p", "k") is None
        new = make_entry("k", entry_id="2", expires_at=NOW)
        store.put(old, None, store.sequence())
        store.put(new, None, store.sequence())
        store.renew(old, NOW + 10)
        assert kept(store) == new

    # -- capacity ----------------------------------------------------------------------------------

    def test_invalidated_entries_give_way_first(self, small_store: Store) -> None:
        store = small_store
        for key, source in (("lru", "x"), ("second", "b"), ("first", "a")):
            cited = (Evidence(corpus="c", source=source).sealed(),)
            store.put(make_entry(key, evidence=cited), None, store.sequence())
        store.invalidate(Selector(corpus="c", source="a"))
        store.invalidate(Selector(corpus="c", source="b"))
        store.touch(kept(store, "first"), "first")
        for new, gone in (("1", "first"), ("2", "second"), ("3", "lru")):
            assert store.put(make_entry(new), None, store.sequence()).evicted == 1
            assert store.fetch("p", gone) is None
        assert store.stats().entries == 3
        assert store.stats().invalidated == 0
