"""A process that remembers much of what it was asked, for tests of what is left of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stampcache import Cache, Hit, Request, Scope, Stored, scope
from stampcache.corpora import Change, Chunk
from stampcache.errors import MakingError
from stampcache.model import Selector
from stampcache.spaces import as_bytes
from stampcache.verifying import load
from tests.redis.apps import opened


class FirstWord:
    """Questions that begin with the same word are near each other. It keeps no text."""

    name = "first-word"

    def embed(self, texts: Sequence[str]) -> Any:
        """See `Embedder.embed`."""
        return np.stack([vector_of(text) for text in texts])


def vector_of(text: str) -> Any:
    """Return the vector of a text, of length 2."""
    word = text.split()[0]
    drawn = np.random.default_rng(list(word.encode())).normal(size=16)
    drawn = drawn / np.linalg.norm(drawn) + len(text) * 1e-4
    return (2 * drawn / np.linalg.norm(drawn)).astype(np.float32)


def marks_of(word: str, tenant: str) -> tuple[bytes, ...]:
    """Return what tells of a tenant: the word in its texts, its name, vectors of its questions."""
    vectors = [vector_of(text) for text in questions(word)]
    units = [(one / np.linalg.norm(one)).astype(np.float32) for one in vectors]
    return (word.encode(), tenant.encode(), *(one.tobytes() for one in (*vectors, *units)))


def questions(word: str) -> tuple[str, str]:
    """Return a question, and the same in other words."""
    return f"{word} staff: how many days of leave?", f"{word} staff: how many leave days?"


def remembering(url: str) -> Cache:
    """Open a cache that compares by meaning and draws every pair."""
    return opened(
        url, embedder=FirstWord(), verifier=load(), calibration=0.8, sample=1.0, stamps=None
    )


def live(cache: Cache, tenant: str, word: str) -> None:
    """Do whatever leaves traces of a tenant in a process."""
    asked, other = (Request(question=text, scope=Scope(tenant=tenant)) for text in questions(word))
    if not isinstance(cache.lookup(asked), Hit):
        cache.update(asked, f"{word}: thirty", outcome=cache.lookup(asked))
    assert isinstance(cache.lookup(asked), Hit)
    assert isinstance(cache.lookup(other), Hit), "by meaning"
    with scope(tenant=tenant, variety=2):
        cache.lookup(Request(question=asked.question))
    cache.explain(other)
    gone = Request(question=f"Gone from {word}?", scope=Scope(tenant=tenant))
    stored = cache.update(gone, f"{word}: thirty", outcome=cache.lookup(gone))
    if isinstance(stored, Stored):
        because = f"by a judge: {word} has changed"
        cache.core.store.invalidate(Selector(entry=stored.entry.id, because=because))

    def fail() -> str:
        raise ValueError(f"no answer for {word}")

    for wrong in (ValueError, MakingError):  # one of both, whoever leads
        try:
            cache.get_or_create(
                Request(question=f"Unknown to {word}?", scope=Scope(tenant=tenant)), fail
            )
        except wrong:
            break
        except Exception:
            continue
    added = Chunk(id="1", digest=str(len(word)), vector=as_bytes(vector_of("far away")))
    cache.core.store.corpora.commit("c", "", Change(added=(added,)), now=0.0)
