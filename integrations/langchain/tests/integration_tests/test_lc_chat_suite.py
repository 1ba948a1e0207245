"""LangChain's own integration suite: providers' models, and the same ones cached, at one server.

Each cached one passes what the plain one passes: with an empty cache, and with one that has the answers.
What is left out needs files of the internet or recordings, see docs/how-to/chat-model.md.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_deepseek import ChatDeepSeek, chat_models
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from integrations.langchain.tests.scripted_openai import Script
from langchain_stampcache import CachedChatModel
from stampcache import Cache, open_cache

pytestmark = [
    # langchain-openai dumps an object of the caller's class where its client declares none
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
    # and it says that it calls a tool where it is given a class of pydantic 1
    pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1 schema:UserWarning"),
]


@pytest.fixture(scope="class")
def known() -> Iterator[Cache]:
    with open_cache("memory://") as known:
        yield known


class CachedOpenAI(CachedChatModel):
    """A `ChatOpenAI`, made of the same arguments, behind a cache."""

    def __init__(self, *, behind: Cache, **given: Any) -> None:
        super().__init__(inner=ChatOpenAI(**given), cache=behind)


class CachedDeepSeek(CachedChatModel):
    def __init__(self, *, behind: Cache, **given: Any) -> None:
        super().__init__(inner=ChatDeepSeek(**given), cache=behind)


class Suite(ChatModelIntegrationTests):
    """What a server of this protocol can do."""

    url = ""

    @pytest.fixture(autouse=True)
    def _server(self, script: Script) -> None:
        type(self).url = script.url

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "deepseek-chat",
            "api_key": "none",
            "max_retries": 0,
            "stream_usage": True,
            ("api_base" if self.is_deepseek else "base_url"): self.url,
        }

    @property
    def has_tool_choice(self) -> bool:
        return True

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "another-model"

    @property
    def supported_usage_metadata_details(self) -> dict[Any, Any]:
        told = ["reasoning_output"]
        if self.is_deepseek and hasattr(chat_models, "_add_cache_read_tokens"):  # newer ones do
            told.append("cache_read_input")
        return {"invoke": told, "stream": told}

    @property
    def is_deepseek(self) -> bool:
        return issubclass(self.chat_model_class, ChatDeepSeek | CachedDeepSeek)

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        return self._asked("think", stream=stream)

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        return self._asked("remember", stream=stream)

    def _asked(self, question: str, *, stream: bool) -> AIMessage:
        model = self.chat_model_class(**self.chat_model_params)
        if not stream:
            return model.invoke(question)
        first, *rest = model.stream(question)
        return first + rest  # type: ignore[operator]


class OnACache(Suite):
    """Behind an empty cache for each test, or behind one for all of them, which has seen each twice."""

    behind: Cache

    @pytest.fixture(params=["empty", "first", "again"], autouse=True)
    def _cache(self, request: pytest.FixtureRequest, known: Cache) -> Iterator[None]:
        with open_cache("memory://") as empty:
            type(self).behind = empty if request.param == "empty" else known
            yield

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "behind": self.behind}

    @pytest.fixture
    def model(self, request: Any, _cache: None, _server: None) -> BaseChatModel:
        changed = getattr(request, "param", None) or {}
        given = {**self.standard_chat_model_params, **self.chat_model_params, **changed}
        return self.chat_model_class(**given)


class TestOpenAI(Suite):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI


class TestCachedOpenAI(OnACache):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return CachedOpenAI


class TestDeepSeek(Suite):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatDeepSeek


class TestCachedDeepSeek(OnACache):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return CachedDeepSeek


@pytest.mark.parametrize("kind", [CachedOpenAI, CachedDeepSeek])
def test_a_cache_that_is_known_is_not_made_anew(script: Script, known: Cache, kind: Any) -> None:
    """What the suite asks ``again`` comes from the cache: else it would show nothing."""
    for number in range(2):
        where = "api_base" if kind is CachedDeepSeek else "base_url"
        model = kind(behind=known, model="m", api_key="none", **{where: script.url})
        asked = model.with_structured_output({"title": "t", "type": "object", "properties": {}})
        before = len(script.calls)
        model.invoke("Hello"), list(model.stream("Hello")), asked.invoke("Hello")
        assert len(script.calls) - before == (2 if number == 0 else 0)
