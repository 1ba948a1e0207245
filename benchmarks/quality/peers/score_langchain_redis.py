"""langchain-redis: its semantic cache at its default distance, over a Redis with search.

Set ``REDIS_URL`` to a Redis that is yours alone: each pair clears the cache.
"""

import os
import sys
from pathlib import Path

from handing import Asked, Decision, run, vectors
from langchain_core.embeddings import Embeddings
from langchain_core.outputs import Generation
from langchain_redis import RedisSemanticCache

KNOWN = vectors(Path(sys.argv[1]))
WIDTH = len(next(iter(KNOWN.values())))


class Given(Embeddings):
    """Hands out the vectors that all systems share; other texts (its own probes) get a unit vector."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a row for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return KNOWN[text].tolist() if text in KNOWN else [1.0] + [0.0] * (WIDTH - 1)


CACHE = RedisSemanticCache(redis_url=os.environ["REDIS_URL"], embeddings=Given(), name="quality")


def decide(pair: Asked) -> Decision:
    """Store the one question and ask the other."""
    CACHE.clear()
    CACHE.update(pair.stored, "model", [Generation(text="answer")])
    return Decision(CACHE.lookup(pair.asked, "model") is not None, None)


run(decide)
