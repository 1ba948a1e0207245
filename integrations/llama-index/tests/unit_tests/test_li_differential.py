"""Whatever happens to the documents, an exact hit is what the uncached engine would answer now."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from llama_fakes import Corpus, DigestLLM

from llama_index_stampcache import CachedQueryEngine
from stampcache import open_cache

WORDS = ["leave", "travel", "lunch", "days", "train"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
names = st.sampled_from(["a", "b", "c", "d"])
steps = st.one_of(
    st.tuples(st.just("ask"), texts, st.booleans()),
    st.tuples(st.just("ask"), texts, st.booleans()),
    st.tuples(st.just("put"), names, texts),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("model"), st.sampled_from([0.0, 0.5])),
)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(steps, min_size=4, max_size=25))
def test_f11_an_exact_hit_equals_what_the_uncached_engine_answers(
    steps: list[tuple[Any, ...]],
) -> None:
    corpus, llm, plain_llm = Corpus({"a": "annual leave"}), DigestLLM(), DigestLLM()
    documents = {"a"}
    with open_cache("memory://") as cache:
        single = CachedQueryEngine(corpus.engine(llm), cache=cache)
        stream = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
        plain = corpus.engine(plain_llm)
        for step in steps:
            match step:
                case ("ask", question, streaming):
                    engine = stream if streaming else single
                    assert_same(engine.query(question), plain.query(question))
                case ("put", name, text):
                    if name in documents:
                        corpus.delete(name)
                    corpus.insert(name, text)
                    documents.add(name)
                case ("delete", name):
                    if name in documents:
                        corpus.delete(name)
                        documents.discard(name)
                case ("model", temperature):
                    llm.temperature = plain_llm.temperature = temperature


def assert_same(answered: Any, expected: Any) -> None:
    report = answered.metadata.pop("cache")
    assert str(answered) == str(expected), report
    assert answered.source_nodes == expected.source_nodes
    assert (answered.metadata or None) == (expected.metadata or None)
