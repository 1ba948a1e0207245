"""LangChain's own suite with a small real model on this machine: called plainly, and cached.

It calls no tools and fills no schemas, so those tests of the suite are skipped for both alike.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from langchain_stampcache import CachedChatModel
from stampcache import Cache, open_cache
from stampcache.demo.endpoint import Endpoint

pytest.importorskip("xllamacpp")


@pytest.fixture(scope="module")
def served() -> Iterator[Endpoint]:
    from stampcache.demo.local_model import local_model

    with local_model() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def known() -> Iterator[Cache]:
    with open_cache("memory://") as known:
        yield known


class CachedLocal(CachedChatModel):
    """The same model behind a cache."""

    def __init__(self, *, behind: Cache, **given: Any) -> None:
        super().__init__(inner=ChatOpenAI(**given), cache=behind)


class Suite(ChatModelIntegrationTests):
    """What so small a model can do."""

    endpoint: Endpoint

    @pytest.fixture(autouse=True)
    def _endpoint(self, served: Endpoint) -> None:
        type(self).endpoint = served

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": self.endpoint.model,
            "api_key": self.endpoint.api_key,
            "base_url": self.endpoint.base_url,
            "max_tokens": 24,
            "stream_usage": True,
            # langchain-openai keeps its connections for event loops that come later
            "default_headers": {"Connection": "close"},
        }

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False


class TestLocal(Suite):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI


class TestCachedLocal(Suite):
    behind: Cache

    @pytest.fixture(params=["first", "again"], autouse=True)
    def _cache(self, known: Cache) -> None:
        type(self).behind = known

    @pytest.fixture
    def model(self, request: Any, _cache: None, _endpoint: None) -> BaseChatModel:
        changed = getattr(request, "param", None) or {}
        given = {**self.standard_chat_model_params, **self.chat_model_params, **changed}
        return self.chat_model_class(**given)

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return CachedLocal

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "behind": self.behind}
