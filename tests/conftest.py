"""Settings of all tests, and the fixtures that open a cache by face and by store."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from stampcache import AsyncCache, Cache
from tests.aging import Aging
from tests.faces import Face, Open

settings.register_profile("stampcache", deadline=None)  # busy machines are slow
settings.load_profile("stampcache")


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    """The face of a cache."""
    return str(request.param)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'cache.db'}"


@pytest.fixture
def open_face(kind: str, url: str) -> Iterator[Open]:
    """Opens caches of this face over this store, or over a ``store=``, and closes them."""
    faces: list[Face] = []
    with asyncio.Runner() as runner:

        def open_face(*, store: Any = None, **options: Any) -> Face:
            made = Cache if kind == "sync" else AsyncCache
            faces.append(Face(made(url if store is None else store, **options), runner))
            return faces[-1]

        yield open_face
        for face in faces:
            face.close()


@pytest.fixture
def aging(open_face: Open) -> Callable[..., Aging]:
    """Opens a cache in which answers age, with these replies of its judge and this `Freshness`."""
    return lambda *replies, **settings: Aging(open_face, *replies, **settings)


@pytest.fixture
def face(open_face: Open) -> Face:
    """An exact cache with every setting at its default."""
    return open_face()
