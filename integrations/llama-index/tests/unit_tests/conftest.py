"""Makes the fakes importable, and gives each test a cache and a small corpus of its own."""

import contextlib
import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from stampcache import Cache, open_cache
from stampcache.testing import FakeClock

sys.path.insert(0, str(Path(__file__).parent))

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # The framework imports its LangChain bridge at the first index; there, others warn on import.
    warnings.simplefilter("ignore")
    importlib.import_module("llama_index.core.bridge.langchain")

from llama_fakes import Corpus, DigestLLM


@pytest.fixture
def cache() -> Iterator[Cache]:
    with open_cache("memory://") as opened:
        yield opened


@pytest.fixture
def corpus() -> Corpus:
    return Corpus(
        {
            "leave": "annual leave is thirty days",
            "travel": "travel costs are paid by train",
            "lunch": "lunch is served at noon",
        }
    )


@pytest.fixture
def llm() -> DigestLLM:
    return DigestLLM()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'rag.db'}"


@pytest.fixture
def timed(url: str, clock: FakeClock) -> Iterator[Cache]:
    """A cache in either kind of store, whose clock the test moves."""
    with open_cache(url, clock=clock) as opened:
        yield opened
