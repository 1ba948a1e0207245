"""Makes the fakes importable, and gives each test a cache and a shelf of documents of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from stampcache import Cache, open_cache

sys.path.insert(0, str(Path(__file__).parent))

from langchain_fakes import Shelf

settings.register_profile("stampcache", deadline=None)  # busy machines are slow
settings.load_profile("stampcache")


@pytest.fixture
def opened() -> Iterator[Cache]:
    with open_cache("memory://") as cache:
        yield cache


@pytest.fixture
def shelf() -> Shelf:
    shelf = Shelf()
    shelf.put("leave", "annual leave is thirty days")
    shelf.put("travel", "travel costs are paid by train")
    shelf.put("lunch", "lunch is served at noon")
    return shelf
