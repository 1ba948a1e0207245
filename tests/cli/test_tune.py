"""``stampcache tune``, and what ``doctor`` says of promises."""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from stampcache import pairs, tuning
from stampcache.calibration import Promise, Refusal, Subject, prove
from stampcache.pairs import Pair
from stampcache.ports import Store
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing.samples import NOW, make_entry
from tests.cli.conftest import Run
from tests.promised import pair

SUBJECT = Subject(embedder="toy", decider="cosine+guards-3")


def drawn(at: int, *, namespace: str = "default", asked_at: float = NOW) -> Pair:
    """Return a pair: those with a score of 0.9 and more are the same question."""
    score = 0.5 + (at * 1_607 % 4_001) / 8_002
    subject = Subject(namespace=namespace, embedder="toy", decider="cosine+guards-3")
    texts = (f"asked {at} {namespace}", f"stored {at} {namespace}")
    return pair(*texts, score=score, subject=subject, at=asked_at)


def label(store: Store, count: int, *, wrong: int = 0, at: float = NOW) -> None:
    """Have labels of pairs that are the same from 0.9 on, but for so many of the best."""
    made = []
    for number in range(count):
        one = drawn(number, asked_at=at)
        same = (one.score or 0.0) >= 0.9 and number >= wrong
        made.append(
            pairs.label_record(
                one, one.labelled(same=same, labeller="a test", at=1.0, sampled=True)
            )
        )
    store.shelf.keep(pairs.LABELS, made, most=pairs.LABELS_KEPT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "rag.db")
    store.put(make_entry("k"), None, store.sequence())
    yield store
    store.close()


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make ``--judge labels:never`` name a judge that gives no verdict, and return its prompts."""
    prompts: list[str] = []

    def never(prompt: str) -> str:
        prompts.append(prompt)
        return "I cannot tell."

    module = types.ModuleType("labels")
    module.never = never  # type: ignore[attr-defined]  # a module made for a test
    monkeypatch.setitem(sys.modules, "labels", module)
    return prompts


def told(result: Result) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_a_bound_that_labels_prove_is_kept_and_holds_at_once(run: Run, store: SqliteStore) -> None:
    label(store, 4_000)
    result = run("tune", store.url, "--max-wrong", "0.01", "--json")
    (one,) = told(result)
    assert (result.exit_code, one["proved"], one["labelled"]) == (0, True, 4_000)
    (promise,) = tuning.promises(store)
    assert promise.subject == SUBJECT
    assert 0.88 < promise.threshold <= 0.91
    assert "At most 1 % of the semantic hits" in str(one["statement"])
    shown = run("tune", store.url)
    assert "to choose from" in shown.stdout and "4,000 labelled, 0 wait" in shown.stdout
    doctor = run("doctor", store.url).stdout
    assert "At most 1 % of the semantic hits in namespace 'default'" in doctor


def test_what_is_not_proved_is_told_and_exits_with_1(run: Run, store: SqliteStore) -> None:
    label(store, 40)
    result = run("tune", store.url, "--json")
    (one,) = told(result)
    assert (result.exit_code, one["proved"]) == (1, False)
    assert "to prove at most 1 % wrong" in str(one["statement"])
    assert not list(tuning.promises(store))
    doctor = run("doctor", store.url).stdout
    assert "nothing is proved: 40 pairs are labelled, 0 wait" in doctor


def test_without_pairs_it_says_how_to_get_some(run: Run, store: SqliteStore) -> None:
    result = run("tune", store.url)
    assert result.exit_code == 1
    assert "No pairs were drawn yet" in result.stdout


def test_a_withdrawn_promise_is_told_by_doctor(run: Run, store: SqliteStore) -> None:
    label(store, 4_000)
    run("tune", store.url)
    (promise,) = tuning.promises(store)
    gone = pairs.withdrawal_record(promise, "9 of 10 judged hits were wrong")
    store.shelf.keep(pairs.PROMISES, [gone], most=9)
    doctor = run("doctor", store.url).stdout
    assert "The promise was withdrawn: 9 of 10 judged hits were wrong" in doctor


def test_after_a_withdrawal_only_what_was_drawn_since_bears_a_new_promise(
    store: SqliteStore,
) -> None:
    label(store, 4_000)
    first = tuning.tune(store, SUBJECT, max_wrong=0.01, now=NOW + 5.0).result
    assert isinstance(first, Promise)
    gone = pairs.withdrawal_record(first, "9 of 10 judged hits were wrong")
    store.shelf.keep(pairs.PROMISES, [gone], most=9)
    again = tuning.tune(store, SUBJECT, max_wrong=0.01, now=NOW + 6.0)
    assert isinstance(again.result, Refusal)
    assert (again.points, tuning.known(store)) == ([], [])
    label(store, 4_000, at=NOW + 6.0)
    assert isinstance(tuning.tune(store, SUBJECT, max_wrong=0.01, now=NOW + 7.0).result, Promise)


def test_one_namespace_may_be_meant(run: Run, store: SqliteStore) -> None:
    waiting = [drawn(at, namespace=name) for at in range(3) for name in ("shop", "wiki")]
    store.shelf.keep(pairs.WAITING, without_entry(waiting), most=99)
    both = told(run("tune", store.url, "--json"))
    one = told(run("tune", store.url, "--json", "--namespace", "wiki"))
    assert (len(both), len(one), one[0]["waiting"]) == (2, 1, 3)


def without_entry(waiting: list[Pair]) -> list[pairs.Record]:
    """Return records of pairs whose entry need not be there."""
    return [
        pairs.Record(key=one.key, body=one.body, tenant=one.tenant)
        for one in pairs.waiting(waiting)
    ]


def test_a_person_labels_one_by_one_and_may_stop(run: Run, store: SqliteStore) -> None:
    store.shelf.keep(pairs.WAITING, pairs.waiting([drawn(at) for at in range(4)]), most=99)
    result = run("tune", store.url, "--by-hand", typed="y\nwhat?\nn\nq\n")
    assert "asked   asked 3 default" in result.stdout
    assert "2 labelled, 2 wait" in result.stdout
    labels = sorted((one.stored, one.same, one.labeller) for one in tuning.labels(store))
    assert labels == [
        ("stored 2 default", False, "a person"),
        ("stored 3 default", True, "a person"),
    ]


def test_what_no_judge_could_label_a_person_is_asked_first(run: Run, store: SqliteStore) -> None:
    store.shelf.keep(pairs.WAITING, pairs.waiting([drawn(1)]), most=9)
    store.shelf.keep(pairs.UNSAID, pairs.waiting([drawn(2)]), most=9)
    assert "0 labelled, 1 wait, 1 for a person (--by-hand)" in run("tune", store.url).stdout
    result = run("tune", store.url, "--by-hand", "--json", typed="y\nq\n")
    assert [one.stored for one in tuning.labels(store)] == ["stored 2 default"]
    assert '"unsaid": 0' in result.stdout


def test_a_judge_that_says_nothing_labels_nothing(
    run: Run, store: SqliteStore, judge: list[str]
) -> None:
    store.shelf.keep(pairs.WAITING, pairs.waiting([drawn(at) for at in range(4)]), most=99)
    result = run("tune", store.url, "--judge", "labels:never")
    assert (result.exit_code, len(judge)) == (1, 1)
    assert "gave no verdict on 4" in result.stderr
    assert "0 labelled, 4 wait" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "labels:never", "--by-hand"), "one of both labels"),
        (("--judge", "labels"), "give MODULE:NAME"),
        (("--judge", "labels:other"), "There is no labels:other"),
        (("--judge", ":other"), "There is no :other"),
        (("--judge", "broken_app:judge"), "broken_app cannot be imported (RuntimeError"),
        (("--max-wrong", "2"), "max_wrong"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    run: Run,
    store: SqliteStore,
    judge: list[str],
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "broken_app.py").write_text("raise RuntimeError('no key is set')")
    monkeypatch.syspath_prepend(str(tmp_path))
    label(store, 10)
    result = run("tune", store.url, *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_nobody_labels_for_a_bound_that_is_none(
    run: Run, store: SqliteStore, judge: list[str]
) -> None:
    store.shelf.keep(pairs.WAITING, pairs.waiting([drawn(1)]), most=9)
    result = run("tune", store.url, "--max-wrong", "2", "--judge", "labels:never")
    assert (result.exit_code, judge) == (2, [])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_choice_is_drawn(run: Run, store: SqliteStore, tmp_path: Path, ending: str) -> None:
    label(store, 1_000)
    picture = tmp_path / f"choice.{ending}"
    run("tune", store.url, "--plot", str(picture))
    assert picture.stat().st_size > 5_000


def by_verifier(store: Store) -> None:
    """Have labels that a verifier scored all alike, and cosine as they are; one pair has a trap."""
    subject = Subject(embedder="toy", decider="a verifier+guards-3")
    made = []
    for number in range(40):
        same = number % 2 == 0
        texts = (f"asked of thing {number}", f"asked about thing {number}")
        if number == 1:
            texts = ("Can I pay in 3 parts?", "Can I pay in 4 parts?")
        one = pair(*texts, score=0.9, subject=subject, at=NOW)
        one = msgspec.structs.replace(one, similarity=0.95 if same or number == 1 else 0.6)
        label = one.labelled(same=same, labeller="a test", at=1.0, sampled=True)
        made.append(pairs.label_record(one, label))
    store.shelf.keep(pairs.LABELS, made, most=pairs.LABELS_KEPT)


def test_cosine_and_guards_are_shown_beside_a_verifier(
    run: Run, store: SqliteStore, tmp_path: Path
) -> None:
    by_verifier(store)
    picture = tmp_path / "choice.svg"
    shown = run("tune", store.url, "--max-wrong", "0.1", "--plot", str(picture)).stdout
    assert "none by this verifier alone, 52.5% with the cosine counted at 5," in shown
    assert "50.0% by cosine and guards (verifier=None)" in shown
    for line in ("cosine and guards instead", "the same, cosine counted at 5", "counted at 20"):
        assert line in picture.read_text(encoding="utf-8")
    whole = run("tune", store.url, "--max-wrong", "0.1", "--json").stdout
    assert '"points_by_cosine":[{"threshold":0.95,"pairs":40,"hits":20,"wrong":0' in "".join(
        whole.split()
    )


def test_what_the_cosine_would_add_is_shown_where_guards_see_a_difference_in_all(
    run: Run, store: SqliteStore
) -> None:
    subject = Subject(embedder="toy", decider="a verifier+guards-3")
    one = pair("Can I pay in 3 parts?", "Can I pay in 4 parts?", score=0.9, subject=subject)
    made = pairs.label_record(one, one.labelled(same=True, labeller="a test", at=1.0, sampled=True))
    store.shelf.keep(pairs.LABELS, [made], most=pairs.LABELS_KEPT)
    shown = run("tune", store.url).stdout
    assert "100.0% by this verifier alone" in shown
    assert "none by cosine and guards (verifier=None)" in shown


def test_nothing_is_shown_beside_cosine_itself(run: Run, store: SqliteStore) -> None:
    label(store, 100)
    assert "verifier=None" not in run("tune", store.url).stdout


def test_what_is_shown_is_what_is_promised_where_the_cosine_counts(
    run: Run, store: SqliteStore
) -> None:
    subject = Subject(embedder="toy", decider="a verifier+guards-3")
    made = []
    for number in range(900):
        same = number % 2 == 0
        one = pair(
            f"asked {number}", f"stored {number}", subject=subject, at=NOW,
            score=0.6 + (number * 7919 % 900) / 9_000,
        )  # fmt: skip
        one = msgspec.structs.replace(one, similarity=1.0 if same else 0.5)
        label = one.labelled(same=same, labeller="a test", at=1.0, sampled=True)
        made.append(pairs.label_record(one, label))
    store.shelf.keep(pairs.LABELS, made, most=pairs.LABELS_KEPT)
    tuned = tuning.tune(store, subject, max_wrong=0.05, now=NOW)
    assert isinstance(tuned.result, Promise)
    assert tuned.weight == tuned.result.similarity_weight > 0
    assert tuned.points == tuned.by_weight[tuned.weight] != tuned.by_weight[0.0]
    assert (
        f"the cosine counted at {tuned.weight:g}"
        in run("tune", store.url, "--max-wrong", "0.05").stdout
    )


def test_cosine_and_guards_are_proved_with_the_whole_of_delta(store: SqliteStore) -> None:
    label(store, 4_000)
    tuned = tuning.tune(store, SUBJECT, max_wrong=0.01, now=NOW)
    assert isinstance(tuned.result, Promise)
    alone = prove(
        tuning.labels(store), SUBJECT, max_wrong=0.01, entries=1, data=tuning.DATA, made_at=NOW,
        delta=tuned.result.delta,
    )  # fmt: skip
    assert (tuned.result, tuned.weight, dict(tuned.by_weight)) == (alone, 0.0, {})


def test_other_weights_on_the_same_labels_are_another_attempt(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_verifier(store)
    subject = Subject(embedder="toy", decider="a verifier+guards-3")

    def number() -> int:
        tuning.tune(store, subject, max_wrong=0.1, now=NOW)
        records = store.shelf.kept(pairs.PROMISES, pairs.PROMISES_KEPT)
        return pairs.attempt_after(records, subject, 0.1, "others").number - 1

    assert (number(), number()) == (1, 1)
    monkeypatch.setattr(tuning, "WEIGHTS", (0.0, 7.0))
    assert number() == 2


def test_a_picture_that_cannot_be_drawn_is_told(
    run: Run, store: SqliteStore, tmp_path: Path
) -> None:
    label(store, 10)
    result = run("tune", store.url, "--plot", str(tmp_path / "choice.xyz"))
    assert (result.exit_code, "cannot be drawn" in result.stderr) == (2, True)


def test_two_namespaces_are_known_apart(store: SqliteStore) -> None:
    label(store, 5)
    store.shelf.keep(pairs.WAITING, without_entry([drawn(1, namespace="shop")]), most=9)
    assert [(one.subject.namespace, one.labelled, one.waiting) for one in tuning.known(store)] == [
        ("default", 5, 0),
        ("shop", 0, 1),
    ]
    tuned = tuning.tune(store, SUBJECT, max_wrong=0.5, now=1.0)
    assert not isinstance(tuned.result, Promise)


def test_who_tries_again_and_again_has_no_more_chances(store: SqliteStore) -> None:
    """Each attempt on other labels takes a smaller part of the chance of a false promise."""
    deltas = []
    for count in (1_000, 1_000, 1_500, 2_000):
        label(store, count)
        result = tuning.tune(store, SUBJECT, max_wrong=0.05, now=1.0).result
        assert isinstance(result, Promise)
        deltas.append(result.delta)
    first, again, second, third = deltas
    assert first == again > second > third
    assert first + second + third < 0.05
    assert len(list(tuning.promises(store))) == 1
