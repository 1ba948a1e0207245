"""Embedders of the sentence-transformers library: norms not hidden, windows not overrun."""

import contextlib
import copy
import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from transformers.utils import logging as transformers_logging

from stampcache import canonical
from stampcache.calibration import MINILM
from stampcache.embedders.frameworks import is_minilm
from stampcache.embedders.scripts import check_english_script
from stampcache.errors import ConfigError, WindowError
from stampcache.model import Vector


class SentenceEmbedder:
    """Embeds questions, in the query role where the model knows roles. Safe for many threads.

    ``window`` is how many tokens the model reads, special tokens included; ``None`` where it has no
    limit.
    """

    def __init__(self, source: str, *, name: str, local: bool) -> None:
        """Load the model from a folder or, unless ``local``, from where the library looks for it.

        Raises:
            ConfigError: there is no such model, or it cannot be loaded.
        """
        self._name = name
        self._model = _loaded(source, local)
        self.dimension = self._model.get_embedding_dimension()
        limit = self._model.max_seq_length
        self.window = limit if isinstance(limit, int) else None
        # A tokenizer of its own, since counting switches truncation off, which is state inside it.
        self._counter = copy.deepcopy(self._model.tokenizer) if self.window else None
        self._counting = threading.Lock()
        self._prompt = self._model.prompts.get("query") or ""
        self.embed(["warm up"])

    @property
    def name(self) -> str:
        """Names the weights."""
        return self._name

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text, shape (n, d), float32, as pooled and before normalisation.

        Raises:
            WindowError: a text has more tokens than the model reads, or signs that it does not.
        """
        for text in texts:
            if self._name == MINILM:
                check_english_script(text)
            self._check_window(text)
        rows = self._model.encode_query(list(texts), show_progress_bar=False)
        return np.asarray(rows, dtype=np.float32)

    def _check_window(self, text: str) -> None:
        if self.window is None or self._counter is None:
            return
        with self._counting:
            ids = self._counter(self._prompt + text, truncation=False, verbose=False)["input_ids"]
        if len(ids) > self.window:
            raise WindowError(
                f"The question has {len(ids)} tokens, and {self._name} reads {self.window}; what "
                "lies beyond would not be compared."
            )


def _loaded(source: str, local: bool) -> SentenceTransformer:
    try:
        with _quiet():
            model = SentenceTransformer(source, local_files_only=local)
    except Exception as error:
        raise ConfigError(
            f"The sentence-transformers model {source!r} could not be loaded "
            f"({type(error).__name__}: {error}); check the name, or give a local folder."
        ) from error
    while isinstance(model[-1], Normalize):
        del model[-1]
    return model


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the bar that shows the loading of weights off the screen."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # the library is untyped there
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # the library is untyped there


def load(source: str) -> SentenceEmbedder:
    """Load a model by the name it has on the hub or from a local folder.

    A folder is named after a digest of its files, since a path may come to hold other weights.

    Raises:
        ConfigError: there is no such model, or it cannot be loaded.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return SentenceEmbedder(str(folder), name=_folder_name(folder), local=True)
    return SentenceEmbedder(source, name=MINILM if is_minilm(source) else source, local=False)


def _folder_name(folder: Path) -> str:
    parts: list[bytes] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as content:
            whole = hashlib.file_digest(content, "blake2b").digest()
        parts += [canonical.encode(path.relative_to(folder).as_posix()), whole]
    digest = canonical.digest(parts, person=b"weights").removeprefix(canonical.FORMAT)
    return f"{folder.resolve().name}@{digest}"
