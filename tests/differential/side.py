"""One process's side of the world: its cache on the shared file, and its application."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

import stampcache
from stampcache.testing import FakeClock
from tests.differential.apps import APPS, App, Mode
from tests.differential.process import Ask, Command, Invalidate, Told, Write
from tests.differential.watched import LangChainIndex, WatchedChainApp
from tests.differential.watched_engine import LlamaIndex, WatchedEngineApp
from tests.differential.world import CORPUS, TTL_S, CoreEmbedder, State


class Watched(Struct, frozen=True):
    """How a framework watches an index, and the application over it."""

    index: Callable[..., Any]
    app: Callable[..., App]


WATCHED = {
    "langchain": Watched(LangChainIndex, WatchedChainApp),
    "llama-index": Watched(LlamaIndex, WatchedEngineApp),
}


class Side:
    """Asks and invalidates; opens its cache anew when the embedder changes."""

    def __init__(self, framework: str, mode: Mode, url: str) -> None:
        self._framework, self._mode, self._url = framework, mode, url
        self._clock = FakeClock()
        self._cache: stampcache.Cache | None = None
        self._embedder = -1
        self._apps: dict[tuple[str, str, str], App] = {}
        self._die_at = ""
        self._index: Any = None

    def do(self, command: Command) -> Told:
        if isinstance(command, Invalidate):
            return Told(count=self.cache.invalidate(corpus=CORPUS, source=command.source))
        self._die_at = command.die_at
        if isinstance(command, Write):
            self._at(command.state)
            assert self._index is not None
            self._index.write(command)
            self.halt("end")
            return Told()
        with stampcache.scope(tenant=command.tenant):
            reply = self.app(command.state).ask(command.question)
        self.halt("end")
        return Told(reply.text, reply.cited, reply.level, reply.reason)

    def uncached(self, command: Ask) -> Told:
        with stampcache.scope(tenant=command.tenant):
            reply = self.app(command.state).uncached(command.question)
        return Told(reply.text, reply.cited)

    def app(self, state: State) -> App:
        self._at(state)
        made_of = (state.model, state.prompt, state.search)
        app = self._apps.get(made_of)
        if app is None:
            app = self._apps[made_of] = self._made(state)
        app.state = state
        return app

    def _at(self, state: State) -> None:
        if self._embedder != state.embedder:
            self._open(state.embedder)
        self._clock.advance(state.now - self._clock.now())

    def _made(self, state: State) -> App:
        if self._index is None:
            return APPS[self._framework](self.cache, self._mode, state, self.halt)
        return WATCHED[self._framework].app(self.cache, self._index, state, self.halt)

    @property
    def cache(self) -> stampcache.Cache:
        if self._cache is None:
            self._open(max(self._embedder, 0))
        assert self._cache is not None
        return self._cache

    def halt(self, where: str) -> None:
        if self._die_at == where:
            os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    def _open(self, embedder: int) -> None:
        self.close()
        self._embedder = embedder
        self._apps = {}
        self._cache = stampcache.open_cache(
            self._url,
            embedder=CoreEmbedder(embedder),
            calibration=0.9,
            ttl_s=TTL_S,
            clock=self._clock,
            strict=True,
        )
        if self._mode.grounding == "watch":
            path = Path(self._url.removeprefix("sqlite:///")).with_suffix(".index")
            self._index = WATCHED[self._framework].index(self._cache, path, self.halt)
