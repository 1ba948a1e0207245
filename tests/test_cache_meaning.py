"""Both faces over both stores: hits by meaning (cases B9, C, D, G, J11, P5)."""

import pytest

import stampcache
from stampcache import (
    Calibration,
    ConfigError,
    Evidence,
    Hit,
    Level,
    Miss,
    Outcome,
    Reason,
    Request,
    Stale,
    VerifierError,
)
from stampcache.calibration import MULTILINGUAL, StampCacheWarning
from stampcache.embedding import CANARIES
from stampcache.testing import AngleEmbedder, FakeClock, ScriptedReader, ScriptedVerifier
from stampcache.verifying import load
from tests.faces import Face, Open

STORED = "How do I reset my password?"
SAME = "how can I reset my password"
ALSO = "please tell me how to reset the password"
OPPOSITE = "How do I not reset my password?"
FAR = "Which cafes are open?"
ANGLES = {STORED: 0.0, SAME: 5.0, ALSO: 8.0, OPPOSITE: 1.0, FAR: 60.0}


def asked(question: str, evidence: tuple[Evidence, ...] | None = None) -> Request:
    return Request(question=question, model="m", evidence=evidence)


@pytest.fixture
def embedder() -> AngleEmbedder:
    return AngleEmbedder(ANGLES)


@pytest.fixture
def near(open_face: Open, embedder: AngleEmbedder) -> Face:
    """A cache in which the question STORED has been answered."""
    face = open_face(embedder=embedder, calibration=0.9)
    face.fill(asked(STORED), "Click on reset.")
    return face


def test_b9_a_paraphrase_hits_inside_a_tenant(near: Face) -> None:
    hit = near.lookup(asked(SAME))
    assert isinstance(hit, Hit)
    assert (hit.level, hit.reason) == (Level.SEMANTIC, Reason.SAME_QUESTION)
    assert hit.similarity == pytest.approx(0.9962, abs=1e-3)
    assert hit.entry.question == STORED
    with stampcache.scope(tenant="other"):
        assert near.served(asked(SAME)) is None


def test_c1_c8_a_threshold_is_a_cosine_and_a_loose_one_is_warned_of(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    with pytest.warns(StampCacheWarning, match="loose"):
        open_face(embedder=embedder, calibration=0.6)
    for wrong in (0.1, 95, -1):
        with pytest.raises(ConfigError, match="cosine similarity"):
            open_face(embedder=embedder, calibration=wrong)


def test_c8_higher_is_closer(open_face: Open, embedder: AngleEmbedder) -> None:
    strictly = open_face(embedder=embedder, calibration=0.9999)
    strictly.fill(asked(STORED))
    assert strictly.why(asked(SAME)) is Reason.BELOW_THRESHOLD
    assert strictly.why(asked(FAR)) is Reason.BELOW_THRESHOLD


class Recording(AngleEmbedder):
    """Keeps the texts that it was given."""

    def __init__(self) -> None:
        super().__init__(ANGLES)
        self.texts: list[str] = []

    def embed(self, texts: list[str]) -> object:  # type: ignore[override]
        self.texts += texts
        return super().embed(texts)


def test_c2_only_the_question_is_ever_embedded(open_face: Open) -> None:
    recording = Recording()
    face = open_face(embedder=recording, calibration=0.9)
    for request in (
        Request(question=f"  {STORED}\n", system="You are a bot.", params={"a": 1}, evidence=()),
        Request(question=SAME, prompt=f"Context: []\nQuestion: {SAME}", evidence=()),
        Request(question=SAME, system="Another.", evidence=()),
        Request(prompt='{"json": true}'),
        Request(question=ALSO, history=["hello"]),
        Request(question=ALSO, prompt=["hello", ALSO]),
    ):
        face.update(request, "x", outcome=face.lookup(request))
    assert recording.texts == [*CANARIES, STORED, SAME]


def test_c3_an_uncalibrated_embedder_serves_exact_hits_only(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder)
    assert face.why(asked(STORED)) is Reason.UNCALIBRATED
    face.update(asked(STORED), "x")
    assert face.served(asked(STORED)) == "x"
    assert face.why(asked(SAME)) is Reason.UNCALIBRATED
    assert embedder.calls == 0


PAIRS = [
    ("How do I turn on the light?", "How do I turn off the light?"),
    ("How long is the train from Paris to Rome?", "How long is the train from Rome to Paris?"),
    ("Is smoking allowed?", "Is smoking not allowed?"),
    ("What changed in Python 3.11?", "What changed in Python 3.12?"),
    ("What happened on 3 May?", "What happened on 4 May?"),
    ("How long is 5 km?", "How long is 5 miles?"),
    ("Who runs Microsoft?", "Who runs Nvidia?"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_c4_c5_c11_one_difference_is_enough_not_to_share(
    open_face: Open, one: str, other: str
) -> None:
    face = open_face(embedder=AngleEmbedder({one: 0.0, other: 0.1}), calibration=0.9)
    face.fill(asked(one))
    assert face.why(asked(other)) is Reason.GUARD
    face.fill(asked(other))
    assert face.served(asked(one)) == "answer"


def test_beside_the_multilingual_embedder_a_verifier_decides_in_its_language_alone(
    open_face: Open,
) -> None:
    angles = {
        "How do I pay?": 0.0, "How can I pay?": 5.0, "How do I not pay?": 7.0,
        "怎么付款？": 90.0, "请问怎么付款": 95.0, "为什么付款？": 92.0, "吃什么？": 130.0,
        "wie geht das": 90.0,
    }  # fmt: skip
    embedder = AngleEmbedder(angles)
    embedder.name = MULTILINGUAL
    face = open_face(embedder=embedder)
    face.fill(asked("How do I pay?"), "by card")
    face.fill(asked("怎么付款？"), "刷卡")

    assert face.served(asked("How can I pay?")) == "by card"
    assert "score" not in face.lookup(asked("How can I pay?")).trace[-1].detail
    assert face.served(asked("请问怎么付款")) == "刷卡"
    assert "score" in face.lookup(asked("请问怎么付款")).trace[-1].detail
    assert face.why(asked("How do I not pay?")) is Reason.GUARD
    assert face.why(asked("为什么付款？")) is Reason.VERIFIER
    assert face.why(asked("吃什么？")) is Reason.BELOW_THRESHOLD
    assert face.why(asked("wie geht das")) is Reason.UNCALIBRATED


def test_a_reading_verifier_of_ones_own_decides_in_all_languages(open_face: Open) -> None:
    angles = {"How do I pay?": 0.0, "How can I pay?": 5.0, "怎么付款？": 90.0, "付款吗": 110.0}
    embedder = AngleEmbedder(angles)
    embedder.name = MULTILINGUAL
    scores = {("How can I pay?", "How do I pay?"): 0.9, ("付款吗", "怎么付款？"): 0.8}
    reader = ScriptedReader(scores)
    face = open_face(embedder=embedder, verifier=reader)
    face.fill(asked("How do I pay?"), "by card")
    face.fill(asked("怎么付款？"), "刷卡")
    assert face.served(asked("How can I pay?")) == "by card"
    assert face.served(asked("付款吗")) == "刷卡"
    assert len(reader.compared) == 2


def test_what_a_verifier_saw_of_a_question_is_stored_with_it(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    reader = ScriptedReader({(SAME, STORED): 0.9, (ALSO, STORED): 0.2})
    face = open_face(embedder=embedder, calibration=0.9, verifier=reader)
    face.fill(asked(STORED), "Click on reset.")
    assert face.served(asked(SAME)) == "Click on reset."
    assert reader.compared == [(SAME, STORED, STORED.encode()[::-1])]
    outcome = face.lookup(asked(ALSO))
    assert (outcome.reason, outcome.detail) == (
        Reason.VERIFIER,
        "score 0.2000 is not in [0.5000, 1]",
    )


def test_a_strict_cache_raises_what_a_verifier_cannot_read(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    reader = ScriptedReader({}, unread=[STORED])
    face = open_face(embedder=embedder, calibration=0.9, verifier=reader, strict=True)
    with pytest.raises(VerifierError, match="cannot be read"):
        face.fill(asked(STORED))


def test_a_question_that_a_verifier_cannot_read_is_stored_all_the_same(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    reader = ScriptedReader({(SAME, STORED): 0.9}, unread=[STORED])
    face = open_face(embedder=embedder, calibration=0.9, verifier=reader)
    face.fill(asked(STORED), "Click on reset.")
    assert face.stats(everything=True).counters["error.verifier"] == 1
    assert face.served(asked(STORED)) == face.served(asked(SAME)) == "Click on reset."
    assert reader.compared == [(SAME, STORED, b"")]


def test_c5_a_verifier_decides_and_its_failure_means_no_hit(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    verifier = ScriptedVerifier({(SAME, STORED): 0.9, (ALSO, STORED): 0.2, (ALSO, SAME): 0.8})
    face = open_face(embedder=embedder, calibration=0.9, verifier=verifier)
    face.fill(asked(STORED), "first")
    assert face.served(asked(SAME)) == "first"
    assert face.why(asked(ALSO)) is Reason.VERIFIER
    face.update(asked(SAME), "second")
    assert face.served(asked(ALSO)) == "second"  # the nearest is rejected, the next is tried
    reordered = "password reset how do I"
    embedder._angles[reordered] = 4.0
    outcome = face.lookup(asked(reordered))
    assert isinstance(outcome, Miss) and outcome.reason is Reason.VERIFIER
    assert "no score is written" in outcome.detail
    assert face.stats(everything=True).counters["error.verifier"] == 2


def test_c10_a_reported_pair_is_gone_and_never_comes_back(near: Face) -> None:
    hit = near.lookup(asked(SAME))
    assert isinstance(hit, Hit)
    assert near.report_bad(hit.entry_id)
    assert near.served(asked(STORED)) is None
    near.update(asked(STORED), "Click on reset.")
    assert near.why(asked(SAME)) is Reason.REPORTED_BAD
    assert near.served(asked(ALSO)) is not None
    assert not near.report_bad(hit.entry_id)


def test_c13_thresholds_per_namespace(open_face: Open, embedder: AngleEmbedder) -> None:
    calibration = Calibration(0.9, namespaces={"law": 0.999})
    face = open_face(embedder=embedder, calibration=calibration)
    for namespace, served in (("faq", True), ("law", False)):
        with stampcache.scope(namespace=namespace):
            face.fill(asked(STORED))
            assert isinstance(face.lookup(asked(SAME)), Hit) is served


# -- D: conversation -------------------------------------------------------------------------------


def test_d3_my_name_never_crosses_users(open_face: Open) -> None:
    name, same = "What is my name?", "what's my name"
    face = open_face(embedder=AngleEmbedder({name: 0.0, same: 0.1}), calibration=0.9)
    with stampcache.scope(tenant="acme", audience="ann"):
        face.fill(asked(name), "Ann")
    with stampcache.scope(tenant="acme", audience="bob"):
        assert face.served(asked(name)) is None
        assert face.served(asked(same)) is None
    with stampcache.scope(tenant="acme", audience="ann"):
        assert face.served(asked(same)) == "Ann"


def test_d4_d8_the_same_words_after_another_conversation_never_share(near: Face) -> None:
    about = [[{"role": "user", "content": f"Tell me of {what}"}] for what in ("Rome", "Paris")]
    requests = [Request(question=STORED, model="m", history=history) for history in about]
    prompts = [Request(question=STORED, model="m", prompt=history) for history in about]
    for at, request in enumerate([*requests, *prompts]):
        assert not isinstance(near.lookup(request), Hit)
        near.fill(request, str(at))
    assert [near.served(one) for one in [*requests, *prompts]] == ["0", "1", "2", "3"]
    assert near.served(asked(STORED)) == "Click on reset."


def test_d5_o6_what_the_caller_passes_is_left_as_it_was(face: Face) -> None:
    history = [{"role": "user", "content": "hi"}]
    params: dict[str, object] = {"stop": ["a"], "temperature": 0}
    tools = [{"name": "search"}]
    request = Request(question="q", history=history, params=params, tools=tools)
    for _ in range(2):
        face.get_or_create(request, lambda: "answer")
    assert history == [{"role": "user", "content": "hi"}]
    assert params == {"stop": ["a"], "temperature": 0}
    assert tools == [{"name": "search"}]


# -- G: the embedder -------------------------------------------------------------------------------


def test_g2_g4_another_dimension_under_the_same_name_is_an_error(open_face: Open) -> None:
    face = open_face(embedder=AngleEmbedder(ANGLES), calibration=0.9)
    face.fill(asked(STORED))
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"vectors of 12 numbers, but .* of 66"):
            open_face(
                store=face.core.store, embedder=AngleEmbedder(ANGLES, room=10), calibration=0.9
            )
    assert face.served(asked(SAME)) == "answer"


def test_g8_another_embedder_sees_none_of_the_first_ones_vectors(open_face: Open) -> None:
    face = open_face(embedder=AngleEmbedder(ANGLES), calibration=0.9)
    face.fill(asked(STORED))
    renamed = AngleEmbedder(ANGLES, name="angles-2", room=10)
    other = open_face(store=face.core.store, embedder=renamed, calibration=0.9)
    assert other.why(asked(STORED)) is Reason.NOT_FOUND


def test_j11_a_request_is_embedded_once(near: Face, embedder: AngleEmbedder) -> None:
    embedder.calls = 0
    near.fill(asked(FAR))
    assert embedder.calls == 1
    assert near.served(asked(FAR)) == "answer"
    assert embedder.calls == 1
    near.get_or_create(asked("Where is the station?"), lambda: "There.")
    assert embedder.calls == 2


# -- evidence --------------------------------------------------------------------------------------

ONE, TWO = Evidence(source="one.md", text="1"), Evidence(source="two.md", text="2")


def test_f1_a_semantic_hit_needs_the_evidence_of_both_questions(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    documents = {STORED: [ONE], SAME: [ONE, TWO], ALSO: [TWO]}
    face = open_face(embedder=embedder, calibration=0.9)

    def look(question: str, *, retrieve: bool = True) -> Outcome:
        request = asked(question, tuple(documents[question]))
        return face.lookup(request, retrieve=documents.__getitem__ if retrieve else None)

    face.update(asked(STORED, (ONE,)), "x", outcome=look(STORED))
    assert isinstance(look(SAME), Hit)
    assert look(SAME, retrieve=False).reason is Reason.EVIDENCE_CHANGED
    same = face.lookup(asked(SAME, (ONE,)))  # without a retriever the very same chunks are needed
    assert isinstance(same, Hit) and same.level is Level.SEMANTIC
    assert look(ALSO).reason is Reason.EVIDENCE_CHANGED
    documents[STORED] = [TWO, ONE]
    assert look(SAME).reason is Reason.EVIDENCE_CHANGED
    assert isinstance(look(STORED), Stale)
    explained = face.explain(asked(SAME, (ONE,)), retrieve=documents.__getitem__)
    assert explained.outcome.reason is Reason.EVIDENCE_CHANGED


def test_a_retriever_that_fails_means_no_semantic_hit(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, calibration=0.9)
    face.update(asked(STORED, (ONE,)), "x")

    def fail(question: str) -> list[Evidence]:
        raise ConnectionError("no index")

    assert face.why(asked(SAME, (ONE,)), retrieve=fail) is Reason.EVIDENCE_UNKNOWN
    forgot = face.why(asked(SAME, (ONE,)), retrieve=lambda question: None)  # type: ignore[arg-type,return-value]
    assert forgot is Reason.EVIDENCE_UNKNOWN


def test_p5_a_semantic_hit_stores_nothing_and_extends_nothing(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    clock = FakeClock()
    face = open_face(embedder=embedder, calibration=0.9, clock=clock, ttl_s=100.0)
    face.fill(asked(STORED))
    clock.advance(90)
    assert face.served(asked(SAME)) == "answer"
    assert face.stats().entries == 1
    clock.advance(10)
    assert face.why(asked(SAME)) is Reason.NOT_FOUND
    assert face.why(asked(STORED)) is Reason.EXPIRED


def test_an_explanation_shows_what_moved_the_score_of_the_trained_verifier(
    open_face: Open, embedder: AngleEmbedder
) -> None:
    face = open_face(embedder=embedder, calibration=0.9, verifier=load())
    face.fill(asked(STORED), "Click on reset.")
    told = str(face.explain(asked(OPPOSITE)))
    assert "; moved most by " in told and "(-" in told
    outcome = face.lookup(asked(OPPOSITE))
    assert "moved" not in str(outcome.trace) and not isinstance(outcome, Hit)


def test_a_verifier_of_ones_own_need_not_explain(open_face: Open, embedder: AngleEmbedder) -> None:
    reader = ScriptedReader({(SAME, STORED): 0.9})
    face = open_face(embedder=embedder, calibration=0.9, verifier=reader)
    face.fill(asked(STORED), "Click on reset.")
    assert "score 0.9000" in str(face.explain(asked(SAME)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": "cosine"}, "tells its scores from"),
        ({"name": "cosine+x"}, "tells its scores from"),
        ({"threshold": 90.0}, "threshold is 90.0"),
        ({"threshold": float("nan")}, "give a probability"),
        ({"threshold": 0.0}, "above 0"),
    ],
)
def test_a_verifier_must_have_a_name_of_its_own_and_a_probability(
    options: dict[str, object], said: str, embedder: AngleEmbedder
) -> None:
    verifier = ScriptedVerifier({}, **options)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigError, match=said):
        stampcache.open_cache("memory://", embedder=embedder, verifier=verifier)
