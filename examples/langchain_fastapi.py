"""A RAG service for several tenants: FastAPI, LangChain, and one cache that never mixes them.

    python examples/langchain_fastapi.py

    curl -H 'Authorization: Bearer ann' -d '{"text": "How many days of leave?"}' \
         -H 'Content-Type: application/json' http://127.0.0.1:8000/ask
    curl -N -H 'Authorization: Bearer ann' 'http://127.0.0.1:8000/stream?text=How+many+days+of+leave'

DeepSeek answers, if DEEPSEEK_API_KEY is set, or any OpenAI-compatible server, as DEEPSEEK_BASE_URL and
DEEPSEEK_MODEL say. With neither, a stand-in repeats what was retrieved.
"""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import uvicorn
from fastapi import Body, Depends, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import SecretStr

import stampcache
from langchain_stampcache import CachedChain

PROMPT = ChatPromptTemplate.from_template("Answer from this alone:\n{texts}\n\nQuestion: {input}")


class Caller(NamedTuple):
    """Who asks. What one audience may read, another may not: their answers are kept apart, too."""

    tenant: str
    audience: str


# In a real service: what the identity provider says of a token.
TOKENS = {
    "ann": Caller("acme", "staff"),
    "bob": Caller("acme", "board"),
    "cleo": Caller("globex", "staff"),
}
DOCUMENTS = {
    ("acme", "leave.md"): ("staff", "Staff of Acme have 30 days of leave."),
    ("acme", "merger.md"): ("board", "Acme and its rival will merge after the leave season."),
    ("globex", "leave.md"): ("staff", "Staff of Globex have 25 days of leave."),
}


class Repeating(BaseChatModel):
    """Stands in for a model where none is set: it repeats what it is given to read."""

    @property
    def _llm_type(self) -> str:
        return "repeating"

    def _said(self, messages: list[BaseMessage]) -> str:
        return messages[-1].text.partition("\n")[2].partition("\n\nQuestion:")[0]

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = AIMessage(self._said(messages), response_metadata={"finish_reason": "stop"})
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> Iterator[ChatGenerationChunk]:
        for word in self._said(messages).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))


def language_model(environment: Mapping[str, str]) -> BaseChatModel:
    """Return DeepSeek, the server that the environment names, or what stands in for both."""
    if not environment.get("DEEPSEEK_API_KEY") and not environment.get("DEEPSEEK_BASE_URL"):
        return Repeating()
    from langchain_deepseek import ChatDeepSeek

    return ChatDeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        base_url=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=SecretStr(environment.get("DEEPSEEK_API_KEY", "none")),
        temperature=0,
    )


def retrieve(inputs: Mapping[str, Any]) -> list[Document]:
    """Return what the caller may read and shares a word with the question: here stands your index."""
    words = set(inputs["input"].lower().replace("?", "").split())
    return [
        Document(text, id=name, metadata={"source": name})
        for (tenant, name), (audience, text) in DOCUMENTS.items()
        if (tenant, audience) == (inputs["tenant"], inputs["audience"])
        and words & set(text.lower().rstrip(".").split())
    ]


def with_texts(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what the prompt wants."""
    texts = [document.page_content for document in inputs["context"]]
    return {"input": inputs["input"], "texts": "\n".join(texts)}


def caller(authorization: Annotated[str, Header()] = "") -> Caller:
    """Return who asks, by the token of the request."""
    known = TOKENS.get(authorization.removeprefix("Bearer "))
    if known is None:
        raise HTTPException(401, "This token is not known.")
    return known


Known = Annotated[Caller, Depends(caller)]


def build(cache: stampcache.Cache, model: BaseChatModel) -> FastAPI:
    """Return the service. Its cache requires a tenant: a call without one is never cached."""
    app = FastAPI(title="Handbook")
    chain = CachedChain(
        retriever=RunnableLambda(retrieve),
        answer=with_texts | PROMPT | model | StrOutputParser(),
        cache=cache,
        grounding="recheck",
    )

    def asked(text: str, who: Caller) -> tuple[dict[str, Any], RunnableConfig]:
        """Return a question as the chain takes it. Who asks goes with it, wherever it is run."""
        return {"input": text, **who._asdict()}, {"metadata": {"stampcache": who._asdict()}}

    @app.post("/ask")
    async def ask(text: Annotated[str, Body(embed=True)], who: Known) -> dict[str, Any]:
        result = await chain.ainvoke(*asked(text, who))
        return {"answer": result["answer"], "cache": result["cache"]}

    @app.get("/stream")
    async def stream(text: str, who: Known) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            async for chunk in chain.astream(*asked(text, who)):
                for name in chunk.keys() & {"answer", "cache"}:
                    yield f"event: {name}\ndata: {json.dumps(chunk[name])}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.put("/documents/{name}")
    async def put(name: str, text: Annotated[str, Body(embed=True)], who: Known) -> None:
        DOCUMENTS[who.tenant, name] = (who.audience, text)  # answers from it are made anew

    @app.get("/stats")
    async def stats(who: Known) -> dict[str, float]:
        with stampcache.scope(**who._asdict()):
            figures = await cache.aio.stats()
        return {"requests": figures.requests, "hits": figures.hits, "entries": figures.entries}

    return app


def main() -> None:
    """Serve on port 8000, with a cache that is kept in a file."""
    with stampcache.open_cache("sqlite:///answers.db", tenants="required") as cache:
        uvicorn.run(build(cache, language_model(os.environ)), host="127.0.0.1", port=8000)


if __name__ == "__main__":
    main()
