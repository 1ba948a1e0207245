"""An app over a watched index whose vectors are plain to see: ``@30 text`` points to 30 degrees."""

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_fakes import CountingChat

from langchain_stampcache import CachedChain, watch
from stampcache import Cache
from stampcache.adapters import Explanation

HANDBOOK = "handbook"
PROMPT = ChatPromptTemplate.from_template("{context} {input}")


class Compass(Embeddings):
    """Embeds a text as the direction that it begins with; counts the questions."""

    def __init__(self, name: str = "compass") -> None:
        self.name = name
        self.questions = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._direction(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return self._direction(text)

    @staticmethod
    def _direction(text: str) -> list[float]:
        found = re.search(r"@(-?\d+)", text)
        angle = math.radians(float(found[1]) if found else 0.0)
        return [math.cos(angle), math.sin(angle)]


def page(angle: int, text: str = "", **metadata: Any) -> Document:
    """Return a document at an angle; its id and its source are its angle, if nothing else is said."""
    name = str(metadata.pop("id", angle))
    metadata.setdefault("source", f"{name}.md")
    return Document(f"@{angle} {text}", id=name, metadata=metadata)


class Desk:
    """A store that is watched, a model that counts its calls, and chains over both."""

    def __init__(
        self, cache: Cache, *pages: Document, corpus: str = HANDBOOK, **options: Any
    ) -> None:
        self.cache = cache
        self.compass = Compass()
        self.chat = CountingChat()
        self.store = watch(InMemoryVectorStore(self.compass), cache=cache, corpus=corpus, **options)
        if pages:
            self.store.add_documents(list(pages))

    @property
    def answer(self) -> Any:
        return PROMPT | self.chat | StrOutputParser()

    def retriever(self, **search: Any) -> Any:
        kind = search.pop("search_type", "similarity")
        return self.store.as_retriever(search_type=kind, search_kwargs={"k": 2, **search})

    def chain(self, retriever: Any = None, **options: Any) -> Any:
        found = self.retriever() if retriever is None else retriever
        options = {"answer": self.answer, "grounding": "watch", **options}
        return CachedChain(retriever=found, cache=self.cache, **options)


def watch_step(told: Explanation) -> str:
    """Return what an explanation says of the watch."""
    (said,) = [check.detail for check in told.outcome.trace if check.step == "watch"]
    return said


Asking = Callable[[Any, Any], Any]


def _stream(chain: Any, given: Any) -> Any:
    total: Any = None
    for chunk in chain.stream(given):
        total = chunk if total is None else total + chunk
    return total


async def _astream(chain: Any, given: Any) -> Any:
    total: Any = None
    async for chunk in chain.astream(given):
        total = chunk if total is None else total + chunk
    return total


async def _abatch(chain: Any, given: Any) -> Any:
    return (await chain.abatch([given]))[0]


FORMS: dict[str, Asking] = {
    "invoke": lambda chain, given: chain.invoke(given),
    "ainvoke": lambda chain, given: asyncio.run(chain.ainvoke(given)),
    "batch": lambda chain, given: chain.batch([given])[0],
    "abatch": lambda chain, given: asyncio.run(_abatch(chain, given)),
    "stream": _stream,
    "astream": lambda chain, given: asyncio.run(_astream(chain, given)),
}


def is_hit(told: Any) -> bool:
    return bool(told["cache"]["hit"])
