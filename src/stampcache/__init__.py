"""stampcache serves a cached RAG answer only while everything the answer depended on still holds."""

from stampcache.cache import AsyncCache, Cache
from stampcache.calibration import Calibration
from stampcache.errors import (
    CodecError,
    ConfigError,
    EmbedderError,
    JudgeError,
    ScopeError,
    StampCacheError,
    StoreError,
    VerifierError,
)
from stampcache.freshness import Freshness
from stampcache.journal import Verdict
from stampcache.manifest import Manifest
from stampcache.model import (
    Answer,
    Controls,
    Entry,
    Evidence,
    Level,
    Reason,
    Scope,
    Signature,
    Stamps,
    Usage,
)
from stampcache.open import open_cache
from stampcache.outcome import Hit, Miss, Outcome, Refused, Saved, Stale, Stored
from stampcache.ports import Forgotten
from stampcache.request import Request, Seam, Settings
from stampcache.scope import scope
from stampcache.ttl import Lifetime
from stampcache.working import Work

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncCache",
    "Cache",
    "Calibration",
    "CodecError",
    "ConfigError",
    "Controls",
    "EmbedderError",
    "Entry",
    "Evidence",
    "Forgotten",
    "Freshness",
    "Hit",
    "JudgeError",
    "Level",
    "Lifetime",
    "Manifest",
    "Miss",
    "Outcome",
    "Reason",
    "Refused",
    "Request",
    "Saved",
    "Scope",
    "ScopeError",
    "Seam",
    "Settings",
    "Signature",
    "Stale",
    "StampCacheError",
    "Stamps",
    "StoreError",
    "Stored",
    "Usage",
    "Verdict",
    "VerifierError",
    "Work",
    "open_cache",
    "scope",
]
