"""The cache's embedder behind an engine: its width, a wrong one, and one that has changed."""

from typing import Any

import numpy as np
import pytest
from llama_fakes import WIDTH, Corpus, DigestLLM, WordsEmbedding, report, words_vector

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, open_cache

QUESTION, PARAPHRASE = "how long is annual leave", "tell me about annual leave"


def engine_on(cache: Cache, corpus: Corpus, llm: DigestLLM) -> CachedQueryEngine:
    return CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache, corpus="handbook")


class LastWord(WordsEmbedding):
    """A model of the framework, which takes questions with one last word for the same."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return super()._get_query_embedding(query.split()[-1])


class Rows:
    """An embedder whose vectors have the width and the sign that a test gives it."""

    name = "rows"

    def __init__(self, *, width: int = WIDTH, sign: float = 1.0) -> None:
        self.width = width
        self.sign = sign

    def embed(self, texts: Any) -> Any:
        rows = [np.resize(words_vector(text.split()[-1]), self.width) for text in texts]
        return np.asarray(rows, dtype=np.float32) * self.sign


def test_g2_the_dimension_is_that_of_the_embedder(corpus: Corpus, llm: DigestLLM) -> None:
    with open_cache("memory://", embedder=LastWord(), calibration=0.9) as cache:
        engine = engine_on(cache, corpus, llm)
        engine.query(QUESTION)
        assert report(engine.query(PARAPHRASE))["level"] == "semantic"


def test_g4_a_vector_of_a_wrong_size_is_counted_and_never_compared(
    corpus: Corpus, llm: DigestLLM
) -> None:
    embedder = Rows()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        engine = engine_on(cache, corpus, llm)
        engine.query(QUESTION)
        embedder.width = WIDTH // 2
        assert not report(engine.query(PARAPHRASE))["hit"]
        counted = cache.core.counters.of(None)
        assert any(name.startswith("error.") and counted[name] for name in counted), counted
        assert report(engine.query(QUESTION))["level"] == "exact"


def test_g8_vectors_of_a_changed_embedder_are_never_compared(
    tmp_path: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    for sign in (1.0, -1.0):  # the negative of a vector has its width and its norm
        with open_cache(url, embedder=Rows(sign=sign), calibration=0.9) as cache:
            engine = engine_on(cache, corpus, llm)
            found = [report(engine.query(each))["level"] for each in (PARAPHRASE, QUESTION)]
            assert found == [None, "semantic"]


@pytest.mark.parametrize("grounding", ["recheck", "version"])
def test_the_embedder_of_the_cache_is_none_of_the_engines_stamps(
    grounding: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    with open_cache("memory://", embedder=Rows(), calibration=0.9) as cache:
        engine = CachedQueryEngine(
            corpus.engine(llm), cache=cache, grounding=grounding, version="1"
        )
        engine.query(QUESTION)
        outcome: Any = engine.explain(QUESTION).outcome
        assert outcome.entry.stamps.embedder == cache.core.intake.stamps.embedder != ""
