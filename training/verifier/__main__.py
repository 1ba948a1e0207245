"""Trains a verifier and writes its weights; the same data gives the same bytes.

That for English is fitted on CheckList, Kmemo's near misses, MTRAG, banking77 and questions of our own
(``written``), that for Chinese on questions of our own alone.
Calibration and threshold come from held-out folds: no question, and nothing that was made of it, is
in two of them. It prints what was held out, by source.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from stampcache.languages import CHINESE, ENGLISH
from stampcache.verifying import pair as pairing
from stampcache.verifying.chinese import pair as chinese_pairing
from stampcache.verifying.trained import Weights
from stampcache.verifying.trees import probability
from training.verifier import fitting
from training.verifier.assembling import (
    SEED,
    Embedding,
    Fit,
    Words,
    all_pairs,
    assembled,
    compressed,
    word_table,
)

ALLOWED = 0.10
RISING = ("similarity",)


def monotone(names: Sequence[str]) -> list[int]:
    """Return for each feature 1 if a score may only rise with it, else 0."""
    return [int(name in RISING) for name in names]


def natural(fit: Fit) -> NDArray[np.bool_]:
    """Return which pairs were written by people as they stand: the ones that thresholds are chosen on."""
    return np.array(
        [one.source == "kmemo" or one.how in ("near miss", "reworded") for one in fit.pairs]
    )


def chosen(scores: NDArray[np.float64], same: NDArray[np.bool_]) -> float:
    """Return the lowest threshold, to 0.005, that rejects at least 90 % of what is not the same."""
    for at in range(100, 200):
        if float((scores[~same] >= at / 200).mean()) <= ALLOWED:
            return at / 200
    return 1.0


def show(fit: Fit, scores: NDArray[np.float64], threshold: float) -> None:
    """Print what held-out pairs of each source would be served."""
    kinds = sorted({(one.source, one.how, one.same) for one in fit.pairs})
    for source, how, same in kinds:
        at = [
            n
            for n, one in enumerate(fit.pairs)
            if (one.source, one.how, one.same) == (source, how, same)
        ]
        if len(at) >= 20:
            share = float((scores[at] >= threshold).mean())
            print(
                f"{'same ' if same else 'other'} {source:10} {how[:44]:44} {len(at):5} "
                f"served {share:6.1%}"
            )


def trained(fit: Fit, words: Words, language: str, names: Sequence[str]) -> Weights:
    """Fit, calibrate and choose the threshold."""
    rising = monotone(names)
    groups = fitting.components([(one.one, one.other, one.origin) for one in fit.pairs])
    fold = fitting.folds(groups, SEED)
    margin = fitting.margins(fit.rows, fit.same, fit.weights, fold, rising)
    slope, shift = fitting.calibration(margin, fit.same, fit.weights)
    scores = np.array([probability(one, slope, shift) for one in margin.tolist()])
    judged = natural(fit)
    threshold = chosen(scores[judged], fit.same[judged])
    show(fit, scores, threshold)
    whole = fitting.model(rising).fit(fit.rows, fit.same, sample_weight=fit.weights)
    return Weights(
        name="",
        language=language,
        words=words.words,
        rarity=words.weights,
        vectors=words.vectors,
        trees=fitting.packed(whole, slope, shift),
        features=list(names),
        usual=[round(float(one), 4) for one in np.median(fit.rows[fit.same], axis=0)],
        threshold=threshold,
    )


def english(data: Path) -> tuple[Weights, int]:
    """Return weights that are fitted on all that may be fitted, and the count of its pairs."""
    embedding = Embedding()
    words = word_table(embedding)
    pairs = all_pairs(data, embedding, words.related)
    fit = assembled(pairs, embedding, words.table())
    return trained(fit, words, ENGLISH, pairing.NAMES), len(fit.pairs)


def chinese() -> tuple[Weights, int]:
    """Return the same for Chinese."""
    from training.verifier.chinese import assembling

    embedding = assembling.Embedding()
    words = assembling.word_table(embedding)
    fit = assembling.assembled(assembling.all_pairs(embedding, words), embedding, words.table())
    return trained(fit, words, CHINESE, chinese_pairing.NAMES), len(fit.pairs)


def main() -> int:
    """Train and write."""
    parser = argparse.ArgumentParser(description="Train a verifier.")
    parser.add_argument("--data", type=Path, help="folder of the measuring data, for English")
    parser.add_argument("--language", choices=(ENGLISH, CHINESE), default=ENGLISH)
    parser.add_argument("--out", type=Path, required=True, help="file of the weights to write")
    given = parser.parse_args()
    if given.language == ENGLISH and given.data is None:
        parser.error("the verifier for English is fitted on --data, too")
    # sums of several threads come in any order, and the bytes are to be the same on any count of cores
    torch.set_num_threads(1)
    with threadpool_limits(1):
        weights, count = english(given.data) if given.language == ENGLISH else chinese()
    raw = compressed(msgspec.msgpack.encode(weights))
    given.out.write_bytes(raw)
    print(f"{count} pairs, threshold {weights.threshold}, {len(raw)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
