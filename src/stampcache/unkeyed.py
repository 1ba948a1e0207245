"""What of a model's or an embedder's settings is never keyed: secrets, and how calls are made (pure).

Everything else is, since a setting that is not known may change the answer. Keying a secret would
make its rotation empty the cache, and would let a digest be tried against guesses of it.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

_NAMES_KEPT = 4_096
_WHOSE = (
    r"api|access|auth|secret|private|public|subscription|account|master|session|license|admin"
    r"|bearer|refresh|id|ad|hub|hf|huggingface|github|user|client|encryption|signing|ssh"
)
_SECRET = re.compile(
    rf"(?:^|_)(?:{_WHOSE})_?(?:keys?|tokens?)(?:_id|_provider)?$"  # and not eos_token, history_key
    r"|^token$"  # and not the keys that a part picks
    r"|(?:^|_)(?:secret|passwd|passphrase|auth|authorization|credentials?|bearer|cookies?)$"
    r"|password|client_secret|secret_|_secret|token_provider",
    re.IGNORECASE,
)
_SECRET_HEADER = re.compile(
    r"(?:^|[-_])(?:proxy-)?(?:auth|authorization|authentication|cookies?|set-cookie|secret|token|password"
    r"|credentials?|signature|api-?key|key|traceparent|tracestate|trace-id|request-id|nonce)$",
    re.IGNORECASE,
)

# How calls of a model are watched, paced or retried: none of it reaches the model.
CALLING = frozenset({
    "cache", "callback_manager", "callbacks", "custom_get_token_ids", "max_retries", "metadata",
    "num_workers", "rate_limiter", "request_timeout", "reuse_client", "show_progress", "tags",
    "timeout", "verbose",
})  # fmt: skip


@functools.lru_cache(maxsize=_NAMES_KEPT)
def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a key, a token or a password."""
    return _SECRET.search(name) is not None


@functools.lru_cache(maxsize=_NAMES_KEPT)
def is_secret_header(name: str) -> bool:
    """Tell whether an HTTP header authenticates or traces a call, rather than shaping its answer."""
    return _SECRET_HEADER.search(name) is not None


@functools.lru_cache(maxsize=_NAMES_KEPT)
def _names_headers(name: str) -> bool:
    return name.casefold().endswith(("header", "headers"))


def holds_secret(name: str, value: object) -> bool:
    """Tell whether this named value is a secret.

    A number is none, whatever its name, nor is a mapping: the schema of a property, for example. A
    text may be the value of a single header.
    """
    if is_secret(name):
        return not isinstance(value, int | float | Mapping)
    if not _names_headers(name) or not isinstance(value, str | bytes):  # nearly always
        return False
    return is_secret_header(name.rpartition("_")[0].replace("_", "-"))


def shaping(name: str, value: object) -> object:
    """Return a value as it is keyed: of HTTP headers, those that may shape an answer.

    They come as a mapping or as pairs. Names are taken in one case and order; the values of names that
    differ in case only are all kept.
    """
    if not _names_headers(name) or not name.casefold().endswith("headers"):
        return value
    pairs = _pairs(value)
    if pairs is None:
        return value
    kept: dict[str, list[object]] = {}
    for header, sent in pairs:
        text = header.decode("latin-1") if isinstance(header, bytes) else str(header)
        if not is_secret_header(text):
            kept.setdefault(text.casefold(), []).append(sent)
    return dict(sorted(kept.items()))


def _pairs(value: object) -> Iterable[tuple[Any, object]] | None:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple) and all(_is_pair(one) for one in value):
        return value
    return None


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2
