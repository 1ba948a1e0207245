"""`grounding="version"` and `"none"`: hits without a retrieval, until a change is announced."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_fakes import (
    INDEX,
    Corpus,
    DigestLLM,
    OneStep,
    TopicEmbedder,
    reasons,
    report,
    told,
)
from llama_index.core.schema import ImageNode, MediaResource, Node, NodeWithScore

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, open_cache

QUESTION, LUNCH = "how long is annual leave", "when is lunch served"
CHANGED = "what it was made from changed"


def versioned(corpus: Corpus, llm: DigestLLM, cache: Cache, **options: Any) -> CachedQueryEngine:
    return CachedQueryEngine(
        corpus.engine(llm, top_k=1),
        cache=cache,
        grounding="version",
        corpus="handbook",
        stamps=INDEX,
        **options,
    )


def test_f2_a_changed_source_takes_its_answers_and_no_others(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    before = str(engine.query(QUESTION))
    reasons(engine, LUNCH)
    corpus.edit("leave", "annual leave is forty days")
    assert timed.invalidate(corpus="handbook", source="leave") == 1
    retrieved = corpus.embedding.retrievals
    assert reasons(engine, LUNCH, LUNCH) == ["hit", "hit"]
    assert corpus.embedding.retrievals == retrieved
    after = engine.query(QUESTION)
    assert report(after)["reason"] == CHANGED and str(after) != before
    assert corpus.embedding.retrievals == retrieved + 1
    assert reasons(engine, QUESTION, LUNCH) == ["hit", "hit"]


async def test_a_hit_in_a_task_retrieves_nothing(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    missed = await engine.aquery(QUESTION)
    hit = await engine.aquery(QUESTION)
    assert report(hit)["hit"] and corpus.embedding.retrievals == 1
    assert str(hit) == str(missed) and hit.source_nodes == missed.source_nodes
    timed.invalidate(corpus="handbook", source="leave")
    assert report(await engine.aquery(QUESTION))["reason"] == CHANGED


@pytest.mark.parametrize("what", ["source", "chunk", "corpus", "entry"])
def test_f5_an_answer_is_invalidated_by_each_part_that_it_depends_on(
    what: str, timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    engine.query(QUESTION)
    hit = engine.query(QUESTION)
    chunk = hit.source_nodes[0].node.node_id
    named: dict[str, dict[str, str]] = {
        "source": {"source": "leave"},
        "chunk": {"chunk": chunk},
        "corpus": {"corpus": "handbook"},
        "entry": {"entry": report(hit)["entry_id"]},
    }
    assert timed.invalidate(corpus="another", source="leave") == 0
    assert timed.invalidate(**named[what]) == 1  # type: ignore[arg-type]
    assert reasons(engine, QUESTION, QUESTION) == [CHANGED, "hit"]


def test_f1_a_new_document_is_noticed_by_what_depends_on_the_whole_corpus(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    cited = versioned(corpus, llm, timed)
    whole = versioned(corpus, llm, timed, version_of="corpus")
    for engine in (cited, whole):
        assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]
    corpus.insert("news", "annual leave is how long")
    timed.invalidate(corpus="handbook", source="news")
    assert reasons(cited, QUESTION) == ["hit"]  # which is what "sources" says
    retrieved = corpus.embedding.retrievals
    assert reasons(whole, QUESTION, QUESTION) == [CHANGED, "hit"]
    assert corpus.embedding.retrievals == retrieved + 1
    timed.invalidate(corpus="another", source="news")
    assert reasons(whole, QUESTION) == ["hit"]


@pytest.mark.parametrize("version_of", ["sources", "corpus"])
def test_f3_an_answer_from_no_documents_goes_with_the_first_write(
    version_of: Any, timed: Cache, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(
        OneStep(llm=llm, told=[]),
        cache=timed,
        grounding="version",
        version_of=version_of,
        corpus="handbook",
        stamps=INDEX,
    )
    assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]
    assert timed.invalidate(corpus="another") == 0
    assert timed.invalidate(corpus="handbook", source="leave") == 1
    assert reasons(engine, QUESTION) == [CHANGED]


def test_f9_a_deleted_document_leaves_no_answer_under_version(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    engine.query(QUESTION)
    corpus.delete("leave")
    timed.invalidate(corpus="handbook", source="leave")
    again = engine.query(QUESTION)
    assert report(again)["reason"] == CHANGED
    assert again.source_nodes[0].node.ref_doc_id != "leave"


def test_f11_a_hit_under_version_is_what_a_miss_would_be(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    for text in ("annual leave is forty days", "annual leave is ten days"):
        corpus.edit("leave", text)
        timed.invalidate(corpus="handbook", source="leave")
        fresh = corpus.engine(DigestLLM(), top_k=1).query(QUESTION)
        missed, hit = engine.query(QUESTION), engine.query(QUESTION)
        assert [report(missed)["hit"], report(hit)["hit"]] == [False, True]
        for response in (missed, hit):
            assert str(response) == str(fresh)
            assert response.source_nodes == fresh.source_nodes


def test_two_caches_on_one_file_see_each_others_changes(
    tmp_path: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with open_cache(url) as one, open_cache(url) as other:
        mine, theirs = versioned(corpus, llm, one), versioned(corpus, llm, other)
        assert reasons(mine, QUESTION) == ["not found"]
        assert reasons(theirs, QUESTION) == ["hit"]
        one.invalidate(corpus="handbook", source="leave")
        assert reasons(theirs, QUESTION, QUESTION) == [CHANGED, "hit"]
        assert reasons(mine, QUESTION) == ["hit"]
        other.invalidate(corpus="handbook")
        assert reasons(mine, QUESTION) == [CHANGED]


def test_a_paraphrase_of_an_invalidated_answer_is_made_anew(corpus: Corpus, llm: DigestLLM) -> None:
    paraphrase = "tell me about annual leave"
    with open_cache("memory://", embedder=TopicEmbedder(), calibration=0.9) as cache:
        engine = versioned(corpus, llm, cache)
        engine.query(QUESTION)
        hit = engine.query(paraphrase)
        assert report(hit)["level"] == "semantic" and corpus.embedding.retrievals == 1
        cache.invalidate(corpus="handbook", source="leave")
        assert not report(engine.query(paraphrase))["hit"]


def opaque(llm: DigestLLM, cache: Cache, nodes: Any, **options: Any) -> CachedQueryEngine:
    given: dict[str, Any] = {"grounding": "version", "corpus": "handbook", "stamps": INDEX}
    return CachedQueryEngine(OneStep(llm=llm, told=nodes), cache=cache, **{**given, **options})


def test_an_engine_in_one_step_tells_its_evidence_beside_its_answer(
    timed: Cache, llm: DigestLLM
) -> None:
    engine = opaque(llm, timed, [told("thirty days", "leave"), told("noon", "lunch")])
    assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]
    assert timed.invalidate(corpus="handbook", source="travel") == 0
    assert timed.invalidate(corpus="handbook", source="lunch") == 1
    assert reasons(engine, QUESTION) == [CHANGED]


def test_a_node_without_a_document_depends_on_all_of_them(timed: Cache, llm: DigestLLM) -> None:
    nameless = told("thirty days", "leave")
    nameless.node.relationships = {}
    engine = opaque(llm, timed, [nameless])
    engine.query(QUESTION)
    assert timed.invalidate(corpus="handbook", source="anything") == 1


def test_a_file_is_named_by_its_metadata_and_not_by_the_id_of_its_document(
    timed: Cache, llm: DigestLLM
) -> None:
    named = told("thirty days", "0fc1")
    named.node.metadata = {"file_name": "leave.md"}
    engine = opaque(llm, timed, [named])
    engine.query(QUESTION)
    assert timed.invalidate(corpus="handbook", source="lunch.md") == 0
    assert timed.invalidate(corpus="handbook", source="leave.md") == 1
    assert reasons(engine, QUESTION) == [CHANGED]
    assert timed.invalidate(corpus="handbook", chunk=named.node.node_id) == 1


PICTURE = NodeWithScore(node=Node(image_resource=MediaResource(path=Path("/leave.png"))))
UNKNOWN: dict[str, list[NodeWithScore] | None] = {
    "told nothing": None,
    "a picture": [PICTURE],
    "a picture beside a text": [told("thirty days", "leave"), PICTURE],
    "an image of the old kind": [NodeWithScore(node=ImageNode(image_path="/leave.png"))],
}


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize("what", sorted(UNKNOWN))
def test_an_answer_from_unknown_evidence_is_given_and_not_stored(
    what: str, aio: bool, llm: DigestLLM
) -> None:
    with open_cache("memory://", strict=True) as cache:
        engine = opaque(llm, cache, UNKNOWN[what])
        for _ in range(2):
            response = asyncio.run(engine.aquery(QUESTION)) if aio else engine.query(QUESTION)
            assert str(response).startswith("answer ") and not report(response)["hit"]
        assert llm.calls == 2 and cache.stats().entries == 0
        assert cache.core.counters.of(None)["adapter.evidence_unknown"] == 2


def test_under_none_an_answer_from_unknown_evidence_is_stored(llm: DigestLLM) -> None:
    with open_cache("memory://", strict=True) as cache:
        engine = opaque(llm, cache, [PICTURE], grounding="none")
        assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]
        assert "adapter.evidence_unknown" not in cache.core.counters.of(None)
        assert cache.invalidate(corpus="handbook", source="leave") == 1  # it may be any


def test_none_trusts_time_and_still_takes_orders(
    timed: Cache, clock: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(
        corpus.engine(llm, top_k=1), cache=timed, grounding="none", stamps=INDEX, kind="price"
    )
    engine.query(QUESTION)
    corpus.edit("leave", "annual leave is forty days")
    assert reasons(engine, QUESTION) == ["hit"] and corpus.embedding.retrievals == 1
    clock.advance(3_601)
    assert reasons(engine, QUESTION, QUESTION) == ["expired", "hit"]
    assert timed.invalidate(source="leave") == 1
    assert reasons(engine, QUESTION) == [CHANGED]


def test_groundings_do_not_share(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    def asked(**options: Any) -> list[str]:
        inner = corpus.engine(llm, top_k=1)
        engine = CachedQueryEngine(inner, cache=cache, corpus="handbook", stamps=INDEX, **options)
        return reasons(engine, QUESTION)

    each: list[dict[str, Any]] = [
        {"grounding": "none"},
        {"grounding": "version"},
        {"grounding": "version", "version_of": "corpus"},
        {"grounding": "recheck"},
    ]
    assert [asked(**options) for options in each] == [["not found"]] * 4
    assert [asked(**options) for options in each] == [["hit"]] * 4
