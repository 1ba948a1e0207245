"""The training: packed trees are the fitted ones, splits keep questions together, pages are in order."""

import random
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import HistGradientBoostingClassifier

from stampcache.verifying.trees import Trees, probability
from training.verifier import corrupting, fitting, rewording, sources

CHANCE = np.random.default_rng(3)
ROWS = CHANCE.normal(size=(400, 6)).astype(np.float32)
SAME = (ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2] > 0.2) | (ROWS[:, 3] > 1.5)


def test_packed_trees_are_the_fitted_ones():
    fitted = HistGradientBoostingClassifier(max_iter=12, max_depth=4, min_samples_leaf=5)
    fitted.fit(ROWS, SAME)
    packed = Trees(fitting.packed(fitted, 1.0, 0.0))
    margins = [packed.margin(row) for row in ROWS.tolist()]
    assert margins == pytest.approx(fitted.decision_function(ROWS), abs=1e-5)


def test_a_fit_is_repeated_exactly():
    weights = np.ones(len(SAME), dtype=np.float32)
    fits = [
        fitting.packed(fitting.model([0] * 6).fit(ROWS, SAME, sample_weight=weights), 1.0, 0.0)
        for _ in range(2)
    ]
    assert fits[0] == fits[1]


def test_calibration_gives_shares():
    margin = np.repeat([-2.0, 0.0, 2.0], 200)
    same = np.concatenate([np.arange(200) < share for share in (20, 100, 180)])
    slope, shift = fitting.calibration(margin, same, np.ones(600, dtype=np.float32))
    assert probability(2.0, slope, shift) == pytest.approx(0.9, abs=0.03)


def test_questions_that_are_linked_are_in_one_fold():
    pairs = [("a", "b", ""), ("b", "c", ""), ("d", "e", "x"), ("f", "g", "x"), ("h", "i", "")]
    groups = fitting.components(pairs)
    assert groups[0] == groups[1] and groups[2] == groups[3]
    assert len({*groups.tolist()}) == 3
    folds = fitting.folds(groups, 1)
    assert folds[0] == folds[1] and folds[2] == folds[3]


def test_groups_of_our_own_are_whole():
    groups = sources.groups()
    assert len(groups) > 300
    assert all(len(one.same) >= 2 and one.others for one in groups)
    counted = Counter(text for one in groups for text in {*one.same, *one.others})
    assert [text for text, count in counted.items() if count > 1] == []


def test_the_same_seed_makes_the_same_pairs():
    substituting = corrupting.Substituting({"card": ["ticket"]}, ["Kafka"])
    questions = ["How do I block my card in Paris after 3 days?", "What is the fee from A to B?"]
    made = [[*sources.made(questions, "own", substituting, 1)] for _ in range(2)]
    assert made[0] == made[1]
    assert {one.same for one in made[0]} == {True, False}
    assert all(one.origin in questions for one in made[0])


@pytest.mark.parametrize(
    ("change", "text", "wanted"),
    [
        (corrupting.turned, "From Ghent to Bruges?", "From Bruges to Ghent?"),
        (corrupting.negated, "Do I not pay?", "Do I pay?"),
        (rewording.digits, "two cards", "2 cards"),
        (rewording.keywords, "What is the fee for a lost card?", "What fee lost card"),
        (rewording.led, "How do I pay a fine in Spain?", "In spain, how do I pay a fine?"),
    ],
)
def test_changes(change: rewording.Rewording, text: str, wanted: str):
    assert change(text, random.Random(1)) == wanted
