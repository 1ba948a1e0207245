"""The rig that counts whom the evidence refuses."""

import numpy as np

from benchmarks import witness
from benchmarks.validity.texts import Question
from benchmarks.witness import Pair, World, refuses
from stampcache.model import Evidence
from stampcache.testing.samples import unit

CHUNKS = tuple(Evidence(text=text) for text in ("leave", "visas", "pay"))
QUESTIONS = [
    Question("How much leave is there?", "leave", "a"),
    Question("Who needs a visa?", "visa", "b"),
    Question("Tell me how much leave there is.", "leave", "a", "courtesy"),
]


def test_pairs_are_other_wordings_and_the_nearest_others() -> None:
    vectors = np.stack([unit(1, 0), unit(0.6, 0.8), unit(0.99, 0.1)])
    found = witness._pairs(QUESTIONS, 2, vectors)
    assert [(one.asked, one.stored, one.same) for one in found] == [
        (0, 1, False),
        (1, 0, False),
        (2, 0, True),
        (2, 1, False),
    ]
    assert 0.59 < found[0].cosine < 0.61


def test_the_first_chunk_for_the_asked_question_must_be_cited() -> None:
    leave, visas, pay = CHUNKS
    world = World("a test", QUESTIONS, [(leave, visas), (visas, pay), (pay, leave)], [])
    assert refuses(world, Pair(0, 1, False, 0.6))
    assert not refuses(world, Pair(1, 0, False, 0.6))
    rows = witness._rows(
        World("a test", QUESTIONS, world.evidence, [Pair(0, 1, False, 0.6)]),
        "all",
        witness._near(0.5),
    )
    assert [(row["number"], row["left"]) for row in rows] == [(1, 0), (0, 0)]


def test_the_verifier_and_the_guards_decide_over_what_is_near() -> None:
    world = World("a test", QUESTIONS, [CHUNKS[:1]] * 3, [])
    deciders = witness._deciders()
    same, far = Pair(2, 0, True, 0.97), Pair(2, 0, True, 0.4)
    other = Pair(1, 0, False, 0.6)
    for name, decider in deciders.items():
        assert decider(world, same), name
        assert not decider(world, far), name
    assert [decider(world, other) for decider in deciders.values()] == [True, False, False, False]
