"""Labels of pairs and what they do to promises, on the shelves of a memory store."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from stampcache import flows, pairs
from stampcache.calibration import Subject, watched
from stampcache.calibration.labels import settled
from stampcache.drivers import Ports, run
from stampcache.effects import Flow, Keep, Kept, Take
from stampcache.flows.labelling import Compared
from stampcache.ports import Sameness
from stampcache.shelf import Record
from stampcache.stores.memory import MemoryStore
from stampcache.testing.samples import NOW, make_entry
from tests.promised import pair, promised

SAME, OTHER, FAILED = Sameness(True, "r"), Sameness(False, "r"), Sameness(False, "", failure="late")


class Judge:
    """Says what it is told of each stored question."""

    name = "judge"

    def __init__(self, said: dict[str, Sameness]) -> None:
        self.said = said
        self.asked: list[Sequence[tuple[str, str]]] = []

    def may_ask(self) -> bool:
        return True

    def compare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        self.asked.append(pairs)
        return [self.said.get(stored, SAME) for _, stored in pairs]

    async def acompare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        return self.compare(pairs)


class World:
    def __init__(self, **said: Sameness) -> None:
        self.store = MemoryStore()
        self.store.put(make_entry("k"), None, 0)
        self.judge = Judge(said)
        self.ports = Ports(store=self.store, note=lambda what, error: None, equivalence=self.judge)

    def wait(self, *waiting: pairs.Pair) -> None:
        self.store.shelf.keep(pairs.WAITING, pairs.waiting(waiting), most=99)

    def promise(self, **options: object) -> None:
        record = pairs.promise_record(promised(**options))  # type: ignore[arg-type]  # options of it
        self.store.shelf.keep(pairs.PROMISES, [record], most=99)

    def compared(self, most: int = 100) -> Compared:
        return run(flows.compared("judge", NOW + 9.0, most), self.ports)

    def waiting(self) -> list[pairs.Pair]:
        return list(pairs.pairs_of(self.store.shelf.kept(pairs.WAITING, 99)))

    def labels(self) -> list[tuple[str, bool, bool, str]]:
        kept = pairs.labels_of(self.store.shelf.kept(pairs.LABELS, 99))
        return sorted((one.stored, one.same, one.sampled, one.labeller) for one in kept)

    def withdrawn(self) -> dict[str, str]:
        return dict(pairs.promises_of(self.store.shelf.kept(pairs.PROMISES, 99)).withdrawn)


def test_pairs_that_wait_get_a_label_each_from_one_call() -> None:
    world = World(b=OTHER)
    world.wait(pair(stored="a"), pair(stored="b", sampled=False), pair(stored="c"))
    assert world.compared() == Compared(same=2, not_same=1)
    assert world.labels() == [
        ("a", True, True, "judge"),
        ("b", False, False, "judge"),
        ("c", True, True, "judge"),
    ]
    assert (len(world.judge.asked), world.waiting()) == (1, [])
    assert world.compared() == Compared()
    assert len(world.judge.asked) == 1


def test_a_batch_is_bounded() -> None:
    world = World()
    world.wait(*[pair(stored=str(at)) for at in range(25)])
    assert world.compared() == Compared(same=10)
    assert world.compared(most=3) == Compared(same=3)
    assert len(world.waiting()) == 12


def test_a_call_is_about_one_tenant() -> None:
    world = World()
    world.wait(*[pair(stored=str(at), tenant="tu"[at % 2]) for at in range(6)])
    assert world.compared() == world.compared() == Compared(same=3)
    assert [sorted(int(stored) % 2 for _, stored in call) for call in world.judge.asked] == [
        [1, 1, 1],
        [0, 0, 0],
    ]


def test_a_call_is_about_one_scope_of_a_tenant() -> None:
    world = World()
    world.wait(*[pair(stored=str(at), scope=f"audience {at % 2}") for at in range(4)])
    assert world.compared() == world.compared() == Compared(same=2)
    assert [sorted(int(stored) % 2 for _, stored in call) for call in world.judge.asked] == [
        [1, 1],
        [0, 0],
    ]


def test_what_was_drawn_comes_before_what_a_decider_was_in_doubt_of() -> None:
    world = World()
    doubtful = [pair(stored=f"doubt {at}", sampled=False) for at in range(5)]
    world.wait(pair(stored="drawn"), *doubtful)
    assert world.compared(most=2) == Compared(same=2)
    assert world.judge.asked[0][0] == ("a?", "drawn")


def test_each_draw_of_a_pair_counts_and_the_judge_reads_it_once() -> None:
    world = World()
    world.wait(*[pair(at=NOW + at) for at in range(3)])
    assert world.compared() == Compared(same=3)
    assert world.judge.asked == [[("a?", "b?")]]
    kept = pairs.labels_of(world.store.shelf.kept(pairs.LABELS, 99))
    assert len(settled(kept, pair().subject)) == 3


def test_a_batch_that_another_worker_took_is_not_judged() -> None:
    world = World()
    world.wait(pair())
    flow = flows.compared("judge", NOW, 9)
    kept = next(flow)
    assert isinstance(kept, Kept)
    take = flow.send(world.store.shelf.kept(pairs.WAITING, 9))
    assert isinstance(take, Take)
    with pytest.raises(StopIteration) as ended:
        flow.send([])
    assert ended.value.value == Compared()


def test_what_a_judge_did_not_say_waits_again_three_times() -> None:
    world = World(b=FAILED)
    world.wait(pair(stored="a"), pair(stored="b"))
    assert world.compared() == Compared(same=1, failed=1)
    assert [one.attempts for one in world.waiting()] == [1]
    assert world.compared() == Compared(failed=1)
    assert world.compared() == Compared(failed=1)
    assert (world.waiting(), [label[0] for label in world.labels()]) == ([], ["a"])
    unsaid = pairs.pairs_of(world.store.shelf.kept(pairs.UNSAID, 9))
    assert [(one.stored, one.attempts) for one in unsaid] == [("b", 3)]


def test_what_nobody_can_read_is_dropped() -> None:
    world = World()
    broken = Record(key="x", body=b"?")
    world.store.shelf.keep(pairs.WAITING, [broken], most=99)
    world.store.shelf.keep(pairs.LABELS, [broken], most=99)
    assert world.compared() == Compared()
    assert (world.waiting(), world.labels(), world.judge.asked) == ([], [], [])


def test_a_pair_has_one_label_of_each_labeller() -> None:
    world = World()
    for same, labeller in ((True, "judge"), (False, "judge"), (True, "person")):
        run(flows.label([(pair(), same)], labeller, NOW), world.ports)
    assert [(label[1], label[3]) for label in world.labels()] == [
        (False, "judge"),
        (True, "person"),
    ]
    assert run(flows.label([], "judge", NOW), world.ports) == 0


def test_labels_of_a_forgotten_tenant_are_not_kept() -> None:
    world = World()
    world.store.forget("t")
    run(flows.label([(pair(), True)], "judge", NOW), world.ports)
    assert world.labels() == []


def drive(flow: Flow[int], world: World, *, until: type[Keep]) -> Flow[int]:
    """Perform a flow up to its first effect of a kind, and return the rest of it."""
    effect = next(flow)
    assert isinstance(effect, until)
    effect.on(world.store.shelf)

    def rest() -> Flow[int]:
        after = flow.send(None)
        while True:
            try:
                after = flow.send((yield after))
            except StopIteration as end:
                done: int = end.value
                return done

    return rest()


# -- the watch over a promise ----------------------------------------------------------------------


def wrong(world: World, count: int, **options: object) -> int:
    made = [pair(stored=f"{at}", **options) for at in range(count)]  # type: ignore[arg-type]  # options of it
    return run(flows.label([(one, False) for one in made], "judge", NOW), world.ports)


def test_wrong_hits_that_were_drawn_withdraw_the_promise_for_all_processes() -> None:
    world = World()
    world.promise()
    assert wrong(world, 10) == 1
    (why,) = world.withdrawn().values()
    assert "judged hits were wrong" in why
    assert wrong(world, 10) == 0, "it is withdrawn once"


def test_of_two_workers_neither_undoes_what_the_other_one_saw() -> None:
    """Both have labelled some wrong hits before either looks at the promise."""
    world = World()
    world.promise()
    made = [pair(stored=f"{at}") for at in range(4)]
    flows_of = [
        flows.label([(one, False) for one in half], "judge", NOW) for half in (made[:2], made[2:])
    ]
    halves = [drive(one, world, until=Keep) for one in flows_of]
    assert [run(one, world.ports) for one in halves] == [1, 0]
    assert len(world.withdrawn()) == 1


def test_right_hits_leave_the_promise_as_it_is() -> None:
    world = World()
    world.promise()
    made = [(pair(stored=f"{at}"), True) for at in range(200)]
    assert run(flows.label(made, "judge", NOW), world.ports) == 0
    assert world.withdrawn() == {}


@pytest.mark.parametrize(
    "options",
    [
        {"served": False},
        {"sampled": False},
        {"at": NOW - 101.0},
        {"score": 0.89},
        {"subject": Subject(namespace="other", embedder="", decider="cosine+guards-3")},
    ],
)
def test_pairs_that_it_does_not_speak_of_leave_a_promise_alone(options: dict[str, object]) -> None:
    world = World()
    world.promise()
    assert wrong(world, 20, **options) == 0
    assert world.withdrawn() == {}


def test_promises_of_two_rates_on_the_same_labels_are_watched_apart() -> None:
    world = World()
    world.promise(max_wrong=0.01)
    world.promise(max_wrong=0.5, threshold=0.5)
    made = [(pair(stored=f"{at}"), at % 5 > 0) for at in range(40)]
    assert run(flows.label(made, "judge", NOW), world.ports) == 1
    labels = pairs.labels_of(world.store.shelf.kept(pairs.LABELS, 99))
    ended = {
        rate: watched(promised(max_wrong=rate, threshold=0.5), labels).withdrawn
        for rate in (0.01, 0.5)
    }
    assert ended == {0.01: True, 0.5: False}


@pytest.mark.parametrize(
    ("weight", "least", "counts"),
    [(5.0, 0.5, True), (5.0, 0.4, True), (5.0, 0.6, False), (0.0, 0.5, False), (20.0, 0.5, False)],
)
def test_a_promise_is_watched_by_hits_of_who_serves_all_that_it_speaks_of(
    weight: float, least: float, counts: bool
) -> None:
    promise = promised(max_wrong=0.01, threshold=0.5, similarity_weight=5.0)
    drawn = [pair(stored=str(at), weight=weight, least=least) for at in range(40)]
    labels = [one.labelled(same=False, labeller="j", at=NOW, sampled=True) for one in drawn]
    assert watched(promise, labels).withdrawn is counts


def test_a_pair_that_a_promise_does_not_reach_is_none_of_its_hits() -> None:
    promise = promised(max_wrong=0.01, threshold=0.9, similarity_weight=20.0)
    drawn = [pair(stored=str(at), score=0.95, weight=20.0) for at in range(40)]
    labels = [one.labelled(same=False, labeller="j", at=NOW, sampled=True) for one in drawn]
    assert watched(promise, labels).judged == 0


def test_reports_are_labels_but_no_samples() -> None:
    world = World()
    world.promise()
    served = [pair(stored=str(at)) for at in range(20)]
    run(flows.reported(served, same=False, now=NOW), world.ports)
    run(flows.reported([], same=True, now=NOW), world.ports)
    assert world.labels()[0] == ("0", False, False, "report")
    assert world.withdrawn() == {}, "nobody reports at random"


def test_drawn_pairs_of_an_entry_that_is_reported_bad_are_not_missing_among_the_labels() -> None:
    world = World()
    world.store.put(make_entry("other"), None, 0)
    drawn, other = pair("drawn"), pair("other", entry_id="p/other")
    world.wait(drawn, pair("in doubt", sampled=False), other)
    run(flows.reported([drawn], same=True, now=NOW, entry_id="p/k"), world.ports)
    assert len(world.waiting()) == 3
    run(flows.reported([drawn], same=False, now=NOW, entry_id="p/k"), world.ports)
    assert sorted(one.asked for one in world.waiting()) == ["in doubt", "other"]
    assert world.labels() == [("b?", False, True, "report")]


def test_the_key_of_a_pair_tells_tenants_and_sides_apart() -> None:
    made = [pair("a", "b"), pair("b", "a"), pair("a", "b", tenant="u"), pair("ab", "")]
    assert len({one.key for one in made}) == 4
    assert pair().key == replace(pair(), score=0.1, attempts=2).key
