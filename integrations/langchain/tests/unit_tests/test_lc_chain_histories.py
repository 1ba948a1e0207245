"""All forms of a cached chain in random order, over documents that change: answers are always true."""

import asyncio
from collections.abc import AsyncIterator
from operator import itemgetter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_apps import BUILT
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_fakes import Shelf
from langchain_streams import StreamingChat, summed

import stampcache
from langchain_stampcache import CachedChain

WORDS = ("leave", "travel", "lunch", "days")
PROMPT = ChatPromptTemplate.from_template("{context} / {input}")
words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
chains = st.sampled_from(["parts", "versioned", "mapping", "text", "talk"])
ways = st.sampled_from(["invoke", "ainvoke", "stream", "astream", "left", "batch"])
steps = st.one_of(
    st.tuples(st.just("ask"), chains, ways, texts),
    st.tuples(st.just("put"), words, texts),
    st.tuples(st.just("remove"), words),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
)


async def _collected(stream: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


def ask(chain: Any, way: str, asked: Any) -> Any:
    """Ask in one of the ways; a stream that is left gives nothing."""
    match way:
        case "ainvoke":
            return asyncio.run(chain.ainvoke(asked))
        case "stream":
            return summed(chain.stream(asked))
        case "astream":
            return summed(asyncio.run(_collected(chain.astream(asked))))
        case "left":
            next(chain.stream(asked))
            return None
        case "batch":
            first, second = chain.batch([asked, asked])
            assert _answer(first) == _answer(second)
            return second
    return chain.invoke(asked)


def _answer(result: Any) -> str:
    return result["answer"] if isinstance(result, dict) else result


class World:
    def __init__(self) -> None:
        self.shelf = Shelf(k=2)
        model = StreamingChat().answering(
            lambda messages, call: AIMessage(f"read: {messages[-1].text}")
        )
        self.answer = PROMPT | model | StrOutputParser()
        self.cache = stampcache.open_cache("memory://")
        self.tenant = "a"
        whole = RunnablePassthrough.assign(context=itemgetter("input") | self.shelf)
        mapping = whole.assign(answer=self.answer)
        text = {"context": self.shelf, "input": RunnablePassthrough()} | self.answer
        given: dict[str, Any] = {
            "version_of": "corpus",
            "corpus": "handbook",
            "stamps": BUILT,
            "cache": self.cache,
        }
        parts: dict[str, Any] = {"retriever": self.shelf, "answer": self.answer}
        self.chains = {
            "parts": CachedChain(cache=self.cache, **parts),
            "versioned": CachedChain(grounding="version", **parts, **given),
            "mapping": CachedChain.around(mapping, **given),
            "text": CachedChain.around(text, **given),
            "talk": CachedChain(
                cache=self.cache, condense=lambda inputs: inputs["history"], **parts
            ),
        }

    def step(self, verb: str, *given: Any) -> None:
        with stampcache.scope(tenant=self.tenant):
            match verb, given:
                case "ask", (name, way, text):
                    self.asked(name, way, text)
                case "put", (name, text):
                    self.shelf.put(name, text)
                    self.cache.invalidate(corpus="handbook", source=name)
                case "remove", (name,):
                    self.shelf.remove(name)
                    self.cache.invalidate(corpus="handbook", source=name)
                case _, (tenant,):
                    self.tenant = tenant

    def asked(self, name: str, way: str, text: str) -> None:
        asked: Any = text if name == "text" else {"input": text}
        if name == "talk":
            asked = {"input": "and that?", "history": text}
        result = ask(self.chains[name], way, asked)
        if result is None:
            return
        documents = self.shelf.invoke(text)
        expected = self.answer.invoke({"input": text, "context": documents})
        assert _answer(result) == expected
        if isinstance(result, dict):
            assert result["context"] == documents
            assert result["input"] == asked["input"]


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=3, max_size=25))
def test_what_is_given_equals_the_uncached_answer_now(history: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in history:
        world.step(*step)
