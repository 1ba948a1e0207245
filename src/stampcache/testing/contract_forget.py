"""The contract of a store that forgets a tenant: nothing of it is left, and nothing of others goes."""

import threading

from msgspec.structs import replace

from stampcache.corpora import Change, Chunk, Metric, Reach
from stampcache.journal import Verdict
from stampcache.model import Entry, Selector
from stampcache.ports import Forgotten, Store, Telling
from stampcache.shelf import Record
from stampcache.spaces import as_bytes
from stampcache.testing.samples import NOW, make_entry, unit


def _of(tenant: str, key: str, *, audience: str = "", entry_id: str | None = None) -> Entry:
    partition = f"{tenant}{audience}"
    return make_entry(
        key, partition=partition, scope=f"s{partition}", tenant=tenant, entry_id=entry_id
    )


def _judged(entry: Entry) -> Verdict:
    return Verdict(
        entry_id=entry.id,
        question=entry.question,
        fresh=True,
        reason="r",
        at=NOW,
        tenant=entry.identity.tenant,
    )


_REACH = Reach(
    corpus="c", question=as_bytes([1.0, 0.0]), metric=Metric.COSINE, floor=0.5, settings="m"
)
_CLOSE = Change(added=(Chunk(id="1", digest="d", vector=as_bytes([1.0, 0.0])),))


class _Beside:
    """What a cache keeps beside its store, which it drops when it is told to."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def let_go(self, tenant: str) -> None:
        self.told.append(tenant)


class ForgetContract:
    """What every store does when a tenant is forgotten (ADR 0027)."""

    def test_what_is_kept_beside_the_store_is_told(self, store: Store) -> None:
        if not isinstance(store, Telling):
            return  # it serves one process, whose cache knows what it forgets
        beside, gone = _Beside(), _Beside()
        store.when_forgotten(beside.let_go)
        store.when_forgotten(gone.let_go)
        del gone  # is kept by nobody
        store.put(_of("t", "k"), None, store.sequence())
        beside.told.clear()  # a process that has just begun may be told of what was before
        store.forget("t")
        assert set(beside.told) in ({"t"}, {""})

    def test_a_forgotten_tenant_has_no_entries_in_any_of_its_scopes(self, store: Store) -> None:
        mine = [_of("t", "k"), _of("t", "k", audience="a"), _of("t", "l")]
        other = _of("u", "k")
        for entry in (*mine, other):
            store.put(entry, unit(1, 0), store.sequence())
        store.nearest("t", unit(1, 0), 3, asked="x", now=NOW)
        forgotten = store.forget("t")
        assert forgotten.entries == 3
        assert forgotten.size_bytes > 0
        for entry in mine:
            assert store.fetch(*entry.place) is None
            assert not store.nearest(entry.place[0], unit(1, 0), 3, asked="x", now=NOW)
        assert store.fetch(*other.place) == other
        (near,) = store.nearest("u", unit(1, 0), 3, asked="x", now=NOW)
        assert near.entry == other
        assert store.stats().entries == 1

    def test_forgetting_nobody_or_again_removes_nothing(self, store: Store) -> None:
        entry = _of("t", "k")
        store.put(entry, None, store.sequence())
        nobodys = replace(_judged(entry), tenant="")
        store.journal.judged(nobodys)
        store.shelf.keep("x", [Record(key="a", body=b"b")], most=9)
        assert store.forget("") == Forgotten()
        assert list(store.journal.verdicts(9)) == [nobodys]
        assert len(store.shelf.kept("x", 9)) == 1
        assert store.forget("nobody%") == Forgotten()
        assert store.fetch(*entry.place) == entry
        store.forget("t")
        assert store.forget("t") == Forgotten()

    def test_what_was_invalidated_or_suspended_goes_too(self, store: Store) -> None:
        marked, suspended = _of("t", "k"), _of("t", "l")
        store.put(marked, unit(1, 0), store.sequence())
        store.corpora.declare("c", now=NOW, silence_s=None)
        store.put(suspended, unit(1, 0), store.sequence(), _REACH)
        store.invalidate(Selector(entry=marked.id))
        assert store.corpora.commit("c", "", _CLOSE, now=NOW).stale == 1
        assert store.forget("t").entries == 2
        assert store.corpora.reach(suspended) is None
        gone = Change(removed=("1",))
        assert store.corpora.commit("c", "", gone, now=NOW).restored == 0
        assert store.stats().invalidated == 0

    def test_an_answer_that_was_being_made_for_it_is_refused(self, store: Store) -> None:
        entry = _of("t", "k")
        fence = store.sequence()
        store.forget("t")
        receipt = store.put(entry, unit(1, 0), fence)
        assert not receipt.stored
        assert receipt.change
        assert store.fenced(entry, fence)
        assert store.fetch(*entry.place) is None

    def test_it_may_come_back(self, store: Store) -> None:
        store.put(_of("t", "k", entry_id="1"), None, store.sequence())
        store.forget("t")
        again = _of("t", "k", entry_id="2")
        assert not store.fenced(again, store.sequence())
        assert store.put(again, unit(1, 0), store.sequence()).stored
        assert store.fetch(*again.place) == again

    def test_reported_pairs_go_with_it_and_those_of_others_stay(self, store: Store) -> None:
        for tenant in "tu":
            entry = _of(tenant, "k", entry_id=tenant)
            store.put(entry, unit(1, 0), store.sequence())
            store.touch(entry, "asked")
            store.report_bad(entry.id)
        store.forget("t")
        for tenant, bad in (("t", False), ("u", True)):
            store.put(_of(tenant, "k"), unit(1, 0), store.sequence())
            (near,) = store.nearest(tenant, unit(1, 0), 3, asked="asked", now=NOW)
            assert near.reported_bad is bad

    def test_an_answer_served_before_is_not_reported_after(self, store: Store) -> None:
        entry = _of("t", "k")
        store.put(entry, unit(1, 0), store.sequence())
        store.touch(entry, "asked")
        store.forget("t")
        assert not store.report_bad(entry.id)
        store.put(_of("t", "k"), unit(1, 0), store.sequence())
        (near,) = store.nearest("t", unit(1, 0), 3, asked="asked", now=NOW)
        assert not near.reported_bad

    def test_verdicts_on_its_entries_go_with_it(self, store: Store) -> None:
        mine, other = _of("t", "k"), _of("u", "k")
        for entry in (mine, other):
            store.put(entry, None, store.sequence())
            store.journal.judged(_judged(entry))
        store.forget("t")
        assert store.journal.verdict(mine.id) is None
        assert list(store.journal.verdicts(9)) == [_judged(other)]

    def test_a_verdict_that_comes_too_late_is_not_kept(self, store: Store) -> None:
        entry = _of("t", "k")
        store.put(entry, None, store.sequence())
        store.forget("t")
        store.journal.judged(_judged(entry))
        assert store.journal.verdict(entry.id) is None

    def test_nothing_that_is_written_to_a_corpus_reaches_it(self, store: Store) -> None:
        mine, other = _of("t", "k"), _of("u", "k")
        store.corpora.declare("c", now=NOW, silence_s=None)
        for entry in (mine, other):
            store.put(entry, None, store.sequence(), _REACH)
        assert not store.corpora.commit("c", "", Change(removed=("9",)), now=NOW).stale
        store.forget("t")
        assert list(store.corpora.sample("c", "m", 9, after="")) == [other]
        assert store.corpora.commit("c", "", _CLOSE, now=NOW).stale == 1
        assert list(store.corpora.chunks("c", None)) == ["1"], "documents are nobody's"
        store.forget("u")
        assert list(store.corpora.chunks("c", None)) == ["1"]

    def test_threads_fill_while_it_is_forgotten_without_leaving_anything(
        self, store: Store
    ) -> None:
        """What began before is refused or removed, whichever comes first."""
        began, go = threading.Barrier(5), threading.Event()

        def fill(worker: int) -> None:
            fence = store.sequence()
            began.wait()
            go.wait()
            for at in range(5):
                store.put(_of("t", f"{worker}.{at}"), unit(1, at), fence)

        threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        began.wait()
        go.set()
        store.forget("t")
        for thread in threads:
            thread.join()
        assert store.stats().entries == 0
