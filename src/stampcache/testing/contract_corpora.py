"""What every store does with watched corpora: standings, chunks, and answers that a write ends.

A part of `stampcache.testing.contract.StoreContract`.
"""

import pytest
from msgspec.structs import replace

from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Intent,
    Metric,
    Owner,
    Standing,
)
from stampcache.model import Selector
from stampcache.ports import Store
from stampcache.testing.samples import NOW, make_entry, unit
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


class CorporaContract:
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

    # -- how corpora stand ---------------------------------------------------------------------------

    def test_a_corpus_that_nobody_watches_has_no_standing(self, store: Store) -> None:
        assert store.corpora.standing(CORPUS) is None
        put(store, citing(A), reach(A))
        store.corpora.block(CORPUS, "no")
        store.corpora.heard(CORPUS, now=NOW)
        store.corpora.swept(CORPUS, now=NOW, checked=1, drifted=0)
        assert store.corpora.standing(CORPUS) is None
        assert not store.corpora.standings()

    def test_declaring_says_who_was_heard_of_and_how_often_it_must_be(self, store: Store) -> None:
        first = store.corpora.declare(CORPUS, now=NOW, silence_s=60.0)
        assert first == Standing(corpus=CORPUS, heard_at=NOW, silence_s=60.0)
        again = store.corpora.declare(CORPUS, now=NOW + 5, silence_s=None)
        assert again == store.corpora.standing(CORPUS) == Standing(corpus=CORPUS, heard_at=NOW + 5)

    def test_declaring_again_keeps_what_is_known(self, watched: Store) -> None:
        watched.corpora.block(CORPUS, "drifted")
        watched.corpora.begin(CORPUS, Intent(id="1", at=NOW))
        before = watched.corpora.standing(CORPUS)
        assert before is not None and before.chunks == 3 and before.complete
        again = watched.corpora.declare(CORPUS, now=NOW + 9, silence_s=7.0)
        assert again == replace(before, heard_at=NOW + 9, silence_s=7.0)

    @pytest.mark.parametrize("way", ["declare", "begin", "commit"])
    def test_what_began_before_a_corpus_was_watched_is_not_stored(
        self, store: Store, way: str
    ) -> None:
        entry = make_entry("old", evidence=(), corpus=CORPUS)
        fence = store.sequence()
        store.put(entry, None, fence)
        match way:
            case "declare":
                store.corpora.declare(CORPUS, now=NOW, silence_s=None)
            case "begin":
                store.corpora.begin(CORPUS, Intent(id="1", at=NOW))
                write(store, Change(), intent="1")
            case _:
                write(store, Change())
        assert not store.put(citing(A), None, fence, reach(A)).stored
        fence = store.sequence()
        store.corpora.declare(CORPUS, now=NOW, silence_s=None)
        write(store, Change())
        assert store.put(citing(A), None, fence, reach(A)).stored
        assert kept(store, "old") == entry, "what was stored is compared with what is written now"

    def test_a_corpus_is_blocked_until_it_is_not(self, watched: Store) -> None:
        for problem in ("the index is another one", ""):
            watched.corpora.block(CORPUS, problem)
            standing = watched.corpora.standing(CORPUS)
            assert standing is not None and standing.problem == problem

    def test_a_sweep_is_noted_and_was_heard_of(self, watched: Store) -> None:
        watched.corpora.swept(CORPUS, now=NOW + 9, checked=20, drifted=1)
        standing = watched.corpora.standing(CORPUS)
        assert standing is not None
        assert (standing.heard_at, standing.swept_at) == (NOW + 9, NOW + 9)
        assert (standing.checked, standing.drifted) == (20, 1)
        watched.corpora.heard(CORPUS, now=NOW + 11)
        assert watched.corpora.standing(CORPUS) == replace(standing, heard_at=NOW + 11)

    def test_standings_come_by_name(self, store: Store) -> None:
        for corpus in "bca":
            store.corpora.declare(corpus, now=NOW, silence_s=None)
        assert [one.corpus for one in store.corpora.standings()] == ["a", "b", "c"]
        assert store.corpora.standings()[1] == store.corpora.standing("b")

    def test_an_intent_stands_until_its_commit(self, store: Store) -> None:
        owner = Owner("host", 7, "then", "cache")
        first = Intent(id="1", at=NOW, owner=owner, chunks=("a", "b"), all_known=True)
        store.corpora.begin(CORPUS, first)
        standing = store.corpora.standing(CORPUS)
        assert standing == Standing(corpus=CORPUS, intents=(first,), heard_at=NOW)
        store.corpora.begin("other", Intent(id="0", at=NOW))
        assert store.corpora.standing(CORPUS) == standing
        write(store, Change(), intent="of nobody")
        standing = store.corpora.standing(CORPUS)
        assert standing is not None and standing.intents == (first,)
        write(store, Change(added=(A,)), intent="1", now=NOW + 3)
        expected = Standing(corpus=CORPUS, heard_at=NOW + 3, chunks=1)
        assert store.corpora.standing(CORPUS) == expected
        assert write(store, Change(), intent="1", now=NOW + 3) == Committed()

    def test_a_corpus_is_complete_once_it_was_empty_until_anything_may_have_changed(
        self, store: Store
    ) -> None:
        told = []
        for change in (
            Change(added=(A,)),
            Change(added=(B,), emptied=True),
            Change(removed=("nothing",)),
            Change(unknown=True),
            Change(removed=("b",)),
            Change(emptied=True),
        ):
            write(store, change)
            standing = store.corpora.standing(CORPUS)
            assert standing is not None
            told.append((standing.complete, standing.chunks))
        assert told == [(False, 1), (True, 1), (True, 1), (False, 1), (False, 0), (True, 0)]

    # -- what is known of chunks -------------------------------------------------------------------

    def test_chunks_are_known_as_they_were_written_last(self, store: Store) -> None:
        assert store.corpora.chunks(CORPUS, None) == {}
        assert store.corpora.chunks(CORPUS, ["a"]) == {}
        moved = replace(A, digest="new", source="s", vector=b"")
        write(store, Change(added=(A, B, C)))
        write(store, Change(added=(moved,), removed=("b", "nothing")))
        assert store.corpora.chunks(CORPUS, None) == {"a": moved, "c": C}
        assert store.corpora.chunks(CORPUS, ["c", "b"]) == {"c": C}
        assert store.corpora.chunks(CORPUS, []) == {}
        assert store.corpora.chunks("other", None) == {}
        write(store, Change(added=(B,), emptied=True))
        assert store.corpora.chunks(CORPUS, None) == {"b": B}

    def test_an_id_that_comes_twice_counts_as_written_last(self, store: Store) -> None:
        new = replace(A, digest="new")
        write(store, Change(added=(A, new), removed=("a", "a")))
        assert store.corpora.chunks(CORPUS, None) == {"a": new}
        standing = store.corpora.standing(CORPUS)
        assert standing is not None and standing.chunks == 1

    def test_chunks_of_one_vector_are_told_together(self, store: Store) -> None:
        twin = replace(A, id="twin", digest="says otherwise")
        like = replace(A, id="like")
        near = replace(A, id="near", digest="other", vector=vector(10.001))
        blind = replace(A, id="blind", digest="other", vector=b"")
        write(store, Change(added=(A, like, near, blind, B)))
        assert store.corpora.alike(CORPUS, ["a", "blind", "nothing"]) == {"a": A, "blind": blind}
        write(store, Change(added=(twin,)))
        assert store.corpora.alike(CORPUS, ["a", "b"]) == {"a": A, "twin": twin, "b": B}
        assert set(store.corpora.alike(CORPUS, ["twin"])) in ({"twin", "a"}, {"twin", "like"})
        write(store, Change(removed=("twin",)))
        assert store.corpora.alike(CORPUS, ["a"]) == {"a": A}
        assert store.corpora.alike("other", ["a"]) == {}

    # -- what a write ends, and what it brings back ---------------------------------------------------

    @pytest.mark.parametrize(
        "change",
        [
            Change(added=(C,)),
            Change(added=(replace(C, vector=b""),)),
            Change(added=(replace(C, vector=vector(0, room=1)),)),
            Change(added=(replace(B, digest="new text"),)),
            Change(added=(replace(B, vector=vector(5)),)),
            Change(removed=("a",)),
            Change(removed=("b",)),
            Change(unknown=True),
            Change(emptied=True),
            Change(added=(A, FAR), emptied=True),
        ],
    )
    def test_a_write_in_reach_ends_an_answer(self, watched: Store, change: Change) -> None:
        assert write(watched, change) == Committed(stale=1)
        assert kept(watched).invalidated
        assert not near(watched)
        assert watched.stats().invalidated == 1
        assert watched.purge(NOW) == 1

    @pytest.mark.parametrize(
        "change",
        [
            Change(),
            Change(added=(chunk("d", 30),)),
            Change(added=(chunk("d", 21), chunk("far", 70))),
            Change(removed=("far", "nothing")),
            Change(added=(A, B, FAR)),
            Change(added=(replace(A, id="a2"),), removed=("a",)),
            Change(added=(B, FAR, replace(A, source="moved.md")), emptied=True),
            Change(added=(replace(A, vector=vector(10.5)),)),
            Change(added=(replace(B, vector=vector(20, length=1.5)),)),
        ],
    )
    def test_an_answer_holds_that_would_be_found_again(
        self, watched: Store, change: Change
    ) -> None:
        before = kept(watched)
        assert write(watched, change) == Committed()
        assert kept(watched) == before
        assert near(watched) == [before]

    @pytest.mark.parametrize(
        ("change", "back"),
        [
            (Change(added=(C,)), Change(removed=("c",))),
            (Change(removed=("a", "b")), Change(added=(replace(B, id="b2"), A))),
            (Change(added=(replace(B, digest="draft"),)), Change(added=(B,))),
            (Change(emptied=True), Change(added=(A, B, FAR))),
            (Change(added=(replace(C, vector=b""),)), Change(removed=("c",))),
        ],
    )
    def test_an_answer_comes_back_with_what_it_was_made_from(
        self, watched: Store, change: Change, back: Change
    ) -> None:
        before = kept(watched)
        watched.touch(before, "k")
        assert write(watched, change) == Committed(stale=1)
        assert write(watched, Change(added=(chunk("d", 40),))) == Committed()
        assert kept(watched).invalidated
        assert write(watched, back) == Committed(restored=1)
        assert kept(watched) == before
        assert near(watched) == [before]
        sizes = watched.stats()
        assert (sizes.entries, sizes.vectors, sizes.hits, sizes.invalidated) == (1, 1, 1, 0)
        assert write(watched, change) == Committed(stale=1)

    def test_half_of_what_went_does_not_bring_an_answer_back(self, watched: Store) -> None:
        write(watched, Change(removed=("a", "b")))
        assert write(watched, Change(added=(A,))) == Committed()
        assert kept(watched).invalidated
        assert write(watched, Change(added=(B, C))) == Committed()
        assert kept(watched).invalidated
        assert write(watched, Change(removed=("c",))) == Committed(restored=1)

    def test_what_may_have_changed_unseen_brings_nothing_back(self, watched: Store) -> None:
        write(watched, Change(unknown=True))
        assert write(watched, Change(added=(A, B, FAR), emptied=True)) == Committed()
        assert write(watched, Change(removed=("a",))) == Committed()
        assert write(watched, Change(added=(A,))) == Committed()
        assert kept(watched).invalidated

    def test_small_moves_add_up(self, watched: Store) -> None:
        for angle in (12.0, 14.0):
            assert write(watched, Change(added=(replace(A, vector=vector(angle)),))) == Committed()
        assert write(watched, Change(added=(replace(B, vector=vector(13)),))) == Committed(stale=1)
        assert write(watched, Change(added=(replace(B, vector=vector(15)),))) == Committed(
            restored=1
        )

    def test_an_answer_that_moved_is_invalidated_for_good(self, watched: Store) -> None:
        write(watched, Change(added=(replace(A, vector=vector(12)),)))
        assert watched.invalidate(Selector(corpus=CORPUS, chunk="a")) == 1
        assert write(watched, Change(added=(A,))) == Committed()
        assert kept(watched).invalidated == "chunk 'a' of corpus 'handbook' changed"

    def test_any_write_ends_an_answer_without_a_question(self, watched: Store) -> None:
        put(watched, citing(A, key="any"), ANY)
        assert write(watched, Change(added=(chunk("d", 89),))) == Committed(stale=1)
        assert kept(watched, "any").invalidated
        assert not kept(watched).invalidated
        assert write(watched, Change(removed=("d",))) == Committed(restored=1)
        other = replace(FAR, vector=vector(81))
        assert write(watched, Change(added=(other,))) == Committed(stale=1)
        assert write(watched, Change(added=(FAR,))) == Committed(restored=1)
        assert write(watched, Change(added=(A, B, FAR))) == Committed()

    def test_an_answer_of_which_little_is_known_does_not_come_back(self, watched: Store) -> None:
        put(watched, citing(A, key="any"), replace(ANY, for_good=True))
        assert write(watched, Change(removed=("far",))) == Committed(stale=1)
        assert write(watched, Change(added=(FAR,))) == Committed()
        assert kept(watched, "any").invalidated

    def test_a_chunk_that_goes_unknown_ends_what_any_write_ends(self, store: Store) -> None:
        write(store, Change(added=(A, B)))
        put(store, citing(A, key="any"), ANY)
        put(store, citing(A, B), reach(A, B))
        assert write(store, Change(removed=("nobody saw it",))) == Committed(stale=1)
        assert kept(store, "any").invalidated
        assert write(store, Change(added=(A, B), emptied=True)) == Committed(stale=1)
        assert kept(store).invalidated

    def test_emptying_what_was_never_known_ends_everything(self, store: Store) -> None:
        put(store, citing(A, key="any"), ANY)
        put(store, citing(key="flat"), reach())
        assert write(store, Change(emptied=True)) == Committed(stale=2)

    def test_metrics_and_dimensions_stand_side_by_side(self, watched: Store) -> None:
        question, three = vector(0), vector(0, room=1)
        flat = replace(reach(A, B), floor=-0.5, least=-0.5, scores=(0.9, 0.8))
        kinds = {
            "dot": replace(flat, metric=Metric.DOT, question=question, floor=3.0),
            "l2": replace(flat, metric=Metric.L2, question=question, floor=-0.25),
            "three": replace(flat, question=three),
        }
        for key, kind in kinds.items():
            put(watched, citing(A, key=key), kind)

        def ended(name: str, raw: bytes) -> set[str]:
            write(watched, Change(added=(Chunk(id=name, digest=name, vector=raw),)))
            gone = {key for key in [*kinds, "k"] if kept(watched, key).invalidated}
            write(watched, Change(removed=(name,)))
            assert not any(kept(watched, key).invalidated for key in [*kinds, "k"])
            return gone

        assert ended("long", vector(30, length=4)) == {"dot", "three"}
        assert ended("close", vector(28)) == {"l2", "three"}
        assert ended("in three", vector(30, room=1)) == {"dot", "l2", "three", "k"}
        assert ended("nowhere", vector(30, length=2)) == {"three"}

    def test_other_corpora_are_not_concerned(self, watched: Store) -> None:
        put(watched, citing(A, key="other", corpus="other"), reach(A, corpus="other", wanted=1))
        assert write(watched, Change(added=(C,))) == Committed(stale=1)
        assert not kept(watched, "other").invalidated
        assert write(watched, Change(added=(C,)), corpus="other") == Committed()
        assert write(watched, Change(added=(chunk("x", 0),)), corpus="other") == Committed(stale=1)

    def test_an_answer_that_cites_a_second_corpus_depends_on_that_too(self, watched: Store) -> None:
        (first,) = citing(A, corpus="other").evidence or ()
        (second,) = citing(B).evidence or ()
        write(watched, Change(added=(A, FAR)), corpus="other")
        put(watched, make_entry("two", evidence=(first, second), corpus=CORPUS), reach(A, B))
        write(watched, Change(removed=("far",)), corpus="other")
        assert not kept(watched, "two").invalidated
        write(watched, Change(removed=("a",)), corpus="other")
        assert kept(watched, "two").invalidated
        assert not kept(watched).invalidated

    # -- answers without a reach --------------------------------------------------------------------

    def test_entries_without_reach_are_marked_by_what_they_cite(self, watched: Store) -> None:
        plain = citing(B, key="source"), citing(A, key="chunk"), citing(FAR, key="far")
        whole = make_entry("whole", evidence=(), corpus=CORPUS)
        for entry in (*plain, whole):
            assert watched.put(entry, unit(1, 0), watched.sequence()).stored
        moved = replace(B, vector=vector(20.5))
        write(watched, Change(added=(replace(B, digest="new"),)))
        marks = {key: kept(watched, key).invalidated for key in ("source", "whole", "chunk", "far")}
        change = "source 'b.md' of corpus 'handbook' changed"
        assert marks == {"source": change, "whole": change, "chunk": "", "far": ""}
        write(watched, Change(removed=("a",)))
        assert kept(watched, "chunk").invalidated == "source 'a.md' of corpus 'handbook' changed"
        write(watched, Change(added=(A, moved)))
        assert kept(watched, "source").invalidated == change, "it does not come back"
        assert not kept(watched, "far").invalidated
        write(watched, Change(unknown=True))
        assert kept(watched, "far").invalidated

    def test_a_mark_names_the_first_sources(self, store: Store) -> None:
        write(store, Change(emptied=True))
        put(store, citing(), reach())
        added = tuple(chunk(name, 0, source=f"{name}.md") for name in "edcba")
        write(store, Change(added=added))
        named = "sources 'a.md', 'b.md', 'c.md' and 2 others of corpus 'handbook' changed"
        assert kept(store).invalidated == named
