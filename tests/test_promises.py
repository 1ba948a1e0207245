"""Both faces over both stores: hits by meaning under a promise, and what a cache learns of them."""

import pytest

import stampcache
from stampcache import (
    Answer,
    ConfigError,
    Evidence,
    Hit,
    Level,
    Miss,
    Reason,
    Request,
    Scope,
    pairs,
)
from stampcache.adapters.front import Front
from stampcache.adapters.reporting import CacheFields
from stampcache.calibration import Promise, Refusal
from stampcache.core import Work
from stampcache.effects import Flow
from stampcache.testing import AngleEmbedder, FailingStore, FakeClock, ScriptedVerifier
from stampcache.verifying import load
from tests.faces import Face, Open
from tests.promised import promised

STORED = "How do I reset my password?"
SAME = "how can I reset my password"
ALSO = "please tell me how to reset the password"
FAR = "Which cafes are open?"
ANGLES = {STORED: 0.0, SAME: 5.0, ALSO: 20.0, FAR: 80.0}


def asked(question: str) -> Request:
    return Request(question=question, model="m")


@pytest.fixture
def embedder() -> AngleEmbedder:
    return AngleEmbedder(ANGLES)


def promise(face: Face, **options: object) -> None:
    """Have the store of a cache hold a promise for it."""
    stamp = face.core.intake.stamps.embedder
    made = promised(embedder=stamp, entries=1, **options)  # type: ignore[arg-type]  # options of it
    face.core.store.shelf.keep(pairs.PROMISES, [pairs.promise_record(made)], most=9)
    face.core.learning.look_at(face.core.ports)


def said(face: Face) -> Promise | Refusal | None:
    return face._wait(face.cache.promise())  # type: ignore[no-any-return]  # typed loosely there


def test_one_who_asks_for_a_bound_gets_no_hit_by_meaning_until_it_is_proved(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, max_wrong=0.01)
    face.fill(asked(STORED), "Click on reset.")
    outcome = face.lookup(asked(SAME))
    assert (outcome.reason, "tune" in outcome.detail) == (Reason.UNPROVED, True)
    assert isinstance(said(face), Refusal)
    assert isinstance(face.lookup(asked(STORED)), Hit), "exact hits need no promise"
    promise(face, threshold=0.99)
    hit = face.lookup(asked(SAME))
    assert isinstance(hit, Hit) and hit.level is Level.SEMANTIC
    assert face.lookup(asked(ALSO)).reason is Reason.BELOW_THRESHOLD
    assert "At most 1 %" in str(said(face))


def test_a_promise_holds_in_its_namespace(open_face: Open, embedder: AngleEmbedder) -> None:
    face = open_face(embedder=embedder, max_wrong=0.01)
    promise(face, threshold=0.99, namespace="shop")
    for namespace, reason in (("shop", Reason.SAME_QUESTION), ("wiki", Reason.UNPROVED)):
        scope = Scope(namespace=namespace)
        face.fill(Request(question=STORED, scope=scope))
        face.core.learning.look_at(face.core.ports)
        assert face.lookup(Request(question=SAME, scope=scope)).reason is reason


def test_without_a_bound_nothing_is_promised(open_face: Open, embedder: AngleEmbedder) -> None:
    assert said(open_face(embedder=embedder, calibration=0.9)) is None


def test_a_judge_labels_what_was_drawn_and_withdraws_what_no_longer_holds(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    prompts: list[str] = []

    def judge(prompt: str) -> str:
        prompts.append(prompt)
        return "never"

    face = open_face(embedder=embedder, max_wrong=0.05, sample=1.0, judge=judge)
    face.fill(asked(STORED), "Click on reset.")
    promise(face, threshold=0.9, max_wrong=0.05)
    assert isinstance(face.lookup(asked(SAME)), Hit)
    face.lookup(asked(FAR))
    work = face.work()
    assert (work.unlabelled, work.same, work.not_same) == (2, 0, 0), "it gave no verdict"
    assert len(prompts) == 1
    waiting = pairs.pairs_of(face.core.store.shelf.kept(pairs.WAITING, 9))
    assert sorted((one.asked, one.served) for one in waiting) == sorted(
        [(SAME, True), (FAR, False)]
    )


def test_the_cosine_counts_beside_the_score_where_that_is_what_was_promised(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    verifier = ScriptedVerifier({(SAME, STORED): 0.6, (ALSO, STORED): 0.6})
    face = open_face(embedder=embedder, verifier=verifier, max_wrong=0.01)
    face.fill(asked(STORED), "Click on reset.")
    promise(face, threshold=0.5, decider="scripted+guards-3", similarity_weight=20.0)
    assert isinstance(face.lookup(asked(SAME)), Hit)
    outcome = face.lookup(asked(ALSO))
    assert outcome.reason is Reason.VERIFIER
    assert "0.6000 before similarity 0.9397 counted at 20" in outcome.detail


def test_pairs_of_who_asks_a_verifier_from_another_cosine_on_are_of_another_decider(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    verifier = ScriptedVerifier({(SAME, STORED): 0.9})
    for calibration, decider in ((0.9, "scripted+guards-3+from-0.9"), (None, "scripted+guards-3")):
        face = open_face(embedder=embedder, verifier=verifier, calibration=calibration, sample=1.0)
        assert face.core.intake.terms.comparing.decider == decider
    alone = open_face(embedder=embedder, calibration=0.9, sample=1.0)
    assert alone.core.intake.terms.comparing.decider == "cosine+guards-3"


TWO = {"best": 0.0, "nearest": 36.0, "asked": 37.0}


def of_two(open_face: Open, cited: str) -> Face:
    """Return a cache with two candidates: the better one by its score is the farther one."""
    verifier = ScriptedVerifier(
        {("asked", "best"): 0.9, ("asked", "nearest"): 0.7, ("nearest", "best"): 0.1}
    )
    face = open_face(embedder=AngleEmbedder(TWO), verifier=verifier, max_wrong=0.01, sample=1.0)
    for name, text in (("best", cited), ("nearest", "here")):
        chunk = Evidence(source="a.md", text=text)
        face.fill(Request(question=name, model="m", evidence=(chunk,)), name)
    promise(face, threshold=0.5, decider="scripted+guards-3", similarity_weight=20.0)
    return face


def test_what_is_promised_of_the_best_candidate_is_not_given_to_another(open_face: Open) -> None:
    face = of_two(open_face, "here")
    outcome = face.lookup(asked("asked"))
    assert (outcome.reason, "0.9000 before" in outcome.detail) == (Reason.VERIFIER, True)


def test_a_candidate_that_other_evidence_speaks_against_is_not_the_best(open_face: Open) -> None:
    face = of_two(open_face, "elsewhere")
    chunk = Evidence(source="a.md", text="here")
    hit = face.lookup(Request(question="asked", model="m", evidence=(chunk,)))
    assert isinstance(hit, Hit) and hit.entry.question == "nearest"


def test_reports_are_kept_as_labels(open_face: Open, embedder: AngleEmbedder) -> None:
    face = open_face(embedder=embedder, calibration=0.9, sample=0.0)
    entry_id = face.fill(asked(STORED), "Click on reset.")
    assert not face._wait(face.cache.report_good(entry_id)), "it was never served by meaning"
    face.lookup(asked(SAME))
    assert face._wait(face.cache.report_good(entry_id))
    (good,) = pairs.labels_of(face.core.store.shelf.kept(pairs.LABELS, 9))
    assert (good.asked, good.stored, good.same, good.sampled) == (SAME, STORED, True, False)
    assert face.report_bad(entry_id)
    (bad,) = pairs.labels_of(face.core.store.shelf.kept(pairs.LABELS, 9))
    assert not bad.same
    assert not face.report_bad(entry_id)


def test_of_an_entry_that_several_were_served_a_good_report_is_a_label_of_none(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, calibration=0.9, sample=1.0)
    entry_id = face.fill(asked(STORED), "Click on reset.")
    for question in (SAME, ALSO):
        assert isinstance(face.lookup(asked(question)), Hit)
    assert not face._wait(face.cache.report_good(entry_id)), "which one was it?"
    assert list(face.core.store.shelf.kept(pairs.LABELS, 9)) == []
    face.report_bad(entry_id)
    assert len(face.core.store.shelf.kept(pairs.LABELS, 9)) == 2


def test_a_bad_report_labels_what_was_drawn_of_its_entry_before_that_is_gone(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, calibration=0.9, sample=1.0)
    entry_id = face.fill(asked(STORED), "Click on reset.")
    face.core.learning.noticed.take()
    face.lookup(asked(SAME))
    assert face.report_bad(entry_id)
    (bad,) = pairs.labels_of(face.core.store.shelf.kept(pairs.LABELS, 9))
    assert (bad.asked, bad.same, bad.sampled, bad.served) == (SAME, False, True, True)
    assert face.core.store.shelf.kept(pairs.WAITING, 9) == []


def test_an_explanation_is_never_drawn(open_face: Open, embedder: AngleEmbedder) -> None:
    """What is told does not depend on a draw: below the threshold nothing more is looked at."""
    face = open_face(embedder=embedder, calibration=0.99, sample=1.0)
    face.fill(asked(STORED), "Click on reset.")
    face.fill(asked(FAR), "None.")
    face.core.learning.noticed.take()
    told = [check for check in face.explain(asked(ALSO)).checks if check.entry_id]
    assert len(told) == 1
    assert len(face.core.learning.noticed) == 0


def test_every_draw_of_a_popular_question_is_kept(embedder: AngleEmbedder) -> None:
    clock = FakeClock()
    cache = stampcache.open_cache(
        "memory://", embedder=embedder, calibration=0.9, sample=1.0, clock=clock
    )
    cache.update(asked(STORED), "Click on reset.")
    for _ in range(3):
        clock.advance(60.0)
        assert isinstance(cache.lookup(asked(SAME)), Hit)
    cache.core.learning.look_at(cache.core.ports)
    kept = pairs.pairs_of(cache.core.store.shelf.kept(pairs.WAITING, 9))
    assert [one.asked for one in kept] == [SAME] * 3


def test_a_doubtful_pair_is_put_to_the_judge_at_once_where_a_user_wants_that(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    verifier = ScriptedVerifier({(SAME, STORED): 0.4})

    def judge(prompt: str) -> str:
        raise ConnectionError("down")

    face = open_face(
        embedder=embedder, calibration=0.9, verifier=verifier, judge=judge, consult="now"
    )
    face.fill(asked(STORED), "Click on reset.")
    outcome = face.lookup(asked(SAME))
    assert outcome.reason is Reason.JUDGED
    assert "ConnectionError" in outcome.detail


def test_nothing_is_kept_of_a_tenant_that_is_forgotten(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, calibration=0.9, sample=1.0)
    with stampcache.scope(tenant="acme"):
        entry_id = face.fill(asked(STORED), "Click on reset.")
        face.lookup(asked(SAME))
    assert len(face.core.learning.noticed) == 1
    face._wait(face.cache.forget("acme"))
    assert (len(face.core.learning.noticed), face.core.learning.noticed.served(entry_id)) == (0, [])
    assert list(face.core.store.shelf.kept(pairs.WAITING, 9)) == []


def test_what_was_noticed_is_in_the_store_when_the_cache_is_closed(
    embedder: AngleEmbedder, tmp_path: object
) -> None:
    url = f"sqlite:///{tmp_path}/cache.db"
    with stampcache.open_cache(url, embedder=embedder, calibration=0.9, sample=1.0) as cache:
        cache.update(asked(STORED), "Click on reset.")
        cache.lookup(asked(SAME))
    with stampcache.open_cache(url) as cache:
        (pair,) = pairs.pairs_of(cache.core.store.shelf.kept(pairs.WAITING, 9))
    assert (pair.asked, pair.stored, pair.served) == (SAME, STORED, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_wrong": 0.0}, "above 0"),
        ({"max_wrong": 1.5}, "give a share"),
        ({"max_wrong": "1 %"}, "give a share"),
        ({"max_wrong": True}, "give a share"),
        ({"sample": -0.1}, "give a share"),
        ({"consult": "always"}, '"later" or "now"'),
        ({"consult": "now"}, "give judge="),
        ({"max_wrong": 0.01, "judge": str, "consult": "now"}, "one of both"),
        ({"max_wrong": 0.01, "calibration": 0.9}, "one of both"),
        ({"max_wrong": 0.01, "embedder": None}, "without embedder="),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    options: dict[str, object], said: str, embedder: AngleEmbedder
) -> None:
    given = {"embedder": embedder, **options}
    with pytest.raises(ConfigError, match=said):
        stampcache.open_cache("memory://", **given)  # type: ignore[arg-type]  # wrong on purpose


def test_a_store_that_fails_is_counted_and_costs_no_answer(embedder: AngleEmbedder) -> None:
    store = FailingStore()
    cache = stampcache.open_cache(store, embedder=embedder, max_wrong=0.01, sample=1.0)
    cache.update(asked(STORED), "Click on reset.")
    cache.lookup(asked(SAME))
    store.down = True
    assert cache.lookup(asked(SAME)).reason is Reason.STORE_ERROR
    assert cache.work() == Work()
    store.down = False
    assert cache.stats(everything=True).counters["error.labels"] == 1


def test_an_adapter_that_looks_again_or_explains_draws_one_pair(embedder: AngleEmbedder) -> None:
    clock = FakeClock()
    cache = stampcache.open_cache(
        "memory://", embedder=embedder, calibration=0.9, sample=1.0, verifier=load(), clock=clock
    )
    cache.update(asked(STORED), "Click on reset.")
    front = Front(cache.core, kind="test")
    ask = cache.core.intake.ask(asked(SAME), can_retrieve=False)
    assert not isinstance(ask, Miss)

    def read(answer: Answer, report: CacheFields) -> str:
        del report
        return answer.text

    def recheck(question: str) -> Flow[tuple[Evidence, ...]]:
        del question
        yield from ()
        return ()

    for _ in range(2):
        clock.advance(1.0)
        front.run(front.again(ask, recheck, read))
    assert "moved most by" in str(front.run(front.explain(ask)))
    assert len(cache.core.learning.noticed) == 0
    front.run(front.look(ask, read=read))
    assert len(cache.core.learning.noticed) == 1
