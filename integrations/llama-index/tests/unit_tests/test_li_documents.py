"""Documents change under `grounding="recheck"`: which answers are still served."""

from typing import Any

from llama_fakes import Corpus, DigestLLM, reasons, report

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache

QUESTION = "how long is annual leave"


def test_f1_a_new_relevant_document_is_answered_from(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    before = engine.query(QUESTION)
    corpus.insert("news", "annual leave is now forty days long")
    after = engine.query(QUESTION)
    assert report(after)["reason"] == "evidence changed"
    assert str(after) != str(before)


def test_f2_an_edited_document_takes_its_answers_and_no_others(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache)
    engine.query(QUESTION)
    engine.query("when is lunch served")
    corpus.edit("leave", "annual leave is forty days")
    assert report(engine.query(QUESTION))["reason"] == "evidence changed"
    assert report(engine.query("when is lunch served"))["hit"]


def test_f2_an_engine_built_after_an_ingestion_finds_the_answers_that_still_hold(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    def ask(question: str) -> dict[str, Any]:
        inner = corpus.index.as_query_engine(llm=llm, similarity_top_k=1)
        return report(CachedQueryEngine(inner, cache=cache).query(question))

    ask(QUESTION), ask("when is lunch served")
    corpus.edit("leave", "annual leave is forty days")
    assert ask("when is lunch served")["hit"] and not ask(QUESTION)["hit"]


def test_f3_what_was_not_known_before_the_ingest_is_not_served_after_it(cache: Cache) -> None:
    llm, empty = DigestLLM(), Corpus({})
    engine = CachedQueryEngine(empty.engine(llm), cache=cache)
    assert str(engine.query(QUESTION)) == "Empty Response"
    empty.insert("leave", "annual leave is thirty days")
    assert str(engine.query(QUESTION)).startswith("answer ")


def test_f5_answers_are_invalidated_by_source_and_corpus(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache, corpus="handbook")
    engine.query(QUESTION)
    engine.query("when is lunch served")
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    assert not report(engine.query(QUESTION))["hit"]
    assert cache.invalidate(corpus="handbook") == 2
    assert cache.invalidate(corpus="other") == 0


def test_f9_a_deleted_document_leaves_no_answer(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache)
    engine.query(QUESTION)
    corpus.delete("leave")
    assert not report(engine.query(QUESTION))["hit"]


def test_f15_the_same_text_under_a_new_id_is_the_same_evidence(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache)
    engine.query(QUESTION)
    corpus.delete("leave")
    corpus.insert("renamed", "annual leave is thirty days")
    hit = engine.query(QUESTION)
    assert report(hit)["hit"]
    assert hit.source_nodes[0].node.ref_doc_id == "renamed"  # the nodes are those found now
    assert set(hit.metadata or {}) == {hit.source_nodes[0].node_id, "cache"}


def test_metadata_that_reaches_the_model_is_evidence(cache: Cache, llm: DigestLLM) -> None:
    corpus = Corpus({})
    corpus.insert("leave", "annual leave is thirty days", {"year": 2024})
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.query(QUESTION)
    corpus.delete("leave")
    corpus.insert("leave", "annual leave is thirty days", {"year": 2025})
    assert report(engine.query(QUESTION))["reason"] == "evidence changed"


def test_f16_the_same_id_with_another_text_is_another_evidence(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache)
    engine.query(QUESTION)
    corpus.edit("leave", "annual leave is thirty days.")
    assert reasons(engine, QUESTION) == ["evidence changed"]
