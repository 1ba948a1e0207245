"""Canonical token sequences by a Hugging Face tokenizer (level 1 may be keyed on them)."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from stampcache import canonical
from stampcache.errors import ConfigError
from stampcache.ports import Tokenizer


class _Encoding(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


@runtime_checkable
class HuggingFaceTokenizer(Protocol):
    """The three methods of ``tokenizers.Tokenizer`` that are used."""

    def to_str(self) -> str: ...

    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> _Encoding: ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str: ...


class TokenIds:
    """Keys questions by token ids; the stamp is the digest of the tokenizer's whole definition."""

    def __init__(self, tokenizer: HuggingFaceTokenizer) -> None:
        definition = canonical.encode(tokenizer.to_str())
        self.stamp = canonical.digest([definition], person=b"tokenizer")
        self._tokenizer = tokenizer

    def tokens(self, text: str) -> bytes:
        """See `Tokenizer.tokens`: four bytes per token id, little-endian.

        Ids that do not give the text back (a tokenizer that lowers case, knows not all words, or
        cuts off) are the same for different questions, so the text itself follows them.
        """
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        lossless = self._tokenizer.decode(ids, skip_special_tokens=False) == text
        return np.asarray(ids, "<u4").tobytes() + (b"" if lossless else canonical.encode(text))


def as_tokenizer(raw: object) -> Tokenizer | None:
    """Return a tokenizer for what a user passes: ``None``, one of ours, or a Hugging Face one."""
    if raw is None:
        return None
    if isinstance(raw, HuggingFaceTokenizer):
        return TokenIds(raw)
    if isinstance(raw, Tokenizer):
        return raw
    raise ConfigError(
        f"tokenizer= takes a tokenizers.Tokenizer or an object with `stamp` and `tokens`, "
        f"not {type(raw).__name__}."
    )
