"""Fits the trees and their calibration, grouped so that no question is on both sides of a split."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from stampcache.verifying.trees import Packed

DEPTH = 6
FOLDS = 5
Rows = NDArray[np.float32]
Flags = NDArray[np.bool_]


def components(pairs: Sequence[tuple[str, str, str]]) -> NDArray[np.int64]:
    """Return for each pair the number of the component of the question graph that it is in."""
    parent: dict[str, str] = {}

    def top(one: str) -> str:
        while parent.setdefault(one, one) != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for one, other, origin in pairs:
        parent[top(one)] = top(other)
        if origin:
            parent[top(one)] = top(origin)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(top(one), len(numbers)) for one, _, _ in pairs])


def folds(groups: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return the fold of each pair; a component is in one fold only."""
    order = np.random.default_rng(seed).permutation(int(groups.max()) + 1)
    return (order % FOLDS)[groups]


def model(monotone: Sequence[int], seed: int = 0) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=260, learning_rate=0.06, max_depth=DEPTH, max_leaf_nodes=31, min_samples_leaf=40,
        l2_regularization=3.0, max_features=0.4, monotonic_cst=list(monotone), random_state=seed,
        early_stopping=False,
    )  # fmt: skip


def margins(
    rows: Rows, same: Flags, weights: Rows, fold: NDArray[np.int64], monotone: Sequence[int]
) -> NDArray[np.float64]:
    """Return the margin of each pair from the fold's model that did not see it."""
    found = np.zeros(len(rows))
    for number in range(FOLDS):
        held = fold == number
        fitted = model(monotone).fit(rows[~held], same[~held], sample_weight=weights[~held])
        found[held] = fitted.decision_function(rows[held])
    return found


def calibration(margin: NDArray[np.float64], same: Flags, weights: Rows) -> tuple[float, float]:
    """Return slope and shift that turn held-out margins into log-odds (Platt 1999)."""
    line = LogisticRegression(C=1e6).fit(margin.reshape(-1, 1), same, sample_weight=weights)
    return float(line.coef_[0, 0]), float(line.intercept_[0])


def packed(fitted: HistGradientBoostingClassifier, slope: float, shift: float) -> Packed:
    """Return the trees of a fitted model in complete form (see `stampcache.verifying.trees`)."""
    # scikit-learn shows its trees nowhere else; the test of the packed form would notice a change
    found = [one[0].nodes for one in fitted._predictors]
    depth = max(int(nodes["depth"].max()) for nodes in found)
    trees = [_complete(depth) for _ in found]
    for tree, nodes in zip(trees, found, strict=True):
        _fill(tree, nodes, 0, 0, depth)
    return Packed(
        count=len(trees),
        depth=depth,
        features=np.concatenate([one.feature for one in trees]).tobytes(),
        limits=np.concatenate([one.limit for one in trees]).astype("<f4").tobytes(),
        leaves=np.concatenate([one.leaf for one in trees]).astype("<f4").tobytes(),
        start=float(fitted._baseline_prediction.ravel()[0]),
        slope=slope,
        shift=shift,
    )


class Complete(Struct):
    """One tree in complete form, to be filled in."""

    feature: NDArray[np.uint8]
    limit: Rows
    leaf: Rows


def _complete(depth: int) -> Complete:
    inner = 2**depth - 1
    limit = np.full(inner, np.inf, np.float32)
    return Complete(np.zeros(inner, np.uint8), limit, np.zeros(inner + 1, np.float32))


def _fill(tree: Complete, nodes: NDArray[np.void], at: int, place: int, left: int) -> None:
    """Copy a node to its place, and what is below it; a leaf that comes early is handed down."""
    node = nodes[at]
    if left == 0:
        tree.leaf[place - len(tree.feature)] = node["value"]
    elif node["is_leaf"]:
        _fill(tree, nodes, at, 2 * place + 1, left - 1)
    else:
        tree.feature[place] = node["feature_idx"]
        tree.limit[place] = _below(float(node["num_threshold"]))
        _fill(tree, nodes, int(node["left"]), 2 * place + 1, left - 1)
        _fill(tree, nodes, int(node["right"]), 2 * place + 2, left - 1)


def _below(limit: float) -> np.float32:
    """Return the largest float32 that is not above: float32 values compare with it as with the limit."""
    near = np.float32(limit)
    return near if float(near) <= limit else np.nextafter(near, np.float32(-np.inf))
