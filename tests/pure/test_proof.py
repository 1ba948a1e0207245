"""A promise from labelled pairs: what it says, when there is none, where it holds."""

import itertools
import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache.calibration import (
    REPORT,
    Labelled,
    Lack,
    Promise,
    Promises,
    Refusal,
    Subject,
    curve,
    promises_from,
    prove,
)
from stampcache.calibration.labels import digest_of, groups, one_each, settled
from stampcache.errors import ConfigError

SUBJECT = Subject(embedder="an embedder", decider="cosine+guards-1")


def label(
    number: int, score: float | None = 0.9, same: bool = True, stored: str = "", **fields: object
) -> Labelled:
    one = Labelled(
        asked=f"asked {number}",
        stored=stored or f"stored {number}",
        same=same,
        score=score,
        similarity=0.9,
        labeller="a person",
        at=0.0,
        subject=SUBJECT,
    )
    return replace(one, **fields)


def falling(count: int, wrong: Sequence[int] = (), **fields: object) -> list[Labelled]:
    """Return pairs that share no question, with falling scores, of which these are wrong."""
    return [label(at, 1 - at / 10_000, at not in wrong, **fields) for at in range(count)]


def proved(labels: Sequence[Labelled], max_wrong: float = 0.05) -> Promise:
    found = proof(labels, max_wrong)
    assert isinstance(found, Promise), str(found)
    return found


def refused(labels: Sequence[Labelled], max_wrong: float = 0.05) -> Refusal:
    found = proof(labels, max_wrong)
    assert isinstance(found, Refusal), str(found)
    assert found.message.endswith(".")
    return found


def proof(labels: Sequence[Labelled], max_wrong: float) -> Promise | Refusal:
    return prove(
        labels, SUBJECT, max_wrong=max_wrong, entries=1_000, data="our helpdesk", made_at=1.7e9
    )


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_is_a_number_or_a_veto(score: float) -> None:
    with pytest.raises(ConfigError, match="no finite number"):
        label(1, score)


def test_a_label_is_a_record_for_json() -> None:
    one = label(1, None, group="user 7", sampled=False)
    assert msgspec.json.decode(msgspec.json.encode(one), type=Labelled) == one


def test_labels_of_another_subject_are_left_out() -> None:
    other = replace(SUBJECT, decider="a verifier-2")
    assert settled([label(1), label(2, subject=other)], SUBJECT) == [label(1)]


def test_the_latest_label_counts_and_at_one_time_the_worse_one() -> None:
    said = [
        label(1, 0.7, True, at=1.0, labeller="judge"),
        label(1, 0.8, False, at=2.0, labeller="person"),
        label(2, 0.9, False),
        label(2, 0.9, True),
    ]
    found = settled(said, SUBJECT)
    assert sorted((one.asked, one.same, one.labeller) for one in found) == [
        ("asked 1", False, "person"),
        ("asked 2", False, "a person"),
    ]


def test_reports_decide_over_pairs_that_were_drawn_and_else_only_against() -> None:
    said = [
        label(1, 0.7, True, at=1.0),
        label(1, None, False, at=2.0, sampled=False, labeller=REPORT),
        label(2, 0.8, False, at=1.0, sampled=False, labeller=REPORT),
        label(3, 0.9, True, at=1.0, sampled=False, labeller=REPORT),
        label(4, 0.9, False, at=1.0, sampled=False, labeller="judge"),
    ]
    found = {one.asked: one for one in settled(said, SUBJECT)}
    assert set(found) == {"asked 1", "asked 2"}
    assert (found["asked 1"].same, found["asked 1"].score) == (False, 0.7)


def test_each_draw_of_a_pair_counts_with_its_latest_label() -> None:
    draws = [label(1, drawn_at=float(at), at=float(at), same=at < 2) for at in range(3)]
    again = replace(draws[0], labeller="a judge", at=0.5)
    found = settled([*draws, again, label(2)], SUBJECT)
    assert sorted((one.asked, one.same) for one in found) == [
        ("asked 1", False),
        ("asked 1", False),
        ("asked 1", False),
        ("asked 2", True),
    ]


def test_a_popular_wrong_pair_is_as_often_among_the_pairs_as_among_the_hits() -> None:
    popular = [label(999, 0.985, False, drawn_at=float(at)) for at in range(30)]
    once = proved([*falling(400), popular[0]])
    often = proved([*falling(400), *popular])
    assert once.threshold < 0.985 < often.threshold


def test_pairs_that_share_a_question_are_one_group() -> None:
    chained = [
        label(1, stored="Who are  you?"),
        label(2, asked="who are you?"),
        label(3, stored="stored 2"),
        label(4),
    ]
    assert sorted(len(group) for group in groups(chained)) == [1, 3]


def test_a_stated_group_takes_the_place_of_questions() -> None:
    stated = [label(at, stored="one answer", group=f"user {at % 2}") for at in range(6)]
    assert [len(group) for group in groups(stated)] == [3, 3]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_groups_part_the_labels_and_share_nothing(links: list[tuple[int, int]]) -> None:
    labels = [label(0, asked=str(one), stored=str(other)) for one, other in links]
    found = groups(labels)
    assert sorted(map(repr, itertools.chain(*found))) == sorted(map(repr, labels))
    words = [{text for one in group for text in (one.asked, one.stored)} for group in found]
    assert sum(len(one) for one in words) == len(set().union(*words))
    assert len(one_each(found)) == len(found)


def test_which_of_a_group_is_drawn_does_not_depend_on_what_is_said_of_it() -> None:
    group = [label(at, stored="one") for at in range(9)]
    told = [replace(one, same=False, score=0.1, at=5.0) for one in reversed(group)]
    chosen, other = (one_each(groups(settled(said, SUBJECT))) for said in (group, told))
    assert [one.asked for one in chosen] == [one.asked for one in other]
    assert len(chosen) == 1


# -- promises --------------------------------------------------------------------------------------


def test_a_promise_states_what_it_holds_for() -> None:
    labels = [*falling(400, [390]), label(999, None)]
    promise = proved(labels, 0.01)
    assert (promise.pairs, promise.groups, promise.wrong) == (401, 401, 0)
    assert promise.served == sum(
        one.score is not None and one.score >= promise.threshold for one in labels
    )
    assert promise.share.low < promise.served / 401 < promise.share.high
    assert promise.digest == digest_of(settled(labels, SUBJECT))
    said = str(promise)
    for part in (
        "At most 1 % of the semantic hits in namespace 'default' are wrong, at 95 % confidence",
        "the embedder an embedder, decided by cosine+guards-1 at 0.96",
        "250 to 4,000 entries",
        "on 2023-11-14 with 401 pairs in 401 groups from our helpdesk",
        "a store of 1,000 entries, labelled by a person (401)",
    ):
        assert part in said


def test_a_promise_survives_json_and_a_later_format_is_refused() -> None:
    promise = proved(falling(100))
    raw = msgspec.json.encode(promise)
    assert msgspec.json.decode(raw, type=Promise) == promise
    with pytest.raises(ConfigError, match="tune again"):
        msgspec.json.decode(raw.replace(b'"version":1', b'"version":2'), type=Promise)


def test_few_labels_say_how_many_it_takes() -> None:
    found = refused(falling(120), 0.01)
    assert (found.lack, found.needed) == (Lack.TOO_FEW, 300)
    assert str(found) == (
        "There are 120 labelled pairs that no guard vetoes; to prove at most 1 % wrong at 95 % "
        "confidence takes 300 without an error."
    )
    assert refused([label(at, None) for at in range(400)], 0.01).lack is Lack.TOO_FEW


def test_many_errors_say_what_the_labels_bear() -> None:
    found = refused(falling(100, range(0, 100, 5)))
    assert (found.lack, found.needed) == (Lack.TOO_WRONG, 0)
    assert "The 59 best pairs hold 12 wrong ones" in found.message


def test_equal_scores_are_said_to_be_too_coarse() -> None:
    found = refused([label(at) for at in range(100)])
    assert found.lack is Lack.TIED


def test_pairs_that_share_one_question_count_once() -> None:
    labels = [label(at, 1 - at / 1000, stored="How do I pay?") for at in range(100)]
    found = refused(labels)
    assert found.lack is Lack.TOO_FEW
    assert "1 labelled groups" in found.message
    grouped = [replace(one, group=one.asked) for one in labels]
    assert proved(grouped).groups == 100


def test_a_popular_trap_is_seen_although_its_group_counts_once() -> None:
    """Counted by group 1 of 200 is wrong; counted by request, a third."""
    trap = [label(1000 + at, 1.5 - at / 1000, False, stored="the trap") for at in range(100)]
    assert refused([*falling(200), *trap]).lack is Lack.TOO_WRONG


def test_where_the_two_ways_share_no_threshold_there_is_none() -> None:
    """By pair only the best of one group are proved, by group only what is far below them."""
    hub = [label(1000 + at, 2 - at / 1000, stored="one answer") for at in range(100)]
    (drawn,) = one_each(groups(settled(hub, SUBJECT)))
    hub[60:] = [replace(one, same=one is drawn) for one in hub[60:]]
    found = refused([*hub, *falling(70)])
    assert found.lack is Lack.GROUPED


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_order_of_labels_says_nothing(random: object) -> None:
    labels = [label(at, round(1 - at / 200, 1), at % 31 != 7) for at in range(90)]
    turned = labels.copy()
    random.shuffle(turned)  # type: ignore[attr-defined]  # a random.Random of hypothesis
    assert proof(turned, 0.2) == proof(labels, 0.2)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 199), max_size=12))
def test_a_stricter_promise_never_serves_more(wrong: list[int]) -> None:
    labels = falling(200, wrong)
    found = [proof(labels, max_wrong) for max_wrong in (0.02, 0.03, 0.5)]
    served = [one.served if isinstance(one, Promise) else 0 for one in found]
    assert served == sorted(served)


@pytest.mark.parametrize(
    ("field", "given"), [("max_wrong", 0.0), ("max_wrong", 1.0), ("delta", 0.0), ("entries", 0)]
)
def test_what_cannot_be_is_refused(field: str, given: float) -> None:
    told: dict[str, object] = {"max_wrong": 0.1, "delta": 0.05, "entries": 10, field: given}
    with pytest.raises(ConfigError, match=f"{field}="):
        prove([], SUBJECT, data="", made_at=0.0, **told)  # type: ignore[arg-type]  # by name


def test_a_promise_of_no_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_wrong="):
        replace(proved(falling(100)), max_wrong=1.5)


# -- promises together -------------------------------------------------------------------------------


def covering(
    promises: Promises, max_wrong: float = 0.05, entries: int = 1_000
) -> Promise | Refusal:
    return promises.covering(SUBJECT, max_wrong=max_wrong, entries=entries)


def test_the_loosest_that_is_strict_enough_is_found() -> None:
    strict, loose = (proved(falling(700), max_wrong) for max_wrong in (0.01, 0.05))
    known = Promises().with_promise(loose).with_promise(strict)
    assert covering(known, 0.05) == loose
    assert covering(known, 0.04) == strict
    assert list(known) == [loose, strict]


def test_a_new_promise_takes_the_place_of_the_old_one() -> None:
    old, new = proved(falling(100)), proved(falling(200))
    assert list(Promises().with_promise(old).with_promise(new)) == [new]


@pytest.mark.parametrize(
    ("changed", "lack", "part"),
    [
        ({"embedder": "another"}, Lack.EMBEDDER, "holds for the embedder 'an embedder'"),
        ({"decider": "another"}, Lack.DECIDER, "holds for the decider 'cosine+guards-1'"),
        ({"namespace": "another"}, Lack.NAMESPACE, "holds for the namespace 'default'"),
    ],
)
def test_another_subject_is_not_covered(changed: dict[str, str], lack: Lack, part: str) -> None:
    known = Promises().with_promise(proved(falling(100)))
    found = known.covering(replace(SUBJECT, **changed), max_wrong=0.05, entries=1_000)
    assert isinstance(found, Refusal)
    assert found.lack is lack
    assert part in str(found)


@pytest.mark.parametrize(("entries", "covered"), [(249, 0), (250, 1), (4_000, 1), (4_001, 0)])
def test_a_store_of_another_size_is_not_covered(entries: int, covered: int) -> None:
    found = covering(Promises().with_promise(proved(falling(100))), entries=entries)
    assert isinstance(found, Promise) == bool(covered)
    if isinstance(found, Refusal):
        assert found.lack is Lack.STORE_SIZE
        assert "holds from 250 to 4,000" in str(found)


def test_a_looser_or_less_sure_promise_does_not_cover() -> None:
    promise = proved(falling(100))
    found = covering(Promises().with_promise(promise), 0.01)
    assert isinstance(found, Refusal)
    assert found.lack is Lack.MAX_WRONG
    assert "Proved is at most 5 % wrong" in str(found)
    unsure = replace(promise, delta=0.2)
    assert covering(Promises().with_promise(unsure)) != unsure


def test_the_refusal_is_about_what_comes_closest() -> None:
    near = proved(falling(100))
    far = replace(near, subject=replace(SUBJECT, embedder="another"))
    for order in ((near, far), (far, near)):
        known = Promises()
        for one in order:
            known = known.with_promise(one)
        found = covering(known, entries=9)
        assert isinstance(found, Refusal)
        assert found.lack is Lack.STORE_SIZE


def test_without_any_promise_it_says_what_to_do() -> None:
    found = covering(Promises())
    assert isinstance(found, Refusal)
    assert found.lack is Lack.NONE
    assert "stampcache tune" in str(found)


def test_a_withdrawn_promise_does_not_cover_until_there_are_new_labels() -> None:
    promise = proved(falling(100))
    known = Promises().with_promise(promise).without(promise, "9 of 40 judged hits were wrong")
    found = covering(known)
    assert str(found) == ("The promise was withdrawn: 9 of 40 judged hits were wrong; tune again.")
    assert covering(promises_from(known.to_json())) == found
    assert isinstance(covering(known.with_promise(proved(falling(101)))), Promise)


def test_promises_are_read_from_json_or_refused() -> None:
    known = Promises().with_promise(proved(falling(100)))
    assert promises_from(known.to_json()) == known
    for raw in (b"{", b'{"kept": [{}]}', b'{"other": 1}', b"[]"):
        with pytest.raises(ConfigError, match="no promises"):
            promises_from(raw)
    with pytest.raises(ConfigError, match="max_wrong="):
        covering(known, 0.0)


# -- curve -----------------------------------------------------------------------------------------


def test_a_curve_shows_hits_and_errors_by_threshold() -> None:
    labels = [*falling(100, range(80, 100)), *(label(at, None) for at in range(200, 300))]
    points = curve(labels, SUBJECT, points=10)
    assert [one.hits for one in points] == list(range(10, 101, 10))
    assert [one.wrong for one in points] == [0] * 8 + [10, 20]
    last = points[-1]
    assert (last.pairs, last.share.share, last.wrong_rate.share) == (200, 0.5, 0.2)
    assert last.wrong_rate.low < 0.2 < last.wrong_rate.high


def test_equal_scores_are_one_point() -> None:
    labels = [label(at, round(at / 40)) for at in range(100)]
    assert [one.threshold for one in curve(labels, SUBJECT)] == [2, 1, 0]
    assert curve([], SUBJECT) == []


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40), st.integers(1, 60))
def test_each_point_counts_what_scores_at_it_or_above(
    scored: list[tuple[float, bool]], points: int
) -> None:
    labels = [label(at, score, same) for at, (score, same) in enumerate(scored)]
    found = curve(labels, SUBJECT, points=points)
    assert len(found) <= points
    assert bool(found) == bool(scored)
    for one in found:
        served = [same for score, same in scored if score >= one.threshold]
        assert (one.hits, one.wrong) == (len(served), served.count(False))


# -- how often a promise is false, with pairs that depend on each other -------------------------------


def test_a_promise_is_false_as_seldom_as_stated_where_groups_agree() -> None:
    """Pairs of a group share their label and nearly their score: 40 groups of 5 are not 200 pairs."""
    chooser = np.random.default_rng(7)
    false = 0
    for _ in range(150):
        labels = []
        for group in range(40):
            score, wrong = chooser.random(), chooser.random() < 0.3
            labels += [
                label(5 * group + at, score + at / 1e6, not wrong, stored=f"hub {group}")
                for at in range(5)
            ]
        false += isinstance(proof(labels, 0.25), Promise)  # the risk is 0.3 at every threshold
    assert false <= 14  # delta is 0.05: 7.5 expected at most, and 14 with a chance of 1 %
