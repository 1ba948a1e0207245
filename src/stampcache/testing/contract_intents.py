"""What every store does with writes in parts, that were resolved by others, or of which little is known.

A part of `stampcache.testing.contract.StoreContract`.
"""

from msgspec.structs import replace

from stampcache.corpora import Change, Chunk, Committed, Intent, Standing
from stampcache.ports import Store
from stampcache.testing.samples import NOW
from stampcache.testing.samples_corpora import (
    CORPUS,
    FAR,
    A,
    B,
    chunk,
    citing,
    kept,
    put,
    reach,
    vector,
    write,
)


def standing(store: Store) -> Standing:
    known = store.corpora.standing(CORPUS)
    assert known is not None
    return known


class IntentsContract:
    # -- writes in parts ---------------------------------------------------------------------------

    def test_an_intent_stays_until_the_last_part_of_its_write(self, watched: Store) -> None:
        watched.corpora.begin(CORPUS, Intent(id="1", at=NOW))
        part = Change(added=(chunk("d", 70),), unfinished=True)
        assert write(watched, part, intent="1") == Committed()
        assert [one.id for one in standing(watched).intents] == ["1"]
        assert not put(watched, citing(A, B, key="meanwhile"), reach(A, B)).stored
        assert write(watched, Change(removed=("a",)), intent="1") == Committed(stale=1)
        assert not standing(watched).intents
        assert watched.corpora.chunks(CORPUS, None).keys() == {"b", "d", "far"}

    def test_parts_do_not_contest_each_other_but_what_others_write(self, watched: Store) -> None:
        watched.corpora.begin(CORPUS, Intent(id="1", at=NOW))
        watched.corpora.begin(CORPUS, Intent(id="2", at=NOW))
        far = chunk("x", 70), chunk("y", 75)
        write(watched, Change(added=far[:1], unfinished=True), intent="1")
        write(watched, Change(added=(replace(far[0], digest="2"), far[1])), intent="2")
        write(watched, Change(added=(*far, FAR)), intent="1")
        known = watched.corpora.chunks(CORPUS, None)
        assert known["y"] == Chunk(id="y", digest="")
        assert known["x"] == Chunk(id="x", digest="")
        assert known["far"] == FAR

    # -- resolved by others ------------------------------------------------------------------------

    def test_whose_intent_is_gone_does_not_know_who_wrote_since(self, watched: Store) -> None:
        write(watched, Change(added=(replace(A, digest="new"),)))
        assert kept(watched).invalidated
        assert write(watched, Change(added=(A,)), intent="resolved by another") == Committed()
        assert kept(watched).invalidated
        assert watched.corpora.chunks(CORPUS, ["a"]) == {"a": Chunk(id="a", digest="")}
        assert watched.corpora.chunks(CORPUS, ["b"]) == {"b": B}

    def test_nothing_is_changed_by_nothing(self, watched: Store) -> None:
        before = standing(watched)
        assert write(watched, Change(), intent="resolved by another") == Committed()
        assert standing(watched) == before
        assert not kept(watched).invalidated

    # -- what is not known -------------------------------------------------------------------------

    def test_a_chunk_that_may_have_gone_unseen_comes_anew(self, watched: Store) -> None:
        write(watched, Change(unknown=True))
        without = citing(B, FAR, key="without a")
        put(watched, without, reach(B, FAR))
        assert watched.corpora.chunks(CORPUS, ["a"]) == {"a": A}
        assert write(watched, Change(added=(A,))) == Committed(stale=1)
        assert kept(watched, "without a").invalidated
        assert write(watched, Change(removed=("a",))) == Committed()
        assert kept(watched, "without a").invalidated, "whether it was there is not known"

    def test_one_that_is_changed_or_goes_ends_what_found_it(self, watched: Store) -> None:
        for change in (
            Change(added=(replace(A, digest="new"),)),
            Change(added=(replace(A, vector=vector(89)),)),
            Change(added=(replace(A, source="moved.md"),)),
            Change(removed=("a",)),
        ):
            write(watched, Change(added=(A,)))
            write(watched, Change(unknown=True))
            put(watched, citing(A, B), reach(A, B))
            assert write(watched, change) == Committed(stale=1)

    def test_one_that_was_told_of_since_is_known_for_certain(self, watched: Store) -> None:
        write(watched, Change(added=(B,), unknown=True))
        write(watched, Change(added=(A,)))
        put(watched, citing(A, B), reach(A, B))
        assert write(watched, Change(added=(A, B))) == Committed()
        assert write(watched, Change(removed=("a",))) == Committed(stale=1)
        assert write(watched, Change(added=(A,))) == Committed(restored=1)
        write(watched, Change(added=(A, B, FAR), emptied=True))
        put(watched, citing(A, B), reach(A, B))
        assert write(watched, Change(added=(A, B, FAR))) == Committed()

    def test_what_changes_beside_the_index_ends_all_and_leaves_its_chunks(
        self, watched: Store
    ) -> None:
        before = standing(watched)
        assert write(watched, Change(unknown=True, beyond=True)) == Committed(stale=1)
        assert standing(watched) == before
        put(watched, citing(A, B), reach(A, B))
        assert write(watched, Change(added=(A, B, FAR))) == Committed()
        assert not kept(watched).invalidated
