"""Servers that speak the OpenAI protocol on this machine: a scripted one, and a small real model."""

import contextlib
import importlib
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from stampcache import Cache, open_cache

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "unit_tests"))

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # The framework imports its LangChain bridge at the first index; there, others warn on import.
    warnings.simplefilter("ignore")
    importlib.import_module("llama_index.core.bridge.langchain")

from openai_server import OpenAIServer, serving


@pytest.fixture
def cache() -> Iterator[Cache]:
    with open_cache("memory://") as opened:
        yield opened


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serving() as opened:
        yield opened
