"""Stand-ins for models and retrievers that count how often they are asked."""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from stampcache import StoreError
from stampcache.model import Entry
from stampcache.testing import FailingStore

USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "input_token_details": {"cache_read": 5},
    "output_token_details": {"reasoning": 3},
}
Reply = Callable[[list[BaseMessage], int], AIMessage]


def plain_reply(messages: list[BaseMessage], call: int) -> AIMessage:
    return AIMessage(
        f"answer {call} to {messages[-1].text}",
        usage_metadata=USAGE,
        response_metadata={
            "model_name": "fake-1",
            "finish_reason": "stop",
            "token_usage": {"prompt_tokens": 11, "prompt_tokens_details": {"cached_tokens": 5}},
        },
    )


class KeepingStore(FailingStore):
    """A store that drops no entry while ``keeping`` is set, so that a lookup finds it again."""

    keeping = False

    def remove(self, entry: Entry) -> bool:
        if self.keeping:
            raise StoreError("The store is read-only.")
        return super().remove(entry)


def broken_flow(*args: object, **options: object) -> Generator[Any, Any, None]:
    """Stand in for a verb of the core that fails in a way nobody thought of."""
    raise ZeroDivisionError
    yield


class CountingChat(BaseChatModel):
    """A chat model that answers with ``reply(messages, number of the call)``."""

    model: str = "fake-1"
    temperature: float | None = None
    base_url: str | None = None
    api_key: str = "sk-secret"
    calls: int = 0
    _reply: Reply = PrivateAttr(default_factory=lambda: plain_reply)

    def answering(self, reply: Reply) -> "CountingChat":
        self._reply = reply
        return self

    @property
    def _llm_type(self) -> str:
        return "counting-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature, "base_url": self.base_url}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls += 1
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, self.calls))])

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)


class CountingLLM(BaseLLM):
    """A text model; its per-call options are part of nothing that it tells."""

    model: str = "text-1"
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "counting-llm"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model}

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        self.calls += len(prompts)
        return LLMResult(
            generations=[[Generation(text=f"{prompt}!", generation_info={})] for prompt in prompts]
        )


class Shelf(BaseRetriever):
    """Documents by name, which tests edit; retrieves those that share a word with the question."""

    k: int = 3
    _documents: dict[str, Document] = PrivateAttr(default_factory=dict)
    _asked: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[str]:
        return self._asked

    def put(self, name: str, text: str, **metadata: Any) -> None:
        metadata.setdefault("source", name)
        self._documents[name] = Document(text, metadata=metadata, id=f"id-{name}")

    def remove(self, name: str) -> None:
        self._documents.pop(name, None)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self._asked.append(query)
        return list(self._ranked(query))[: self.k]

    def _ranked(self, query: str) -> Iterator[Document]:
        words = set(query.lower().split())
        scored = [
            (-len(words & set(document.page_content.lower().split())), name, document)
            for name, document in self._documents.items()
        ]
        for score, _, document in sorted(scored, key=lambda each: each[:2]):
            if score < 0:
                yield document
