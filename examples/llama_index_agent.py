"""An agent in LlamaIndex whose tool answers through stampcache: one file, to copy.

    python examples/llama_index_agent.py "How many days of leave do I have?"

The agent decides anew each time what to ask its tool; what the tool answers comes from the cache while
the documents are the same. DeepSeek decides and answers, if DEEPSEEK_API_KEY is set, or any
OpenAI-compatible server, as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say. Else a scripted model does: it asks
the tool what it was asked itself, and gives the line of the documents that is closest to the question.
"""

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import (
    LLM,
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import BaseTool, QueryEngineTool
from llama_index.llms.deepseek import DeepSeek

import stampcache
from llama_index_stampcache import CachedQueryEngine

DOCUMENTS = {
    "leave.md": "Staff have 30 days of leave a year.",
    "travel.md": "Trains are booked by the office, and paid by the company.",
    "lunch.md": "Lunch is served at noon in the canteen.",
}
PROMPT = PromptTemplate(
    "Answer the question in one sentence, from the context alone.\n"
    "Context:\n{context_str}\n\nQuestion: {query_str}"
)


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


class Scripted(FunctionCallingLLM):
    """Asks the first tool what it was asked, and says what the tool answered."""

    @property
    def metadata(self) -> LLMMetadata:
        """What the framework asks of a model."""
        return LLMMetadata(model_name="scripted", is_function_calling_model=True)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002 - the framework's signature
        """Answer with the line of the context that has most words in common with the question."""
        context, mark, question = prompt.rpartition("Question: ")
        asked = set(words(question))
        lines = context.splitlines() or [mark]
        return CompletionResponse(text=max(lines, key=lambda line: len(asked & set(words(line)))))

    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        """See `complete`."""
        return self.complete(prompt, formatted)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Call a tool for a question, and repeat what a tool has said."""
        last, tools = messages[-1], kwargs.get("tools") or []
        message = ChatMessage(content=last.content, role=MessageRole.ASSISTANT)
        if last.role is MessageRole.USER and tools:
            call = ToolSelection(
                tool_id=f"call-{len(messages)}",
                tool_name=tools[0].metadata.get_name(),
                tool_kwargs={"input": last.content},
            )
            message = ChatMessage(
                content="",
                role=MessageRole.ASSISTANT,
                additional_kwargs={"tool_calls": [call.model_dump()]},
            )
        return ChatResponse(message=message, delta=message.content)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """See `chat`."""
        return self.chat(messages, **kwargs)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        """Answer in one piece."""
        return iter([self.complete(prompt, formatted)])  # type: ignore[return-value]  # an iterator serves as the generator

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseAsyncGen:
        """Answer in one piece."""

        async def stream() -> CompletionResponseAsyncGen:
            yield self.complete(prompt, formatted)

        return stream()

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Answer in one piece."""
        return iter([self.chat(messages, **kwargs)])  # type: ignore[return-value]  # an iterator serves as the generator

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """Answer in one piece."""

        async def stream() -> ChatResponseAsyncGen:
            yield self.chat(messages, **kwargs)

        return stream()

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,  # noqa: ARG002 - the framework's signature
        allow_parallel_tool_calls: bool = False,  # noqa: ARG002 - the framework's signature
        tool_required: bool = False,  # noqa: ARG002 - the framework's signature
        **_: Any,
    ) -> dict[str, Any]:
        said = [ChatMessage(content=user_msg)] if isinstance(user_msg, str) else [user_msg]
        return {"messages": [*(chat_history or []), *filter(None, said)], "tools": tools}

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,  # noqa: ARG002 - the framework's signature
        **_: Any,
    ) -> list[ToolSelection]:
        """Return which tools it wants to call."""
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection.model_validate(call) for call in calls]


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


class Desk:
    """The application: an agent with one tool, a query engine over the documents, behind the cache."""

    def __init__(self, llm: LLM, cache: stampcache.Cache) -> None:
        documents = [Document(text=text, doc_id=name) for name, text in DOCUMENTS.items()]
        self._index = VectorStoreIndex.from_documents(documents, embed_model=Words())
        engine = RetrieverQueryEngine.from_args(
            VectorIndexRetriever(self._index, similarity_top_k=1),
            llm=llm,
            text_qa_template=PROMPT,
        )
        handbook = QueryEngineTool.from_defaults(
            CachedQueryEngine(engine, cache=cache, corpus="handbook"),
            name="handbook",
            description="Answers questions about the rules of the company.",
        )
        self._agent = FunctionAgent(
            tools=[handbook], llm=llm, system_prompt="Answer from the handbook, in one sentence."
        )

    async def ask(self, question: str) -> tuple[str, list[dict[str, Any]]]:
        """Answer a question; also tell what the cache did for each call of the tool."""
        result: Any = await self._agent.run(question)
        made = [call.tool_output.raw_output for call in result.tool_calls]
        return str(result), [response.metadata["cache"] for response in made]

    def edit(self, name: str, text: str) -> None:
        """Replace a document; what the tool answered from it is not given again."""
        self._index.update_ref_doc(Document(text=text, doc_id=name))


async def answer_twice(question: str) -> None:
    """Ask the agent twice, for the tenant "acme"."""
    with (
        stampcache.open_cache(os.environ.get("STAMPCACHE_URL", "memory://")) as cache,
        stampcache.scope(tenant="acme"),
    ):
        desk = Desk(language_model(os.environ), cache)
        for _ in range(2):
            print(*await desk.ask(question), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(answer_twice(sys.argv[1]))
