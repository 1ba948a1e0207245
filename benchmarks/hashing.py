"""The semantic hash against exact search: which neighbours it keeps, and what it costs.

Questions of MTRAG, banking77 and QQP, embedded by MiniLM. Each of a sample looks for its nearest others:
exactly, and among a list of those with the fewest differing bits, which is then sorted by cosine. Recall
is the share of the exact neighbours that stand in the list. Times are of one search, embedding left out,
in turns within one run; each search takes the 8 best, as a lookup does.
"""

import csv
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks import pairs, report
from benchmarks.report import Row
from benchmarks.thresholds import unit_rows
from stampcache.embed import as_embedder
from stampcache.model import Vector
from stampcache.semantic_hash import BITS, Hashes, SemanticHash, distances, most_bits

SEED = 7
BEST = 8
SERVED = 0.90
LISTS = (10, 30, 100, 300, 1_000)
WIDTHS = (16, 32, 64)
COSINES = (0.80, 0.85, 0.90, 0.95)
Indices = NDArray[np.intp]


class Size(Struct, frozen=True):
    """How many questions are added to MTRAG's, how many are looked for, how often a time is taken."""

    banking: int
    qqp: int
    asked: int
    turns: int
    stores: Sequence[int]


FULL = Size(banking=3_080, qqp=2_000, asked=1_000, turns=200, stores=(1_000, 10_000, 100_000))
QUICK = Size(banking=800, qqp=200, asked=100, turns=20, stores=(1_000, 10_000))


class Spent(Struct, frozen=True):
    """µs of a search: its best tenth, which other work on the machine disturbs least, and its median."""

    low: float
    middle: float


def questions(data: Path, size: Size) -> list[str]:
    """Return all questions, each once."""
    found = [one for domain in pairs.MTRAG_DOMAINS for one in pairs.mtrag_questions(data, domain)]
    with (data / "banking77" / "banking_data_test.csv").open(newline="") as lines:
        found += [one["text"] for one in csv.DictReader(lines)][: size.banking]
    found += [text for one in pairs.qqp(data, size.qqp // 2) for text in (one.asked, one.stored)]
    return list(dict.fromkeys(found))


def _exact(vectors: Vector, asked: Indices) -> NDArray[np.float32]:
    cosines: NDArray[np.float32] = vectors[asked] @ vectors.T
    cosines[np.arange(len(asked)), asked] = -1
    return cosines


def _ranks(hashes: Hashes, at: int, width: int) -> Indices:
    """Return the rank of each other question by differing bits, the asked one last."""
    kept = hashes >> np.uint64(BITS - width)
    bits = distances(kept, kept[at]).astype(np.intp)
    bits[at] = BITS + 1
    ranks = np.empty(len(bits), dtype=np.intp)
    ranks[np.argsort(bits, kind="stable")] = np.arange(len(bits))
    return ranks


def by_list(vectors: Vector, hashes: Hashes, asked: Indices) -> list[Row]:
    """Return the recall within lists of so many, by how many bits are compared."""
    cosines = _exact(vectors, asked)
    nearest = np.argsort(-cosines, axis=1)[:, :BEST]
    served = [np.flatnonzero(row >= SERVED) for row in cosines]
    rows: list[Row] = []
    for width in WIDTHS:
        ranks = [_ranks(hashes, int(at), width) for at in asked]
        rows += [
            {
                "bits": width,
                "list": length,
                "recall@1": _share(ranks, nearest[:, :1], length),
                f"recall@{BEST}": _share(ranks, nearest, length),
                f"recall of cosine >= {SERVED}": _share(ranks, served, length),
            }
            for length in LISTS
        ]
    return rows


def _share(ranks: Sequence[Indices], wanted: Sequence[Indices] | Indices, length: int) -> float:
    found = [one[due] < length for one, due in zip(ranks, wanted, strict=True)]
    return round(float(np.concatenate(found).mean()), 4)


def by_bits(vectors: Vector, hashes: Hashes, asked: Indices) -> list[Row]:
    """Return what the limit of `most_bits` keeps of the neighbours at a cosine, and how many in all."""
    cosines = _exact(vectors, asked)
    bits = np.stack([distances(hashes, hashes[at]) for at in asked])
    rows: list[Row] = []
    for cosine in COSINES:
        limit = most_bits(cosine)
        near = cosines >= cosine
        rows.append(
            {
                "cosine": cosine,
                "bits at most": limit,
                "neighbours": int(near.sum()),
                "recall": round(float((bits <= limit)[near].mean()), 4) if near.any() else 1.0,
                "share kept of all": round(float((bits <= limit).mean()), 4),
            }
        )
    return rows


def times(size: Size) -> list[Row]:
    """Return what one search costs in µs, exactly and by the hash, on random vectors."""
    return [_timed(count, size.turns) for count in size.stores]


def _timed(count: int, turns: int) -> Row:
    rows = np.random.default_rng(SEED).standard_normal((count, 384), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    hashing = SemanticHash(384)
    hashes = hashing.of(rows)
    length = max(4 * BEST, count // 100)

    def flat(vector: Vector) -> object:
        cosines = rows @ vector
        return np.argpartition(-cosines, BEST)[:BEST]

    def hashed(vector: Vector) -> object:
        one = hashing.of(vector[None])[0]
        kept = np.argpartition(distances(hashes, one), length)[:length]
        return kept[np.argpartition(-(rows[kept] @ vector), BEST)[:BEST]]

    spent = _in_turns([flat, hashed, lambda vector: hashing.of(vector[None])], rows, turns)
    exact, by_hash, hashing_alone = spent
    return {
        "vectors": count,
        "list": length,
        "exact p10 µs": exact.low,
        "exact p50 µs": exact.middle,
        "by hash p10 µs": by_hash.low,
        "by hash p50 µs": by_hash.middle,
        "of which hashing p10 µs": hashing_alone.low,
        "exact / by hash (p10)": round(exact.low / by_hash.low, 2),
    }


def _in_turns(
    searches: Sequence[Callable[[Vector], object]], rows: Vector, turns: int
) -> list[Spent]:
    spent: list[list[float]] = [[] for _ in searches]
    for turn in range(turns):
        for search, seconds in zip(searches, spent, strict=True):
            begun = time.perf_counter()
            search(rows[turn % len(rows)])
            seconds.append(time.perf_counter() - begun)
    return [
        Spent(*(round(float(at) * 1e6, 1) for at in np.quantile(one, (0.1, 0.5)))) for one in spent
    ]


def main() -> int:
    """Measure, print three tables and write them."""
    given = report.arguments("The semantic hash: recall against exact search, and its cost.")
    size = QUICK if given.quick else FULL
    timed = times(size)
    report.show("One search of 384 dimensions", timed)
    rows = [{"group": "time", **one} for one in timed]
    if given.data is None or not (given.data / "mtrag").is_dir():
        print(
            "There is no measuring data, so no recall: give its folder, as --data ../shared/data."
        )
        report.write(given.json, rows)
        return 0
    texts = questions(given.data, size)
    vectors = unit_rows(as_embedder("minilm"), texts)
    vectors = vectors[vectors.any(axis=1)]  # without those that the embedder does not read
    hashes = SemanticHash(vectors.shape[1]).of(vectors)
    asked = np.random.default_rng(SEED).choice(len(vectors), size.asked, replace=False)
    for group, about, found in (
        ("list", f"Recall among {len(vectors):,} questions", by_list(vectors, hashes, asked)),
        ("bits", "Recall within the limit of bits", by_bits(vectors, hashes, asked)),
    ):
        report.show(f"{about} ({size.asked:,} asked)", found)
        rows += [{"group": group, **one} for one in found]
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
