"""Puts together what is fitted for Chinese: the word table, the pairs and their features."""

import contextlib
import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stampcache.embedders.multilingual import MultilingualEmbedder
from stampcache.errors import VerifierError, WindowError
from stampcache.verifying.chinese import pair as pairing
from stampcache.verifying.chinese.reading import costs, plain, reader, segmented
from stampcache.verifying.reading import Side
from stampcache.verifying.table import Table
from training.verifier import sources
from training.verifier.assembling import SEED, Fit, Words, distinct, fit_of
from training.verifier.chinese import corrupting, rewording, turning, words
from training.verifier.chinese.corrupting import Substituting
from training.verifier.sources import Pair
from training.verifier.words import projected, related

BATCH = 64
WRITTEN = sources.WRITTEN / "chinese"
_SOURCE = "written"
_TOGETHER = 10
"""So many groups are paired with each other, and so are fitted, or held out, together."""
_NEAREST = 3


class Embedding:
    """Unit vectors of texts, each made once."""

    def __init__(self) -> None:
        self._model = MultilingualEmbedder()
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, of length one."""
        new = sorted(set(texts) - self._known.keys(), key=lambda one: (len(one), one))
        for at in range(0, len(new), BATCH):
            part = new[at : at + BATCH]
            self._known.update(zip(part, self._model.embed(part), strict=True))
        return np.stack([self._known[text] for text in texts])

    def reads(self, text: str) -> bool:
        """Tell whether the embedder reads a text, which is embedded then."""
        try:
            self([text])
        except WindowError:  # a sign such as ℃
            return False
        return True


def word_table(embedding: Embedding) -> Words:
    """Return the table of the most frequent words."""
    chosen = words.chosen(words.vocabulary())
    vectors = embedding([word for word, _ in chosen])
    longer = [at for at, (word, _) in enumerate(chosen) if len(word) > 1]
    return Words(
        [word for word, _ in chosen],
        words.weights(chosen),
        projected(vectors),
        related([chosen[at][0] for at in longer], vectors[longer], words.RELATED),
    )


def all_pairs(embedding: Embedding, table: Words) -> list[Pair]:
    """Return every pair that may be fitted, without repetitions."""
    known = costs(table.table())
    substituting = Substituting(lambda text: segmented(plain(text), known), table.related)
    groups = sources.groups(WRITTEN)
    found = [*sources.paired(groups, SEED, rewording.reword), *turning.pairs(SEED)]
    standing = [one for group in groups for one in (*group.same[:1], *group.others)]
    found += made(standing, substituting)
    for at in range(0, len(groups), _TOGETHER):
        first = [group.same[0] for group in groups[at : at + _TOGETHER]]
        found += _nearest([one for one in first if embedding.reads(one)], embedding)
    return distinct(found)


def made(questions: Sequence[str], substituting: Substituting) -> Iterator[Pair]:
    """Yield corruptions and light rewordings of these questions."""
    changes = (*corrupting.EVERY, *(substituting.word,) * 3, substituting.dropped)
    for text in questions:
        chance = random.Random(f"{SEED}:{text}")
        for times in (1, 2, 3):
            one = rewording.reword(text, chance, times - 1)
            other = rewording.reword(text, chance, times)
            if one != other:
                yield Pair(one, other, True, _SOURCE, "rewording", 0.5, text)
        for change in chance.sample(changes, 6):
            changed = change(text, chance)
            if changed and changed != text:
                times = chance.choice((0, 0, 1, 2))
                changed = rewording.reword(changed, chance, times)
                how = f"corruption: {change.__name__}"
                yield Pair(text, changed, False, _SOURCE, how, 0.5, text)


def _nearest(questions: Sequence[str], embedding: Embedding) -> Iterator[Pair]:
    """Yield each question with the three most similar ones of other groups."""
    near = embedding(questions) @ embedding(questions).T
    np.fill_diagonal(near, -1)
    for at, one in enumerate(questions):
        for to in np.argsort(-near[at], kind="stable")[:_NEAREST]:
            yield Pair(one, questions[int(to)], False, _SOURCE, "nearest other", 0.5, one)


def assembled(pairs: Sequence[Pair], embedding: Embedding, table: Table) -> Fit:
    """Return the pairs that can be read, with their features."""
    read = reader(table)
    sides: dict[str, Side] = {}
    for text in sorted({text for one in pairs for text in (one.one, one.other)}):
        with contextlib.suppress(VerifierError):  # what it abstains from is not fitted
            side = read(text)
            if embedding.reads(text):
                sides[text] = side
    return fit_of(
        pairs,
        sides,
        embedding,
        lambda one, other, near: pairing.against(one, table)(other, near),
    )
