"""A chat service for several customers, whose answers go through stampcache: one file, to copy.

    python examples/llama_index_chat.py

    curl localhost:8000/chat -H "Authorization: Bearer acme-key" -H "Content-Type: application/json" \
        -d '{"conversation": "1", "message": "How many days of leave do I have?"}'

Who asks is known from the Authorization header, and from nothing that a request says itself. A question
is first made to stand alone, so that it is answered from the cache whatever was said before; ask it
twice, in two conversations, and look at "cache" in the second answer. DeepSeek answers, if
DEEPSEEK_API_KEY is set, or any OpenAI-compatible server, as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say.
Else a scripted model does, which gives the line of the documents that is closest to the question.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Annotated, Any

import uvicorn
from fastapi import Body, Depends, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import (
    LLM,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.llms.deepseek import DeepSeek
from pydantic import BaseModel

import stampcache
from llama_index_stampcache import CachedChatEngine

DOCUMENTS = {
    "leave.md": "Staff have 30 days of leave a year.",
    "travel.md": "Trains are booked by the office, and paid by the company.",
    "lunch.md": "Lunch is served at noon in the canteen.",
}
CUSTOMERS = {"acme-key": "acme", "globex-key": "globex"}
"""Which customer a key stands for; a service of yours asks its identity provider instead."""


def words(text: str) -> list[str]:
    """Return the words of a text that tell what it is about."""
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3]


class Words(BaseEmbedding):
    """Embeds a text by its words: needs no model, and finds what has words in common."""

    def _get_text_embedding(self, text: str) -> list[float]:
        row = [0.001] * 256
        for word in words(text):
            row[sha256(word.encode()).digest()[0]] += 1.0
        return row

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Scripted(CustomLLM):
    """Answers with the line of its prompt that has most words in common with the question."""

    @property
    def metadata(self) -> LLMMetadata:
        """What the framework asks of a model."""
        return LLMMetadata(model_name="scripted")

    def _said(self, prompt: str) -> str:
        if "Follow Up Input:" in prompt:  # to be made to stand alone
            return prompt.rpartition("Follow Up Input:")[2].partition("Standalone")[0].strip()
        before, _, question = prompt.rpartition("user: ")
        asked = set(words(question.partition("\nassistant:")[0]))
        lines = [line.strip() for line in before.splitlines()]
        return max(lines, key=lambda line: len(asked.intersection(words(line))))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002 - the framework's signature
        """Answer a prompt."""
        return CompletionResponse(text=self._said(prompt))

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - the framework's signature
        **_: Any,
    ) -> CompletionResponseGen:
        """Answer a prompt word by word."""

        def stream() -> CompletionResponseGen:
            text = ""
            for word in re.findall(r"\S+\s*", self._said(prompt)):
                text += word
                yield CompletionResponse(text=text, delta=word)

        return stream()


def language_model(environment: Mapping[str, str]) -> LLM:
    """Return the model that the environment names, else the scripted one."""
    if not {"DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"} & environment.keys():
        return Scripted()
    llm: LLM = DeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        api_base=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=environment.get("DEEPSEEK_API_KEY", "none"),
        temperature=0,
    )
    return llm


class Service:
    """One index for all customers; to each its own conversations, and its own answers in the cache."""

    def __init__(self, llm: LLM, cache: stampcache.Cache) -> None:
        self._llm = llm
        self._cache = cache
        self._index = VectorStoreIndex([], embed_model=Words())
        self._store = SimpleChatStore()
        for name, text in DOCUMENTS.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Replace a document; answers that were made from it are not given again."""
        self._index.delete_ref_doc(name, delete_from_docstore=True)
        self._index.insert(Document(text=text, doc_id=name))

    def engine(self, tenant: str, conversation: str) -> CachedChatEngine:
        """Return the chat engine of one conversation."""
        memory = ChatMemoryBuffer.from_defaults(
            token_limit=3_000,
            chat_store=self._store,
            chat_store_key=json.dumps([tenant, conversation]),
            tokenizer_fn=str.split,
        )
        chat = CondensePlusContextChatEngine.from_defaults(
            retriever=VectorIndexRetriever(self._index, similarity_top_k=2),
            llm=self._llm,
            memory=memory,
        )
        return CachedChatEngine(chat, cache=self._cache, corpus="documents")


class Said(BaseModel):
    """What a customer says."""

    conversation: str
    message: str


def build_app(llm: LLM, cache: stampcache.Cache) -> FastAPI:
    """Return the web application; the cache is closed with it."""
    service = Service(llm, cache)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        cache.close()

    app = FastAPI(lifespan=lifespan)
    app.state.service = service

    def customer(authorization: Annotated[str, Header()] = "") -> str:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or key not in CUSTOMERS:
            raise HTTPException(401, "Authorization: Bearer KEY", {"WWW-Authenticate": "Bearer"})
        return CUSTOMERS[key]

    Tenant = Annotated[str, Depends(customer)]

    @app.post("/chat")
    async def chat(said: Said, tenant: Tenant) -> dict[str, Any]:
        with stampcache.scope(tenant=tenant):
            response = await service.engine(tenant, said.conversation).achat(said.message)
        return {
            "answer": response.response,
            "sources": [each.node.ref_doc_id for each in response.source_nodes],
            "cache": (response.metadata or {})["cache"],
        }

    @app.post("/chat/stream")
    async def stream(said: Said, tenant: Tenant) -> StreamingResponse:
        with stampcache.scope(tenant=tenant):
            response = await service.engine(tenant, said.conversation).astream_chat(said.message)
        return StreamingResponse(response.async_response_gen(), media_type="text/plain")

    @app.put("/documents/{name}", status_code=204)
    def write(name: str, text: Annotated[str, Body(embed=True)], _: Tenant) -> None:
        service.write(name, text)

    @app.get("/stats")
    def stats(tenant: Tenant) -> dict[str, float]:
        with stampcache.scope(tenant=tenant):
            counted = cache.stats()
        return {"requests": counted.requests, "hits": counted.hits, "entries": counted.entries}

    return app


def main() -> None:
    """Serve on port 8000."""
    cache = stampcache.open_cache(
        os.environ.get("STAMPCACHE_URL", "sqlite:///chat.db"), tenants="required"
    )
    uvicorn.run(build_app(language_model(os.environ), cache), host="127.0.0.1", port=8000)


if __name__ == "__main__":
    main()
