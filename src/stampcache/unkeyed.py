"""What of a model's or an embedder's settings is never keyed: secrets, and how calls are made (pure).

Everything else is, since a setting that is not known may change the answer. Keying a secret would
make its rotation empty the cache, and would let a digest be tried against guesses of it.
"""

import re

_SECRET = re.compile(
    r"(?:^|_)(?:api|access|auth|secret|private|subscription|account|master|session)_?(?:key|token)$"
    r"|(?:^|_)(?:key|token|secret|password|passwd|auth|authorization|credentials?|bearer|cookies?)$"
    r"|(?:^|_)api_?keys?(?:_|$)|(?:^|_)client_secret|password|aws_.*_(?:key|token)",
    re.IGNORECASE,
)
_SECRET_HEADER = re.compile(
    r"auth|cookie|secret|token|password|credential|(?:^|[-_])(?:api)?-?_?key$|signature|trace|request-id",
    re.IGNORECASE,
)

# How calls of a model are watched, paced or retried: none of it reaches the model.
CALLING = frozenset({
    "cache", "callback_manager", "callbacks", "custom_get_token_ids", "max_retries", "metadata",
    "num_workers", "rate_limiter", "request_timeout", "reuse_client", "show_progress", "tags",
    "timeout", "verbose",
})  # fmt: skip


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a key, a token or a password."""
    return _SECRET.search(name) is not None


def is_secret_header(name: str) -> bool:
    """Tell whether an HTTP header authenticates or traces a call, rather than shaping its answer."""
    return _SECRET_HEADER.search(name) is not None
