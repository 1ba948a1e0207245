"""Other caches of LangChain's own seam, with every fair chance: what it cannot show them is not asked."""

import hashlib
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.language_models import BaseChatModel
from msgspec import Struct

from benchmarks.cases.rigs.chat import ChatRig
from benchmarks.cases.rigs.langchain_caches import SEAM_LACKS
from benchmarks.cases.scripted import ScriptedChat
from benchmarks.cases.words import Ability, Lack, elsewhere, unseen

_NO_BOUND = elsewhere("has no bound")
PEER_LACKS: Mapping[Ability, Lack] = {
    **SEAM_LACKS,
    Ability.STAMPED: elsewhere("is no cache of stampcache"),
    Ability.CORE: elsewhere("concerns the core of stampcache"),
    Ability.ENDPOINT: unseen("LangChain's text of a model may lack its endpoint (ChatDeepSeek)"),
    Ability.PLAIN_TEXT: unseen("LangChain's text of a plain model lacks the options of a call"),
    Ability.TENANTS: elsewhere("knows no tenants"),
    Ability.CONTROLS: elsewhere("is told nothing for one request"),
    Ability.VARIETY: elsewhere("keeps one answer of a request"),
    Ability.TIME: elsewhere("has no clock that could be set"),
    Ability.MEANING: elsewhere("matches equal texts"),
    Ability.PROMPTS: elsewhere("matches equal texts"),
    Ability.FIELDS: elsewhere("reports nothing of a hit"),
    Ability.MISSES: elsewhere("reports nothing"),
    Ability.BREAKDOWN: elsewhere("reports nothing"),
}


class PeerRig(ChatRig):
    """One other cache."""

    lacks: ClassVar[Mapping[Ability, Lack]] = {**PEER_LACKS, Ability.BOUNDED: _NO_BOUND}

    def __init__(self) -> None:
        self._made = self.made()

    @abstractmethod
    def made(self) -> BaseCache:
        """Return an empty cache."""

    @property
    def base_cache(self) -> BaseCache:
        """See `Rig.base_cache`."""
        return self._made

    def cached(self, inner: ScriptedChat) -> BaseChatModel:
        """See `ChatRig.cached`."""
        inner.cache = self._made
        return inner

    def clear(self, tenant: str | None = None, namespace: str | None = None) -> None:  # noqa: ARG002 - the framework's signature
        """See `Rig.clear`."""
        self._made.clear()


class MemoryRig(PeerRig):
    """LangChain's `InMemoryCache`."""

    name = "InMemoryCache"
    lacks: ClassVar[Mapping[Ability, Lack]] = PEER_LACKS

    def __init__(self, *, entries: int | None = None) -> None:
        self._entries = entries
        super().__init__()

    def made(self) -> BaseCache:
        """See `PeerRig.made`."""
        return InMemoryCache(maxsize=self._entries)

    def bounded(self, entries: int) -> Self:
        """See `Rig.bounded`."""
        return type(self)(entries=entries)

    @property
    def size(self) -> int:
        """See `Rig.size`."""
        held: Any = self._made
        return len(held._cache)


class _InFolder(PeerRig):
    """A cache that keeps files."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        super().__init__()

    @property
    def folder(self) -> Path:
        """Where it may keep them."""
        return Path(self._folder.name)

    def close(self) -> None:
        """See `Rig.close`."""
        engine: Any = getattr(self._made, "engine", None)
        if engine is not None:
            engine.dispose()
        self._folder.cleanup()


class SqliteRig(_InFolder):
    """`SQLiteCache` of langchain-community."""

    name = "SQLiteCache"

    def made(self) -> BaseCache:
        """See `PeerRig.made`."""
        from langchain_community.cache import SQLiteCache

        found: BaseCache = SQLiteCache(str(self.folder / "langchain.db"))
        return found


class Md5Rig(_InFolder):
    """`SQLAlchemyMd5Cache` of langchain-community, on a SQLite file."""

    name = "SQLAlchemyMd5Cache"

    def made(self) -> BaseCache:
        """See `PeerRig.made`."""
        from langchain_community.cache import SQLAlchemyMd5Cache
        from sqlalchemy import create_engine

        engine = create_engine(f"sqlite:///{self.folder / 'langchain.db'}")
        found: BaseCache = SQLAlchemyMd5Cache(engine)
        return found


class GPTCacheRig(_InFolder):
    """The adapter of GPTCache in langchain-community, set up as its documentation shows."""

    name = "GPTCache"

    def made(self) -> BaseCache:
        """See `PeerRig.made`."""
        from langchain_community.cache import GPTCache

        manager_factory = import_module("gptcache.manager.factory").manager_factory
        get_prompt = import_module("gptcache.processor.pre").get_prompt

        def begin(cache: Any, llm_string: str) -> None:
            name = hashlib.sha256(llm_string.encode("utf-8", "replace")).hexdigest()
            folder = str(self.folder / name)
            manager = manager_factory(manager="map", data_dir=folder)
            cache.init(pre_embedding_func=get_prompt, data_manager=manager)

        found: BaseCache = GPTCache(begin)
        return found


class Peer(Struct, frozen=True):
    """A cache to compare with: its rig, the packages that it needs, and whether it can be used here."""

    rig: type[PeerRig]
    packages: tuple[str, ...] = ()
    problem: Callable[[], str] = str

    @property
    def missing(self) -> str:
        """Why it cannot be used here; empty where it can."""
        lacking = [name for name in self.packages if find_spec(name) is None]
        if lacking:
            return f"{' and '.join(lacking)} must be installed for it"
        return self.problem()


PEERS: Mapping[str, Peer] = {
    peer.rig.name: peer
    for peer in (
        Peer(MemoryRig),
        Peer(SqliteRig, ("langchain_community", "sqlalchemy")),
        Peer(Md5Rig, ("langchain_community", "sqlalchemy")),
        Peer(GPTCacheRig, ("langchain_community", "gptcache")),
    )
}
