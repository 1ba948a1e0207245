"""Versions: what an engine shows, what it is given, and what is refused or not seen for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, OneStep, reasons, report, told
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, ConfigError, Hit, Manifest, Stamps, open_cache

QUESTION = "how long is annual leave"
GROUNDINGS = ["recheck", "version", "none"]
TEMPLATE = "response_synthesizer:text_qa_template"


def cached(inner: BaseQueryEngine, cache: Cache | str, **options: Any) -> CachedQueryEngine:
    given = {"corpus": "handbook", "stamps": INDEX, **options}
    return CachedQueryEngine(inner, cache=cache, **given)


def kept(engine: CachedQueryEngine, cache: Cache) -> Stamps:
    """Ask, and return the stamps of the entry."""
    engine.query(QUESTION)
    outcome = engine.explain(QUESTION).outcome
    assert isinstance(outcome, Hit)
    return outcome.entry.stamps


def with_filter(key: str) -> dict[str, Any]:
    """A filter that all documents pass: none has this key, and versions differ on what ``NE`` is then."""
    absent = MetadataFilter(key=key, value=None, operator=FilterOperator.IS_EMPTY)
    return {"filters": MetadataFilters(filters=[absent])}


def made(corpus: Corpus, what: str) -> BaseQueryEngine:
    """An engine that differs from the one of the other tests in one thing."""
    llm = DigestLLM(model="other") if what == "model" else DigestLLM()
    options: dict[str, Any] = {
        "top k": {"similarity_top_k": 2},
        "filters": with_filter("a"),
        "other filters": with_filter("b"),
        "documents": {"doc_ids": ["leave"]},
        "nodes": {"node_ids": list(corpus.index.index_struct.nodes_dict.values())[:1]},
    }.get(what, {})
    after: dict[str, Any] = {
        "postprocessor": [SimilarityPostprocessor(similarity_cutoff=0.01)],
        "other postprocessor": [SimilarityPostprocessor(similarity_cutoff=0.02)],
    }
    retriever = VectorIndexRetriever(corpus.index, **{"similarity_top_k": 1, **options})
    inner = RetrieverQueryEngine.from_args(
        retriever, llm=llm, node_postprocessors=after.get(what, [])
    )
    if what == "prompt":
        inner.update_prompts({TEMPLATE: PromptTemplate("{context_str} -- {query_str}")})
    return inner


CHANGES = [
    "nothing", "top k", "filters", "other filters", "documents", "nodes", "postprocessor",
    "other postprocessor", "prompt", "model",
]  # fmt: skip


@pytest.mark.parametrize("grounding", GROUNDINGS)
def test_another_setting_makes_the_answers_invisible(
    grounding: Any, cache: Cache, corpus: Corpus
) -> None:
    def asked() -> dict[str, list[str]]:
        return {
            what: reasons(cached(made(corpus, what), cache, grounding=grounding), QUESTION)
            for what in changes
        }

    # rechecked, a choice of nodes shows in the evidence
    changes = [what for what in CHANGES if (what, grounding) != ("nodes", "recheck")]
    assert asked() == {what: ["not found"] for what in changes}
    assert asked() == {what: ["hit"] for what in changes}


@pytest.mark.parametrize("grounding", GROUNDINGS)
@pytest.mark.parametrize("stamp", ["model", "tokenizer", "embedder", "prompt", "index"])
def test_another_stamp_makes_the_answers_invisible(
    stamp: str, grounding: Any, cache: Cache, corpus: Corpus
) -> None:
    def asked(version: str) -> list[str]:
        stamps = Stamps(**{"index": "1", stamp: version})
        engine = cached(made(corpus, "nothing"), cache, grounding=grounding, stamps=stamps)
        return reasons(engine, QUESTION)

    assert [asked("a"), asked("b")] == [["not found"], ["not found"]]
    assert [asked("a"), asked("b")] == [["hit"], ["hit"]]


def test_the_prompts_and_the_index_are_stamped_as_they_are_seen(
    cache: Cache, corpus: Corpus
) -> None:
    seen = {
        what: kept(cached(made(corpus, what), cache, stamps=Stamps()), cache) for what in CHANGES
    }
    plain = seen["nothing"]
    assert plain.prompt.startswith("seen:") and plain.index.startswith("seen:")
    assert plain.model == "digest"
    assert {what for what in CHANGES if seen[what].prompt != plain.prompt} == {"prompt"}
    assert {what for what in CHANGES if seen[what].index == plain.index} == {
        "nothing", "nodes", "prompt", "model",
    }  # fmt: skip


def test_answers_are_invalidated_by_a_stamp_that_was_seen(cache: Cache, corpus: Corpus) -> None:
    engine = cached(made(corpus, "nothing"), cache, grounding="version")
    seen = kept(engine, cache)
    assert seen.index == "1"
    assert cache.invalidate(stamps=Stamps(prompt=seen.prompt)) == 1
    assert reasons(engine, QUESTION) == ["what it was made from changed"]


def test_given_stamps_go_before_what_is_seen(corpus: Corpus) -> None:
    given = Stamps(model="m", tokenizer="t", prompt="p", index="i")
    with open_cache("memory://") as cache:
        assert kept(cached(made(corpus, "nothing"), cache, stamps=given), cache) == given
    with open_cache("memory://", stamps=Stamps(prompt="p", index="i")) as cache:
        stamps = kept(cached(made(corpus, "nothing"), cache, stamps=Stamps()), cache)
        assert stamps == Stamps(model="digest", prompt="p", index="i")


def test_an_engine_in_one_step_shows_no_index(cache: Cache, llm: DigestLLM) -> None:
    inner = OneStep(llm=llm, told=[told("thirty days", "leave")])
    engine = CachedQueryEngine(inner, cache=cache, grounding="none", version="1")
    assert kept(engine, cache).index == ""


# -- refused at construction ---------------------------------------------------------------------


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown index": ({"grounding": "version", "stamps": None}, "version must be known"),
    "an unknown index, none": ({"grounding": "none", "stamps": None}, "version must be known"),
    "an unknown kind": ({"kind": "gossip"}, "kind= is 'gossip'"),
    "an unknown version_of": ({"version_of": "chunks"}, "version_of= is 'chunks'"),
    "two indexes": ({"manifest": Manifest(corpus="handbook", version="2")}, "mixture of index"),
    "two corpora": ({"manifest": Manifest(corpus="law", version="2")}, "mixture of corpus"),
    "two tokenizers": (
        {
            "stamps": Stamps(tokenizer="gpt-4o"),
            "manifest": Manifest(corpus="handbook", version="2", tokenizer="deepseek-v3"),
        },
        "mixture of tokenizer versions.*deepseek-v3.*gpt-4o",
    ),
    "no manifest": ({"stamps": None, "manifest": "nowhere.json"}, "nowhere.json cannot be read"),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_what_contradicts_or_is_unknown_is_refused(
    what: str, tmp_path: Path, cache: Cache, corpus: Corpus
) -> None:
    options, said = REFUSED[what]
    for where in (cache, f"sqlite:///{tmp_path / 'rag.db'}"):  # the file is closed again
        with pytest.raises(ConfigError, match=said):
            cached(made(corpus, "nothing"), where, **options)


@pytest.mark.parametrize("grounding", ["version", "none"])
@pytest.mark.parametrize(
    "known",
    [
        {"stamps": INDEX},
        {"manifest": Manifest(corpus="handbook", version="1")},
        {"version": "1"},
    ],
)
def test_an_index_is_known_in_each_of_these_ways(
    known: dict[str, Any], grounding: Any, cache: Cache, corpus: Corpus
) -> None:
    given = {"stamps": None, **known}
    engine = cached(made(corpus, "nothing"), cache, grounding=grounding, **given)
    assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]


def test_the_cache_may_know_the_index(corpus: Corpus) -> None:
    with open_cache("memory://", manifest=Manifest(corpus="handbook", version="1")) as cache:
        engine = cached(made(corpus, "nothing"), cache, grounding="version", stamps=None)
        assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]


def test_a_manifest_names_the_corpus_and_the_index(
    tmp_path: Path, cache: Cache, corpus: Corpus
) -> None:
    path = tmp_path / "manifest.json"

    def asked(version: str) -> list[str]:
        manifest = Manifest(corpus="law", version=version, tokenizer="deepseek-v3")
        manifest.write(path)
        engine = CachedQueryEngine(
            made(corpus, "nothing"), cache=cache, grounding="version", manifest=path
        )
        outcome = reasons(engine, QUESTION)
        stamps = kept(engine, cache)
        assert (stamps.tokenizer, stamps.index) == ("deepseek-v3", manifest.index)
        return outcome

    assert [asked("1"), asked("2"), asked("2")] == [["not found"], ["not found"], ["hit"]]
    assert cache.invalidate(corpus="law", source="leave") == 2


# -- which index ---------------------------------------------------------------------------------


def rebuilt() -> Corpus:
    return Corpus({"leave": "annual leave is thirty days", "lunch": "lunch is at noon"})


@pytest.mark.parametrize("grounding", GROUNDINGS)
def test_an_engine_of_an_index_built_anew_finds_the_answers_by_its_corpus(
    grounding: Any, cache: Cache, llm: DigestLLM
) -> None:
    def engine() -> CachedQueryEngine:
        inner = rebuilt().index.as_query_engine(llm=llm, similarity_top_k=1)
        return cached(inner, cache, grounding=grounding)

    assert [reasons(engine(), QUESTION) for _ in range(2)] == [["not found"], ["hit"]]


def test_the_nodes_that_an_index_hands_over_are_no_choice_of_the_user(
    cache: Cache, llm: DigestLLM
) -> None:
    corpus, lunch = rebuilt(), "when is lunch served"

    def engine(**options: Any) -> CachedQueryEngine:
        inner = corpus.index.as_query_engine(llm=llm, similarity_top_k=1, **options)
        return cached(inner, cache, grounding="version")

    first = engine()
    assert reasons(first, QUESTION, lunch) == ["not found"] * 2
    corpus.edit("leave", "annual leave is forty days")
    cache.invalidate(corpus="handbook", source="leave")
    assert reasons(first, lunch) == reasons(engine(), lunch) == ["hit"]
    answer = engine().query(QUESTION)
    assert report(answer)["reason"] == "what it was made from changed"
    assert "forty" in answer.source_nodes[0].node.get_content()


NESTED: dict[str, Callable[[BaseQueryEngine, Cache], CachedQueryEngine]] = {
    "stamps": lambda inner, cache: cached(inner, cache, stamps=Stamps(prompt="2")),
    "version": lambda inner, cache: cached(inner, cache, version="2"),
}


@pytest.mark.parametrize("what", sorted(NESTED))
def test_what_an_engine_inside_another_is_given_is_keyed(
    what: str, cache: Cache, corpus: Corpus
) -> None:
    inner = made(corpus, "nothing")
    outer = [
        cached(inside, cache, grounding="version")
        for inside in (cached(inner, cache), NESTED[what](inner, cache), cached(inner, cache))
    ]
    assert [reasons(each, QUESTION) for each in outer] == [["not found"], ["not found"], ["hit"]]


def test_an_engine_in_one_step_stays_one_inside_another(cache: Cache, llm: DigestLLM) -> None:
    inner = OneStep(llm=llm, told=[told("thirty days", "leave")])
    inside = cached(inner, cache, grounding="version")
    with pytest.raises(ConfigError, match='pass grounding="none" or "version"'):
        cached(inside, cache)
    assert reasons(cached(inside, cache, grounding="version"), QUESTION, QUESTION)[1] == "hit"
