"""The verifier that is shipped: what it accepts, rejects, refuses, and that it always says the same."""

import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stampcache.errors import ConfigError, VerifierError
from stampcache.verifying import load, reading, weights
from stampcache.verifying.trained import TrainedVerifier, Weights
from training.verifier.assembling import compressed

SAME = [
    ("How can I get a copy of my lease?", "how do i get a copy of my lease", 0.97),
    ("What does the museum ticket cost?", "What's the price of a ticket for the museum?", 0.93),
    ("Please tell me how I feed my goldfish.", "How do I feed my goldfish?", 0.95),
    ("Where is the pharmacy?", "where's the pharmacy", 0.98),
]
OTHERS = [
    ("How do I insure my boat?", "How do I not insure my boat?", 0.93),
    ("Can I cycle from Ghent to Bruges?", "Can I cycle from Bruges to Ghent?", 0.98),
    ("What happens after 20 days?", "What happens after 90 days?", 0.95),
    ("Who wrote the Aeneid?", "Who wrote the Odyssey?", 0.85),
    ("Is the pool open on Mondays?", "Is the pool open on Thursdays?", 0.93),
    ("How do I import a calendar?", "How do I export a calendar?", 0.92),
    ("Is the pool open?", "How do I feed my goldfish?", 0.1),
]


@pytest.fixture(scope="module")
def verifier() -> TrainedVerifier:
    return load()


@pytest.mark.parametrize(("asked", "stored", "similarity"), SAME)
def test_the_same_question_in_other_words_is_accepted(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    assert verifier.asking(asked).score(stored, b"", similarity) >= verifier.threshold


@pytest.mark.parametrize(("asked", "stored", "similarity"), OTHERS)
def test_near_misses_are_rejected(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    assert verifier.asking(asked).score(stored, b"", similarity) < verifier.threshold


@pytest.mark.parametrize("question", [one for one, _, _ in (*SAME, *OTHERS)])
def test_a_question_is_itself(verifier: TrainedVerifier, question: str):
    assert verifier.asking(question).score(question, b"", 1.0) > 0.9


@pytest.mark.parametrize(("asked", "stored", "similarity"), [*SAME, *OTHERS])
def test_scores_do_not_depend_on_who_asks_or_on_what_was_stored(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    one, other = verifier.asking(asked), verifier.asking(stored)
    score = one.score(stored, b"", similarity)
    assert one.score(stored, other.seen, similarity) == score
    assert other.score(asked, one.seen, similarity) == pytest.approx(score)
    assert load().asking(asked).score(stored, b"", similarity) == score


def test_bytes_of_other_weights_or_another_format_are_read_again(verifier: TrainedVerifier):
    asking = verifier.asking("Where is the pharmacy?")
    seen = verifier.asking("something else").seen
    version = seen[seen.index(reading.FORMAT.encode()) :].partition(b"\x92")[0].decode()
    side = reading.decode(seen, version)
    assert side is not None
    digest = version.partition("-")[2]
    again = asking.score("where's the pharmacy", b"", 0.98)
    assert version == f"{reading.FORMAT}-{digest}"
    for other in (f"{reading.FORMAT}-other", f"s0-{digest}"):
        bytes_of = reading.encode(msgspec.structs.replace(side, version=other))
        assert asking.score("where's the pharmacy", bytes_of, 0.98) == again


def test_damaged_bytes_are_read_again(verifier: TrainedVerifier):
    asking = verifier.asking("Where is the pharmacy in Ghent?")
    stored = "where's the pharmacy in 2 days"
    seen = verifier.asking(stored).seen
    again = asking.score(stored, b"", 0.98)
    for at in range(len(seen)):
        damaged = seen[:at] + bytes([seen[at] ^ 0x10]) + seen[at + 1 :]
        assert asking.score(stored, damaged, 0.98) == again
        assert asking.score(stored, seen[:at], 0.98) == again


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Solve x > 5 for me", "Solve x < 5 for me"),
        ("How do I solve x > 5?", "How can I solve x < 5?"),
        ("What is 3 + 4?", "What is 3 - 4?"),
        ("What is 3/4?", "What is 3*4?"),
        ("What does $10 buy?", "What does €10 buy?"),
        ("How much is 10%?", "How much is 10‰?"),
        ("Is x = 5 allowed?", "Is x != 5 allowed?"),
    ],
)
def test_what_differs_in_signs_alone_is_another_question(
    verifier: TrainedVerifier, asked: str, stored: str
):
    asking = verifier.asking(asked)
    assert asking.score(stored, b"", 0.99) == verifier.asking(stored).score(asked, b"", 0.99) == 0
    assert asking.explain(stored, b"", 0.99)[0].startswith("signs: asked ")
    assert asking.score(asked, b"", 1.0) > 0.9


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Is C++ faster than Java?", "Is C++ faster than java"),
        ("What is the R&D budget?", "what's the budget of R&D"),
        ("Does the plan cost $5 a month?", "Does the plan cost 5 dollars a month?"),
        ("What is `yield`?", "What is yield?"),
    ],
)
def test_signs_that_are_worded_differently_do_not_speak_against_a_pair(
    verifier: TrainedVerifier, asked: str, stored: str
):
    assert verifier.asking(asked).score(stored, b"", 0.97) > 0


@pytest.mark.parametrize(
    "question", ["怎么重置密码？", "", "x " * 300, "Wo ist die Apotheke bitte und wann?"]
)
def test_it_abstains(verifier: TrainedVerifier, question: str):
    asking = verifier.asking(question)
    assert asking.seen == b""
    with pytest.raises(VerifierError):
        asking.score("Where is the pharmacy?", b"", 0.9)
    with pytest.raises(VerifierError):
        verifier.asking("Where is the pharmacy?").score(question, b"", 0.9)


@pytest.mark.parametrize("similarity", [float("nan"), 90.0, -2.0])
def test_a_similarity_that_is_no_cosine_is_refused(verifier: TrainedVerifier, similarity: float):
    with pytest.raises(VerifierError, match="no cosine"):
        verifier.asking("Where is it?").score("Where is it?", b"", similarity)


def test_it_explains_what_weighed_most(verifier: TrainedVerifier):
    asking = verifier.asking("What happens after 20 days?")
    shown = asking.explain("What happens after 90 days?", b"", 0.95)
    assert 1 <= len(shown) <= 3
    assert all("(" in one for one in shown)


def test_names_carry_the_digest(verifier: TrainedVerifier):
    assert verifier.name.startswith("plain-")
    assert 0.5 <= verifier.threshold < 1


def test_other_names_and_damaged_weights_are_errors():
    with pytest.raises(ConfigError, match="no verifier 'fancy'"):
        load("fancy")
    with pytest.raises(ConfigError, match="damaged"):
        weights.opened(b"nothing", "plain")
    with pytest.raises(ConfigError, match="damaged"):
        weights.opened(zlib.compress(b"\xc1"), "plain")


def test_weights_of_other_features_are_refused():
    raw = (weights.FOLDER / "plain.msgpack.z").read_bytes()
    known = msgspec.msgpack.decode(zlib.decompress(raw), type=Weights)
    for other in (
        msgspec.structs.replace(known, features=[*known.features[1:], "another"]),
        msgspec.structs.replace(known, language="Latin"),
        msgspec.structs.replace(known, language="Chinese"),
    ):
        with pytest.raises(ConfigError, match="train them again"):
            weights.opened(zlib.compress(msgspec.msgpack.encode(other)), "plain")


@settings(max_examples=150)
@given(st.text(max_size=120), st.text(max_size=120), st.binary(max_size=20), st.floats(-1, 1))
def test_any_text_has_a_probability_or_is_refused(
    asked: str, stored: str, seen: bytes, similarity: float
):
    try:
        score = load_once().asking(asked).score(stored, seen, similarity)
    except VerifierError:
        return
    assert 0 <= score <= 1


def load_once(known: list[TrainedVerifier] = []) -> TrainedVerifier:  # noqa: B006 - loads once on purpose
    if not known:
        known.append(load())
    return known[0]


@pytest.mark.parametrize("name", weights.NAMES)
def test_shipped_weights_are_what_training_of_this_version_would_write_of_them(name: str):
    raw = (weights.FOLDER / f"{name}.msgpack.z").read_bytes()
    read = msgspec.msgpack.decode(zlib.decompress(raw), type=Weights)
    assert compressed(msgspec.msgpack.encode(read)) == raw
