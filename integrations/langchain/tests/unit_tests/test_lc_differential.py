"""A cached chain beside an uncached one over documents that change: exact hits are always true."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_fakes import CountingChat, Shelf

import stampcache
from langchain_stampcache import CachedChain

WORDS = ("leave", "travel", "lunch", "days")
PROMPT = ChatPromptTemplate.from_template("{context} / {input}")
words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
steps = st.one_of(
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("batch"), texts),
    st.tuples(st.just("put"), st.tuples(words, texts)),
    st.tuples(st.just("remove"), words),
    st.tuples(st.just("model"), st.sampled_from([0.0, 0.5])),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
)


def echo(messages: list[Any], call: int) -> AIMessage:
    """Answer with all that was read, so that another input is another answer."""
    return AIMessage(f"read: {messages[-1].text}")


class Pair:
    def __init__(self) -> None:
        self.shelf = Shelf(k=2)
        self.model = CountingChat(temperature=0.0).answering(echo)
        answer = PROMPT | self.model | StrOutputParser()
        cache = stampcache.open_cache("memory://")
        self.cached = CachedChain(retriever=self.shelf, answer=answer, cache=cache)
        self.answer = answer
        self.tenant = "a"
        self.seen: set[tuple[object, ...]] = set()

    def ask(self, question: str) -> None:
        documents = self.shelf.invoke(question)
        expected = self.answer.invoke({"input": question, "context": documents})
        with stampcache.scope(tenant=self.tenant):
            self.check(self.cached.invoke({"input": question}), expected, documents)

    def batch(self, question: str) -> None:
        asked = [question, f"{question} {question}", question]
        with stampcache.scope(tenant=self.tenant):
            results = self.cached.batch([{"input": each} for each in asked])
        pairs = list(zip(asked, results, strict=True))  # whichever ran first made the answer
        for each, result in sorted(pairs, key=lambda pair: bool(pair[1]["cache"]["hit"])):
            documents = self.shelf.invoke(each)
            expected = self.answer.invoke({"input": each, "context": documents})
            self.check(result, expected, documents)

    def check(self, result: dict[str, Any], expected: str, documents: list[Any]) -> None:
        assert (result["answer"], result["context"]) == (expected, documents)
        place = (self.tenant, self.model.temperature, expected)
        if result["cache"]["hit"]:
            assert place in self.seen
        self.seen.add(place)

    def put(self, change: tuple[str, str]) -> None:
        self.shelf.put(*change)

    def remove(self, name: str) -> None:
        self.shelf.remove(name)

    def set_model(self, temperature: float) -> None:
        self.model.temperature = temperature

    def set_tenant(self, tenant: str) -> None:
        self.tenant = tenant


@settings(max_examples=60)
@given(st.lists(steps, min_size=3, max_size=25))
def test_exact_hits_equal_the_uncached_answer_now(history: list[tuple[str, Any]]) -> None:
    pair = Pair()
    verbs = {
        "ask": pair.ask,
        "batch": pair.batch,
        "put": pair.put,
        "remove": pair.remove,
        "model": pair.set_model,
        "tenant": pair.set_tenant,
    }
    for verb, argument in history:
        verbs[verb](argument)
