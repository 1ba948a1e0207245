"""Every error that stampcache raises, and who sees it.

    StampCacheError
    +-- ConfigError      a wrong or missing setting; always raised, the sentence says what to change
    +-- ScopeError       no tenant where one is required; always raised by the core, counted by adapters
    +-- CanonicalError   a value that has no canonical form; becomes Miss(UNCACHEABLE)
    +-- StoreError       the store is down, full or read-only; becomes a Miss unless strict
    |   +-- CodecError   a stored entry cannot be read; the entry is dropped and the Miss counted
    +-- EmbedderError    the embedder failed or answered nonsense; becomes a Miss unless strict
    +-- RetrieverError   retrieving again failed; the candidate is rejected
    +-- VerifierError    the verifier failed; the candidate is rejected
    +-- JudgeError       the judge failed; the verdict is "no"
    +-- MakingError      an equal request failed in another process; its failure is shared

Each error carries one sentence that tells its reader what to do.
"""


class StampCacheError(Exception):
    """Base of all errors of this package."""


class ConfigError(StampCacheError):
    """A setting is wrong, missing or contradicts the store."""


class ScopeError(StampCacheError):
    """A call has no tenant although the cache was opened with ``tenants="required"``."""


class CanonicalError(StampCacheError):
    """A value of a request has no canonical form, so that no key can stand for it."""


class StoreError(StampCacheError):
    """The store could not do what was asked: down, full, locked, read-only or not a store."""


class CodecError(StoreError):
    """A stored entry is damaged or of an unknown version; it has been dropped."""


class EmbedderError(StampCacheError):
    """The embedder failed, or its vector is of the wrong size, zero or not finite."""


class WindowError(EmbedderError):
    """The text is longer than the embedder reads; embedding it would compare only its beginning."""


class RetrieverError(StampCacheError):
    """Retrieving the evidence of an entry again failed."""


class VerifierError(StampCacheError):
    """The verifier failed on a pair."""


class MakingError(StampCacheError):
    """An equal request, for which this one waited, failed in another process; its words are told."""


class JudgeError(StampCacheError):
    """The judge failed, timed out or did not answer in the asked form."""
