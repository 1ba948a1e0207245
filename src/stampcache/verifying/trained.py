"""The trained verifier: how probably two questions are the same one, from features of the pair (pure)."""

from collections.abc import Sequence

from msgspec import Struct

from stampcache.errors import VerifierError
from stampcache.verifying import reading
from stampcache.verifying.pair import NAMES, Asked, asking, compared, ready
from stampcache.verifying.reading import read
from stampcache.verifying.table import Table
from stampcache.verifying.trees import Packed, Trees

SHOWN = 3


class Weights(Struct, frozen=True):
    """What training wrote: the word table, the trees, the names of their features, the threshold."""

    name: str
    words: Sequence[str]
    rarity: bytes
    vectors: bytes
    trees: Packed
    features: Sequence[str]
    usual: Sequence[float]
    threshold: float


class TrainedVerifier:
    """Scores whether two English questions are the same one, as a calibrated probability.

    It was fitted beside the cosine of all-MiniLM-L6-v2: with another embedder the order of its
    scores may still hold, and its probabilities and its threshold do not (docs/reference/verifier.md).
    ``name`` carries the digest of its weights: two verifiers of one name score alike.
    """

    def __init__(self, weights: Weights, table: Table) -> None:
        self._weights = weights
        self._table = table
        self._trees = Trees(weights.trees)

    @property
    def name(self) -> str:
        """The name of the weights with their digest, such as ``plain-1f3a5b7c``."""
        return self._weights.name

    @property
    def threshold(self) -> float:
        """Scores at or above it count as the same question; chosen on data that was fitted."""
        return self._weights.threshold

    def asking(self, question: str) -> "Asking":
        """Return a question that is to be compared with stored ones; it is read once."""
        return Asking(question, self._weights, self._table, self._trees)


class Asking:
    """A question that is compared with stored ones.

    Scores are symmetric: whoever asks first makes no difference.
    """

    def __init__(self, question: str, weights: Weights, table: Table, trees: Trees) -> None:
        self._weights = weights
        self._table = table
        self._trees = trees
        self._asked: Asked | None = None
        self._refused = ""
        try:
            self._asked = asking(read(question, table), table)
        except VerifierError as error:
            self._refused = str(error)

    @property
    def seen(self) -> bytes:
        """This question's side of the features, to be stored with an entry; empty: it abstains."""
        return reading.encode(self._asked.ready.side) if self._asked else b""

    def score(self, stored_question: str, stored_seen: bytes, similarity: float) -> float:
        """Return the probability in [0, 1] that the stored question is the same as this one.

        ``stored_seen`` is what `seen` was when it was stored; the stored question is read again if
        that is empty or of other weights. ``similarity`` is the cosine of the two questions.

        Raises:
            VerifierError: it abstains: a question is empty, too long or not in English, or the
                similarity is no cosine.
        """
        return self._trees.probability(self._features(stored_question, stored_seen, similarity))

    def explain(
        self, stored_question: str, stored_seen: bytes, similarity: float
    ) -> tuple[str, ...]:
        """Return the few features that move this score most, each with how far it moves it.

        A feature's weight is how much the score changes when the feature has its usual value among
        pairs that are the same question.

        Raises:
            VerifierError: as `score`.
        """
        values = self._features(stored_question, stored_seen, similarity)
        score = self._trees.probability(values)
        moved: list[tuple[float, str]] = []
        for at, (value, usual) in enumerate(zip(values, self._weights.usual, strict=True)):
            if value != usual:
                other = self._trees.probability([*values[:at], usual, *values[at + 1 :]])
                moved.append((score - other, f"{NAMES[at]} {value:.4g}"))
        moved.sort(key=lambda one: (-abs(one[0]), one[1]))
        return tuple([f"{shown} ({by:+.3f})" for by, shown in moved[:SHOWN] if abs(by) >= 0.0005])

    def _features(self, question: str, seen: bytes, similarity: float) -> list[float]:
        if self._asked is None:
            raise VerifierError(self._refused)
        if not -1.001 <= similarity <= 1.001:
            raise VerifierError(f"The similarity {similarity} is no cosine; give one in [-1, 1].")
        stored = reading.decode(seen, self._table.version) or read(question, self._table)
        return compared(self._asked, ready(stored, self._table), similarity)
