"""A small RAG application around the fakes, as tests of `CachedChain` ask it."""

from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_fakes import CountingChat, Shelf

from langchain_stampcache import CachedChain
from stampcache import Stamps

QUESTION = "how long is annual leave"
PROMPT = ChatPromptTemplate.from_template("Use {context}. {input}")
BUILT = Stamps(index="built-1")


def reported(result: dict[str, Any]) -> tuple[bool, str | None, str]:
    cache = result["cache"]
    return cache["hit"], cache["level"], cache["reason"]


class App:
    """The application and its parts."""

    def __init__(self, cache: Any, shelf: Shelf, **options: Any) -> None:
        self.model = CountingChat()
        self.shelf = shelf
        answer = options.pop("answer", PROMPT | self.model | StrOutputParser())
        retriever = options.pop("retriever", shelf)
        self.chain = CachedChain(retriever=retriever, answer=answer, cache=cache, **options)

    def ask(self, question: str = QUESTION, **inputs: Any) -> dict[str, Any]:
        return self.chain.invoke({"input": question, **inputs})

    async def aask(self, question: str = QUESTION) -> dict[str, Any]:
        return await self.chain.ainvoke({"input": question})


def versioned(cache: Any, shelf: Shelf, **options: Any) -> App:
    """Return an application that retrieves on a miss only, and rests on what is announced."""
    given = {"grounding": "version", "corpus": "handbook", "stamps": BUILT, **options}
    return App(cache, shelf, **given)
