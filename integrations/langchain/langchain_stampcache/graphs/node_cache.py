"""`StampNodeCache`: what nodes of a LangGraph graph made, kept per tenant, for ``compile(cache=...)``."""

import math
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.cache.base import BaseCache, FullKey, Namespace
from msgspec.structs import replace

from langchain_stampcache.graphs.calls import NodeCall, NodeCalls
from langchain_stampcache.graphs.code import NodeCode, nodes_asked_for
from langchain_stampcache.graphs.keys import Keyed, keyed, messages_in
from langchain_stampcache.graphs.values import NODE, dump_result, load_result
from langchain_stampcache.lifetimes import within
from langchain_stampcache.reports import copied_report, reset
from langchain_stampcache.usage import message_usage, total
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    ConfigError,
    Evidence,
    Miss,
    Request,
    Scope,
    Seam,
    Settings,
    Stamps,
    canonical,
)
from stampcache.adapters import (
    FROM_CACHE,
    CacheFields,
    CanonicalError,
    Flow,
    Found,
    Front,
    Kept,
    Reading,
    asked,
    controls_in,
    hear,
    kind_in,
    scope_in,
)

Done = TypeVar("Done")
NODES = "langgraph:nodes"
"""The corpus that all nodes are part of, each as a source: so `clear` finds those of one node."""
_WRITES = "__pregel_ns_writes"
_NO_IDS = frozenset[str]()
_NOT_WRITTEN = frozenset({"__interrupt__", "__error__", "__error_source_node__", "__resume__"})


class StampNodeCache(BaseCache[Any]):
    """Keeps what nodes made, for nodes that have a ``CachePolicy``.

    Give that ``key_func=node_key``: LangGraph's own key never hits where there are messages. Entries
    are exact, of one tenant (`stampcache.scope`, or the config of a graph around this one), and live as
    long as the policy's ``ttl`` says, else as the cache does. Whatever goes wrong is counted and
    logged, and the node runs.
    """

    def __init__(
        self,
        cache: Cache | AsyncCache,
        *,
        version: str | None = None,
        corpus: str = "",
        grounding: Literal["version", "watch"] = "version",
        kind: str = "",
        stamps: Stamps | None = None,
    ) -> None:
        """Stand on an open cache.

        Args:
            cache: an open cache.
            version: stands for the code of the nodes; those of one name share then. Without it, a node
                that is a function of a module is known by its code; what any other made (a lambda, a
                method, a subgraph) is found again by that node and this very object only.
            corpus: the documents that nodes read: ``cache.invalidate(corpus=...)``, or any document in
                it, makes their results stale.
            grounding: ``"version"`` as above. ``"watch"``: all that nodes read are indexes of
                ``corpus`` that are watched (see `langchain_stampcache.watch`); then any write to them
                makes the results stale, and nobody need announce it.
            kind: of data, which says how long results live.
            stamps: versions of what the nodes run with.

        Raises:
            ConfigError: ``cache`` is none, the kind of data is not known, or a corpus without a name is
                to be watched.
        """
        super().__init__()
        if not isinstance(cache, Cache | AsyncCache):
            raise ConfigError(f"cache= takes an open cache, not {cache!r}; see open_cache(...).")
        if grounding not in ("version", "watch"):
            raise ConfigError(f'grounding= is {grounding!r}; nodes take "version" or "watch".')
        self._watched = grounding == "watch"
        if self._watched and not corpus:
            raise ConfigError(
                'grounding="watch" needs the name of what the nodes read: give corpus=, as watch(...)'
                " was given it."
            )
        self._cache = cache.sync if isinstance(cache, AsyncCache) else cache
        self._front = Front(cache.core, kind="langgraph.node")
        self._version = version
        self._corpus = corpus
        self._kind = kind
        cache.core.parts.terms.rules.lifetime(kind)
        self._stamps = stamps or Stamps()
        self._code = NodeCode()
        self._calls = NodeCalls()
        self._own = secrets.token_hex(16)

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is known of these; each caller gets its own copy."""
        return self._front.run(self._get(keys, nodes_asked_for(keys)))

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """See `get`; nothing blocks the event loop."""
        return await self._front.arun(self._get(keys, nodes_asked_for(keys)))

    def set(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """Keep what nodes wrote, for so many seconds at most."""
        self._front.run(self._set(pairs))

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """See `set`."""
        await self._front.arun(self._set(pairs))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Drop what these nodes made for the scope in force; without names, the whole scope.

        Raises:
            StoreError: the store could not do it.
            ScopeError: a tenant is required and none is in scope.
        """
        if namespaces is None:
            self._cache.clear()
            return
        scope = self._cleared()
        for namespace in namespaces if scope is not None else ():
            self._cache.invalidate(corpus=NODES, source=_source(namespace), scope=scope)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """See `clear`."""
        if namespaces is None:
            await self._cache.aio.clear()
            return
        scope = self._cleared()
        for namespace in namespaces if scope is not None else ():
            await self._cache.aio.invalidate(corpus=NODES, source=_source(namespace), scope=scope)

    def _cleared(self) -> Scope | None:
        scope = self._cache.core.intake.scope_of(None)
        if scope is None:
            self._front.event("clear.unscoped")
        return scope

    # -- reading -----------------------------------------------------------------------------------

    def _get(
        self, keys: Sequence[FullKey], nodes: Mapping[int, object]
    ) -> Flow[dict[FullKey, Any]]:
        found: dict[FullKey, Any] = {}
        for key in keys:
            writes = yield from self._guarded(self._one(key, nodes.get(id(key[1]))))
            if writes is not None:
                found[key] = writes
        return found

    def _one(self, key: FullKey, node: object) -> Flow[Any]:
        told = keyed(key[1])
        ask = asked(self._front, lambda: self._request(key, told, node))
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            self._calls.put(key, NodeCall(key[1], None, ask))  # its result is not kept, either
            return None
        found = yield from self._front.look(ask, read=_read)
        if isinstance(found, Found):
            if self._corpus:
                hear(Reading(corpus=self._corpus, problem=FROM_CACHE))
            return found.output
        self._calls.put(key, NodeCall(key[1], ask.request, found, told.ids if told else _NO_IDS))
        return None

    def _request(self, key: FullKey, told: Keyed | None, node: object) -> Request:
        if told is not None and told.problem:
            raise CanonicalError(told.problem)
        config = ensure_config()
        places = _places(config)
        return Request(
            prompt={"key": key[1]},
            settings=self._settings(key[0], self._standing(key[0], node, config)),
            kind=kind_in(*places) or self._kind,
            scope=scope_in(*places),
            controls=controls_in(*places),
        )

    def _settings(self, namespace: Namespace, code: object) -> Settings:
        return Settings(
            params={
                "framework": "langgraph.node",
                "namespace": list(namespace),
                "code": code,
            },
            stamps=self._stamps,
            corpus=self._corpus,
            whole_corpus=bool(self._corpus),
            watched=self._watched,
            seam=Seam.DOCUMENTS,  # whole values, of which only equal requests are given any
        )

    def _standing(self, namespace: Namespace, node: object, config: RunnableConfig) -> object:
        """Return what stands for the code of a node, or for this object where that is not seen."""
        if self._version is not None:
            return {"version": self._version}
        if namespace[:1] != (_WRITES,):
            return None
        if node is None:
            return {"object": self._own}
        code = self._code.of(node, config)
        if code is not None:
            return {"code": code}
        return {"object": self._own, "node": self._code.number(node)}

    # -- writing -----------------------------------------------------------------------------------

    def _set(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> Flow[None]:
        for key, (writes, ttl) in pairs.items():
            yield from self._guarded(self._keep(key, writes, ttl))

    def _keep(self, key: FullKey, writes: Any, ttl: int | None) -> Flow[None]:
        call = self._calls.take(key) or self._late(key)
        request, outcome = call.request, call.outcome
        if request is None:
            return
        if outcome is None and self._corpus:
            return self._front.event("adapter.node.unfenced")  # did documents change meanwhile?
        if _unfinished(writes):
            return self._front.event("adapter.node.unfinished")
        if ttl is not None and not _is_time(ttl):
            return self._front.event("adapter.node.no_time")
        kept = self._front.kept(lambda: self._kept(key[0], writes, call))
        if kept is None:
            return
        before = request.controls if outcome is None else outcome.controls
        request = replace(request, controls=within(request.controls, ttl, before.ttl_s))
        yield from self._front.update(request, kept, outcome=outcome)

    def _late(self, key: FullKey) -> NodeCall:
        """Return what stands for the lookup of a result of which none is known."""
        ask = asked(self._front, lambda: self._request(key, None, None))
        return NodeCall(key[1], None if isinstance(ask, Miss) else ask.request, None)

    def _kept(self, namespace: Namespace, writes: Any, call: NodeCall) -> Kept | None:
        messages = list(messages_in(writes))
        if any(each.id in call.ids for each in messages):
            return None  # it changes messages of its conversation, which another one does not have
        replies = [each for each in messages if isinstance(each, AIMessage)]
        answer = Answer(
            text="",
            payload=dump_result(writes),
            format=NODE,
            usage=total(message_usage(each) for each in replies),
            latency_s=call.elapsed_s,
        )
        return Kept(answer, [Evidence(corpus=NODES, source=_source(namespace))])

    def _guarded(self, flow: Flow[Done]) -> Flow[Done | None]:
        try:
            return (yield from flow)
        except Exception as error:  # noqa: BLE001 - counted; the node runs as if there were no cache
            self._front.failed("node", error)
            return None


def _read(answer: Answer, report: CacheFields) -> object:
    """Return one's own copy of what a node wrote: messages are new ones, and tell of the hit."""
    writes = load_result(answer.payload, answer.format)
    for message in messages_in(writes):
        message.id = None
        if isinstance(message, AIMessage):
            reset(message)
            message.response_metadata["cache"] = copied_report(report)
    return writes


def _unfinished(writes: Any) -> bool:
    """Tell whether a node was interrupted or failed: LangGraph has handed in those, with no writes."""
    if not isinstance(writes, deque | list):
        return False  # no result of a node
    named = [each[0] for each in writes if isinstance(each, tuple) and each]
    return not writes or any(channel in _NOT_WRITTEN for channel in named)


def _is_time(ttl: float) -> bool:
    return ttl > 0 and math.isfinite(ttl)


def _source(namespace: Namespace) -> str:
    """Return a name for a node's namespace that no other has."""
    return canonical.value(list(namespace)).decode("utf-8", "surrogatepass")


def _places(config: RunnableConfig) -> tuple[object, ...]:
    """Return where the config of a graph around this one may say who asks."""
    configurable = config.get("configurable") or {}
    runtime = configurable.get("__pregel_runtime")
    return (getattr(runtime, "context", None), config.get("metadata"), configurable)
