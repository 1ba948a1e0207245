"""What every store does with answers in reach of writes: late fills, writes at once, other verbs.

A part of `stampcache.testing.contract.StoreContract`.
"""

import pytest
from msgspec.structs import replace

from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Intent,
)
from stampcache.model import Selector
from stampcache.ports import Receipt, Store
from stampcache.testing.samples import NOW, make_entry
from stampcache.testing.samples_corpora import (
    ANY,
    CORPUS,
    FAR,
    A,
    B,
    C,
    chunk,
    citing,
    kept,
    near,
    put,
    reach,
    vector,
    write,
)


class ReachContract:
    @pytest.fixture
    def small_store(self) -> Store:
        """Override: an empty store with a capacity of exactly 3 entries."""
        pytest.skip("the store has no capacity to set")

    @pytest.fixture
    def watched(self, store: Store) -> Store:
        """A store with a watched corpus of four chunks, and an answer from its first two."""
        store.corpora.declare(CORPUS, now=NOW, silence_s=None)
        write(store, Change(emptied=True))
        write(store, Change(added=(A, B, FAR)))
        assert put(store, citing(A, B), reach(A, B)).stored
        return store

    # -- fills that come late -------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (Change(added=(C,)), "corpus 'handbook' was written to"),
            (Change(added=(replace(C, vector=b""),)), "corpus 'handbook' was written to"),
            (Change(added=(replace(B, digest="2"),)), "source 'b.md' of corpus 'handbook' changed"),
            (Change(removed=("b",)), "source 'b.md' of corpus 'handbook' changed"),
            (Change(unknown=True), "corpus 'handbook' was written to"),
            (
                Change(emptied=True),
                "sources 'a.md', 'b.md', 'far.md' of corpus 'handbook' changed",
            ),
        ],
    )
    def test_a_fill_is_refused_after_a_write_in_its_reach(
        self, watched: Store, change: Change, said: str
    ) -> None:
        fence = watched.sequence()
        write(watched, change)
        late = watched.put(citing(A, B, key="late"), None, fence, reach(A, B))
        assert (late.stored, late.change) == (False, said)
        assert watched.fetch("p", "late") is None
        assert watched.put(citing(A, B, key="late"), None, watched.sequence(), reach(A, B)).stored

    def test_a_fill_is_stored_after_a_write_beyond_its_reach(self, watched: Store) -> None:
        fence = watched.sequence()
        d = chunk("d", 30, source="d.md")
        write(watched, Change(added=(d, replace(FAR, vector=vector(70)))))
        write(watched, Change(removed=("d",)))
        write(watched, Change(added=(C,)), corpus="other")
        assert watched.put(citing(A, B, key="late"), None, fence, reach(A, B)).stored
        assert not watched.put(citing(A, key="any"), None, fence, ANY).stored
        assert not watched.put(citing(FAR, key="plain"), None, fence).stored
        assert watched.put(citing(A, key="plain"), None, fence).stored

    def test_a_fill_is_stored_that_saw_what_came_and_went(self, watched: Store) -> None:
        fence = watched.sequence()
        write(watched, Change(added=(C,)))
        assert not watched.put(citing(A, B, key="late"), None, fence, reach(A, B)).stored
        write(watched, Change(removed=("c",)))
        assert watched.put(citing(A, B, key="late"), None, fence, reach(A, B)).stored
        assert not watched.put(citing(A, C, key="bad"), None, fence, reach(A, C)).stored

    def test_a_fill_is_refused_that_found_more_than_it_cites(self, watched: Store) -> None:
        fence = watched.sequence()
        write(watched, Change(removed=("b",)))
        late = watched.put(citing(A, key="late"), None, fence, reach(A, B))
        assert not late.stored
        assert watched.put(citing(A, key="late"), None, watched.sequence(), reach(A, B)).stored

    def test_what_was_found_otherwise_differs_from_all_that_is_written(
        self, watched: Store
    ) -> None:
        doubting = replace(ANY, for_good=True, doubts=("a", "x"))
        for _ in range(2):
            assert put(watched, citing(A, key="any"), doubting).stored
        assert watched.corpora.chunks(CORPUS, ["b"]) == {"b": B}
        assert not kept(watched, "any").invalidated
        write(watched, Change(added=(B,)))
        assert not kept(watched, "any").invalidated
        write(watched, Change(added=(A,)))
        assert kept(watched, "any").invalidated
        assert watched.corpora.chunks(CORPUS, ["a"]) == {"a": A}

    def test_no_fill_is_stored_while_documents_are_written(self, watched: Store) -> None:
        watched.corpora.begin(CORPUS, Intent(id="1", at=NOW))
        late = put(watched, citing(A, key="late"), reach(A, wanted=1))
        assert late == Receipt(
            stored=False, change="documents of corpus 'handbook' are being written"
        )
        assert watched.put(citing(A, key="plain"), None, watched.sequence()).stored
        assert put(watched, citing(A, corpus="o", key="o"), reach(A, corpus="o")).stored
        write(watched, Change(), intent="1")
        assert put(watched, citing(A, key="late"), reach(A, wanted=1)).stored

    def test_an_invalidation_refuses_a_late_fill_with_a_reach_too(self, watched: Store) -> None:
        fence = watched.sequence()
        watched.invalidate(Selector(corpus=CORPUS, source="b.md"))
        assert not watched.put(citing(A, B, key="late"), None, fence, reach(A, B)).stored

    # -- writes at the same time ----------------------------------------------------------------------

    def test_of_writes_of_one_chunk_at_the_same_time_nobody_knows_the_last(
        self, watched: Store
    ) -> None:
        for intent in "12":
            watched.corpora.begin(CORPUS, Intent(id=intent, at=NOW))
        assert write(watched, Change(added=(replace(B, digest="2"),)), intent="2").stale == 1
        assert write(watched, Change(added=(B,)), intent="1") == Committed()
        assert kept(watched).invalidated, "the index may hold either"
        assert watched.corpora.chunks(CORPUS, ["b"]) == {"b": Chunk(id="b", digest="")}
        fresh = reach(A, FAR)
        assert put(watched, citing(A, FAR, key="new"), fresh).stored
        assert write(watched, Change(added=(replace(B, digest="3"),))).stale == 1
        assert kept(watched, "new").invalidated

    def test_writes_of_other_chunks_at_the_same_time_are_known(self, watched: Store) -> None:
        for intent in "123":
            watched.corpora.begin(CORPUS, Intent(id=intent, at=NOW))
        d, e = chunk("d", 40), chunk("e", 50)
        assert write(watched, Change(added=(d,)), intent="2") == Committed()
        assert write(watched, Change(added=(e,), removed=("far",)), intent="1") == Committed()
        assert write(watched, Change(), intent="3") == Committed()
        assert watched.corpora.chunks(CORPUS, None) == {"a": A, "b": B, "d": d, "e": e}
        assert not kept(watched).invalidated

    def test_a_write_while_all_was_emptied_leaves_nothing_certain(self, watched: Store) -> None:
        for intent in "12":
            watched.corpora.begin(CORPUS, Intent(id=intent, at=NOW))
        write(watched, Change(emptied=True), intent="2")
        write(watched, Change(added=(A,)), intent="1")
        assert watched.corpora.chunks(CORPUS, None) == {"a": Chunk(id="a", digest="")}
        standing = watched.corpora.standing(CORPUS)
        assert standing is not None and not standing.complete
        write(watched, Change(added=(A, B, FAR), emptied=True))
        assert kept(watched).invalidated

    def test_emptying_while_others_wrote_leaves_their_chunks_uncertain(
        self, watched: Store
    ) -> None:
        for intent in "12":
            watched.corpora.begin(CORPUS, Intent(id=intent, at=NOW))
        write(watched, Change(added=(C,), removed=("a",)), intent="2")
        write(watched, Change(emptied=True), intent="1")
        unsure = {"a": Chunk(id="a", digest=""), "c": Chunk(id="c", digest="")}
        assert watched.corpora.chunks(CORPUS, None) == unsure

    # -- suspended answers and the other verbs --------------------------------------------------------

    def test_what_a_user_invalidates_does_not_come_back(self, watched: Store) -> None:
        write(watched, Change(added=(C,)))
        mark = kept(watched).invalidated
        assert watched.invalidate(Selector(corpus=CORPUS, chunk="a")) == 0, "it was stale already"
        assert kept(watched).invalidated == mark
        assert write(watched, Change(removed=("c",))) == Committed()
        assert kept(watched).invalidated == mark
        assert watched.corpora.reach(kept(watched)) is None

    def test_an_invalidation_of_something_else_lets_it_come_back(self, watched: Store) -> None:
        write(watched, Change(added=(C,)))
        assert watched.invalidate(Selector(corpus=CORPUS, chunk="far")) == 0
        assert write(watched, Change(removed=("c",))) == Committed(restored=1)
        assert watched.invalidate(Selector(corpus=CORPUS, chunk="a")) == 1, "as it did before"

    def test_a_write_to_a_second_corpus_ends_a_suspended_answer(self, watched: Store) -> None:
        (other,) = citing(A, corpus="other").evidence or ()
        entry = make_entry("two", evidence=(other,), corpus=CORPUS)
        put(watched, entry, reach(A, B))
        write(watched, Change(added=(A,)), corpus="other")
        write(watched, Change(added=(C,)))
        write(watched, Change(removed=("a",)), corpus="other")
        assert write(watched, Change(removed=("c",))) == Committed(restored=1)
        assert kept(watched, "two").invalidated
        assert not kept(watched).invalidated

    @pytest.mark.parametrize("stale", [False, True])
    def test_an_answer_that_is_gone_is_no_longer_reached(self, watched: Store, stale: bool) -> None:
        change = Change(added=(C,))
        back = Change(removed=("c",))
        for way in ("remove", "report", "clear", "purge", "replace"):
            put(watched, replace(citing(A, B), id=way), reach(A, B))
            if stale:
                assert write(watched, change).stale == 1
            match way:
                case "remove":
                    assert watched.remove(kept(watched))
                case "report":
                    assert watched.report_bad(way)
                case "clear":
                    assert watched.clear("s") == 1
                case "purge":
                    watched.invalidate(Selector(entry=way))
                    assert watched.purge(NOW) == 1
                case _:
                    watched.put(make_entry("k"), None, watched.sequence())
            assert write(watched, back if stale else change) == Committed()
            write(watched, back)
            assert watched.corpora.reach(replace(citing(A, B), id=way)) is None
        assert kept(watched) == make_entry("k")

    def test_an_answer_that_is_made_anew_holds(self, watched: Store) -> None:
        write(watched, Change(added=(C,)))
        fresh = replace(citing(A, C), id="fresh")
        assert put(watched, fresh, reach(A, C)).stored
        assert kept(watched) == fresh
        assert near(watched) == [fresh]
        assert write(watched, Change(removed=("c",))) == Committed(stale=1)
        assert write(watched, Change(removed=("b",))) == Committed()
        assert write(watched, Change(added=(C,))) == Committed(restored=1)

    def test_an_answer_without_a_vector_comes_back_without(self, watched: Store) -> None:
        watched.put(citing(A, B), None, watched.sequence(), reach(A, B))
        write(watched, Change(added=(C,)))
        assert write(watched, Change(removed=("c",))) == Committed(restored=1)
        assert not near(watched)
        assert watched.stats().vectors == 0

    def test_suspended_answers_give_way_first(self, small_store: Store) -> None:
        store = small_store
        write(store, Change(emptied=True))
        write(store, Change(added=(A, B)))
        store.put(make_entry("old"), None, store.sequence())
        for key in ("b", "a"):
            put(store, citing(A, B, key=key), reach(A, B))
        assert write(store, Change(added=(C,))) == Committed(stale=2)
        for new, gone in (("1", "a"), ("2", "b"), ("3", "old")):
            assert store.put(make_entry(new), None, store.sequence()).evicted == 1
            assert store.fetch("p", gone) is None
        assert write(store, Change(removed=("c",))) == Committed()

    def test_an_answer_that_came_back_was_used_last(self, small_store: Store) -> None:
        store = small_store
        write(store, Change(emptied=True))
        write(store, Change(added=(A, B)))
        put(store, citing(A, B), reach(A, B))
        for key in ("1", "2"):
            store.put(make_entry(key), None, store.sequence())
        write(store, Change(added=(C,)))
        write(store, Change(removed=("c",)))
        store.put(make_entry("3"), None, store.sequence())
        assert [store.fetch("p", key) is None for key in ("k", "1", "2", "3")] == [
            False,
            True,
            False,
            False,
        ]

    def test_what_expires_while_it_is_suspended_stays_expired(self, watched: Store) -> None:
        put(watched, replace(citing(A, B), expires_at=NOW + 1), reach(A, B))
        write(watched, Change(added=(C,)))
        watched.renew(kept(watched), NOW + 99)
        assert write(watched, Change(removed=("c",))) == Committed(restored=1)
        assert kept(watched).expires_at == NOW + 1
        assert watched.purge(NOW + 1) == 1

    # -- reaches and samples ---------------------------------------------------------------------------

    def test_the_reach_of_an_entry_is_that_of_this_very_entry(self, watched: Store) -> None:
        mine = replace(reach(A, B), settings="digest")
        put(watched, replace(citing(A, B, key="mine"), id="1"), mine)
        assert watched.corpora.reach(kept(watched, "mine")) == mine
        assert watched.corpora.reach(kept(watched)) == reach(A, B)
        assert watched.corpora.reach(make_entry("never stored")) is None
        watched.put(citing(A, key="plain"), None, watched.sequence())
        assert watched.corpora.reach(kept(watched, "plain")) is None

    def test_a_sample_starts_after_an_id_and_goes_round(self, watched: Store) -> None:
        mine = replace(reach(A, B), settings="mine")
        for one in "bdac":
            put(watched, replace(citing(A, B, key=one), id=one), mine)
        put(watched, replace(citing(A, B, key="e"), id="e"), replace(mine, settings="other"))
        put(watched, replace(citing(A, key="f", corpus="o"), id="f"), replace(mine, corpus="o"))

        def sample(count: int, after: str) -> str:
            found = watched.corpora.sample(CORPUS, "mine", count, after=after)
            assert all(entry == kept(watched, entry.id) for entry in found)
            return "".join(entry.id for entry in found)

        assert sample(2, "a") == "bc"
        assert sample(3, "c") == "dab"
        assert sample(9, "bb") == "cdab"
        assert sample(9, "") == "abcd"
        watched.invalidate(Selector(entry="a"))
        put(watched, replace(citing(A, FAR, key="g"), id="g"), replace(mine, floor=-0.5))
        write(watched, Change(added=(chunk("x", 85),)))
        assert sample(9, "b") == "cdb"
        assert not watched.corpora.sample("unknown", "mine", 9, after="")
