"""What is in the identity of an engine, and what is refused for want of one."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, WordsEmbedding
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llama_index_stampcache import CachedQueryEngine
from llama_index_stampcache.engines.fingerprint import Fingerprint
from llama_index_stampcache.engines.inner import Inner
from stampcache import Cache, ConfigError, Stamps
from stampcache.adapters import Validity

QUESTION = "how long is annual leave"


def is_hit(engine: CachedQueryEngine) -> bool:
    response: Any = engine.query(QUESTION)
    return bool(response.metadata["cache"]["hit"])


def described(inner: BaseQueryEngine) -> str:
    settings = Fingerprint(Inner(inner), Validity(), known=Stamps()).settings()
    return json.dumps(settings.params)


MUTATIONS: dict[str, Callable[[DigestLLM], None]] = {
    "temperature": lambda llm: setattr(llm, "temperature", 0.7),
    "model": lambda llm: setattr(llm, "model", "other"),
    "endpoint": lambda llm: setattr(llm, "api_base", "http://two"),
    "system prompt": lambda llm: setattr(llm, "system_prompt", "Be brief."),
    "unknown parameter": lambda llm: llm.additional_kwargs.update(reasoning_effort="high"),
    "nested parameter": lambda llm: llm.additional_kwargs.update(extra_body={"top_k": 1}),
    "true is not one": lambda llm: llm.additional_kwargs.update(flag=1),
}


@pytest.mark.parametrize("grounding", ["recheck", "none"])
@pytest.mark.parametrize("what", sorted(MUTATIONS))
def test_a2_a6_a_change_of_the_model_between_two_calls_is_a_miss(
    what: str, grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.additional_kwargs["flag"] = True
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX)
    assert [is_hit(engine), is_hit(engine)] == [False, True]
    MUTATIONS[what](llm)
    assert [is_hit(engine), is_hit(engine)] == [False, True]


def test_the_api_key_is_neither_part_of_the_identity_nor_read(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.additional_kwargs["extra_headers"] = {"Authorization": "Bearer sk-nested"}
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    is_hit(engine)
    assert "sk-" not in described(engine.inner)
    llm.api_key = "sk-rotated"
    assert is_hit(engine)


def test_d1_prompts_are_keyed_as_they_are_at_each_call(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = corpus.engine(llm)
    engine = CachedQueryEngine(inner, cache=cache)
    is_hit(engine)
    inner.update_prompts(
        {"response_synthesizer:text_qa_template": PromptTemplate("{context_str} {query_str}!")}
    )
    assert not is_hit(engine)


def test_the_response_mode_is_keyed(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    modes = [ResponseMode.COMPACT, ResponseMode.TREE_SUMMARIZE, ResponseMode.ACCUMULATE]
    engines = [
        CachedQueryEngine(corpus.engine(llm, response_mode=mode), cache=cache) for mode in modes
    ]
    assert [is_hit(engine) for engine in engines] == [False] * 3
    assert [is_hit(engine) for engine in engines] == [True] * 3


RETRIEVERS: list[dict[str, Any]] = [
    {"similarity_top_k": 1},
    {"similarity_top_k": 2},
    {"similarity_top_k": 1, "vector_store_query_mode": "mmr"},
    {"similarity_top_k": 1, "filters": MetadataFilters(filters=[MetadataFilter(key="a", value=1)])},
    {"similarity_top_k": 1, "filters": MetadataFilters(filters=[MetadataFilter(key="b", value=1)])},
]


def test_a14_settings_of_the_retriever_are_keyed(corpus: Corpus, llm: DigestLLM) -> None:
    seen = {
        described(
            RetrieverQueryEngine.from_args(VectorIndexRetriever(corpus.index, **options), llm=llm)
        )
        for options in RETRIEVERS
    }
    assert len(seen) == len(RETRIEVERS)


def test_the_embedding_model_is_keyed(llm: DigestLLM) -> None:
    def engine(name: str) -> BaseQueryEngine:
        model = WordsEmbedding(model_name=name)
        return VectorStoreIndex.from_documents([], embed_model=model).as_query_engine(llm=llm)

    assert described(engine("words")) == described(engine("words"))
    assert described(engine("words")) != described(engine("letters"))


def test_postprocessors_are_keyed(corpus: Corpus, llm: DigestLLM) -> None:
    seen = {
        described(corpus.engine(llm, node_postprocessors=processors))
        for processors in (
            [],
            [SimilarityPostprocessor(similarity_cutoff=0.1)],
            [SimilarityPostprocessor(similarity_cutoff=0.2)],
            [SimilarityPostprocessor(similarity_cutoff=0.1)] * 2,
        )
    }
    assert len(seen) == 4


class Filtering(BaseNodePostprocessor):
    """Keeps the nodes that a function accepts."""

    keep: Callable[[NodeWithScore], bool]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [node for node in nodes if self.keep(node)]


def test_a16_functions_are_known_by_what_they_do(corpus: Corpus, llm: DigestLLM) -> None:
    def engine(keep: Callable[[NodeWithScore], bool]) -> BaseQueryEngine:
        return corpus.engine(llm, node_postprocessors=[Filtering(keep=keep)])

    some, all_ = (lambda node: len(node.text) > 3), (lambda node: len(node.text) > 0)
    assert described(engine(some)) != described(engine(all_))


def test_a25_what_has_no_identity_needs_a_version(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    client = object()
    inner = corpus.engine(
        llm, node_postprocessors=[Filtering(keep=lambda node: client is not None)]
    )
    with pytest.raises(ConfigError, match=r'version="..."'):
        CachedQueryEngine(inner, cache=cache)
    first = CachedQueryEngine(inner, cache=cache, version="1")
    second = CachedQueryEngine(inner, cache=cache, version="2")
    assert [is_hit(first), is_hit(first), is_hit(second)] == [False, True, False]


def test_a_part_that_loses_its_identity_later_is_not_cached(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    is_hit(engine)
    llm.additional_kwargs["client"] = object()
    response: Any = engine.query(QUESTION)
    assert response.metadata["cache"]["reason"] == "uncacheable"
    assert cache.stats().entries == 1


class Remote(VectorIndexRetriever):
    """A retriever with an attribute of which nothing is known."""

    def __init__(self, index: VectorStoreIndex) -> None:
        super().__init__(index, similarity_top_k=1)
        self.client = object()


def test_an_opaque_retriever_is_fine_while_its_evidence_is_rechecked(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = RetrieverQueryEngine.from_args(Remote(corpus.index), llm=llm)
    engine = CachedQueryEngine(inner, cache=cache)
    assert [is_hit(engine), is_hit(engine)] == [False, True]
    with pytest.raises(ConfigError, match="client is a object"):
        CachedQueryEngine(inner, cache=cache, grounding="none", stamps=INDEX)


def test_without_rechecks_two_indexes_never_share(cache: Cache, llm: DigestLLM) -> None:
    leave = Corpus({"leave": "annual leave is thirty days"})
    other = Corpus({"leave": "annual leave is forty days"})
    engines = [
        CachedQueryEngine(each.engine(llm), cache=cache, grounding="none", stamps=INDEX)
        for each in (leave, other)
    ]
    assert [is_hit(engine) for engine in engines] == [False, False]
    named = [
        CachedQueryEngine(
            each.engine(llm), cache=cache, grounding="none", stamps=INDEX, corpus=name
        )
        for each, name in ((leave, "one"), (other, "two"), (leave, "one"))
    ]
    assert [is_hit(engine) for engine in named] == [False, False, True]


def test_stamps_are_keyed(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    hits = [
        is_hit(CachedQueryEngine(corpus.engine(llm), cache=cache, stamps=Stamps(index=stamp)))
        for stamp in ("a", "b", "a")
    ]
    assert hits == [False, False, True]


def test_an_engine_inside_another_is_known_by_what_it_would_run(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    def nested() -> CachedQueryEngine:
        inside = CachedQueryEngine(corpus.engine(llm), cache=cache)
        return CachedQueryEngine(inside, cache=cache)

    assert [is_hit(nested()), is_hit(nested())] == [False, True]
    llm.temperature = 0.5
    assert not is_hit(nested())
