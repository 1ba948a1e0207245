"""`StampCache`: the cache that LangChain asks before each call of a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.outputs import ChatGeneration, Generation
from msgspec.structs import replace

from langchain_stampcache import payload
from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_string import LlmSettings
from langchain_stampcache.pending import Pending, PendingCall
from langchain_stampcache.reports import mark
from langchain_stampcache.usage import finish_reason, revision, usage_of, worst
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    Calibration,
    ConfigError,
    Miss,
    Reason,
    Request,
    StampCacheError,
    Stamps,
    canonical,
    open_cache,
)
from stampcache.adapters import (
    CAPACITY,
    LIFETIME_S,
    CacheFields,
    CanonicalError,
    Flow,
    Found,
    Front,
    Tenants,
)

Done = TypeVar("Done")
Question = Callable[[str], str | None]


class StampCache(BaseCache):
    """Answers model calls from the cache, for ``set_llm_cache(...)`` or a model's ``cache=``.

    Exact hits always; hits by meaning only where ``question=`` finds the question in a prompt, and
    then only between prompts that are equal but for the question. Whatever goes wrong is counted
    and logged, and the model is called as if there were no cache; so it is, without lookup or
    update, where a tenant is required and none is in scope.

    A changed document is another prompt here, so answers depend on no documents:
    ``invalidate(corpus=...)``, ``source=`` and ``chunk=`` do not touch them (``stamps=``, ``scope=``
    and ``entry=`` do), and they live by time alone.

    What this seam cannot see: direct streaming, the endpoint of models that do not tell it, and
    changes that a serialisable model (``ChatOpenAI``) makes to itself after its first call.
    """

    def __init__(
        self,
        cache: Cache | AsyncCache | str,
        *,
        embedder: object = None,
        calibration: Calibration | Mapping[str, object] | float | None = None,
        tenants: Tenants = "optional",
        stamps: Stamps | None = None,
        capacity: int = CAPACITY,
        ttl_s: float | None = LIFETIME_S,
        question: Question | None = None,
    ) -> None:
        """Open a cache, or stand on one.

        Args:
            cache: a URL as `stampcache.open_cache` takes it, or an open cache.
            embedder: see `open_cache`; like the other options only together with a URL.
            calibration: see `open_cache`.
            tenants: see `open_cache`.
            stamps: versions that the calls do not show: of the model behind a name, for example.
            capacity: see `open_cache`.
            ttl_s: see `open_cache`.
            question: receives the last human message of a chat (or a plain prompt) and returns the
                stand-alone question in it word by word, or ``None``.

        Raises:
            ConfigError: a setting is wrong, or options are given for a cache that is already open.
        """
        if isinstance(cache, str):
            self._cache = open_cache(
                cache,
                embedder=embedder,
                calibration=calibration,
                tenants=tenants,
                capacity=capacity,
                ttl_s=ttl_s,
            )
        else:
            given = (embedder, calibration, tenants, capacity, ttl_s)
            if given != (None, None, "optional", CAPACITY, LIFETIME_S):
                raise ConfigError(
                    "embedder=, calibration=, tenants=, capacity= and ttl_s= belong to a cache that"
                    " is opened here; give them to the open_cache(...) that made this one."
                )
            self._cache = cache.sync if isinstance(cache, AsyncCache) else cache
        self._front = Front(self._cache.core, kind="langchain.model")
        self._question = question
        self._settings = LlmSettings(stamps=stamps or Stamps())
        self._pending = Pending()

    @property
    def cache(self) -> Cache:
        """The cache underneath: for `stats`, `explain`, `invalidate`, `report_bad`."""
        return self._cache

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the generations of an equal call, as the caller's own copy, or ``None``."""
        return self._front.run(self._guarded(self._lookup(prompt, llm_string), "lookup"))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep the generations of a call, unless they must not be served again."""
        self._front.run(self._guarded(self._update(prompt, llm_string, return_val), "update"))

    def clear(self, **kwargs: object) -> None:  # noqa: ARG002 - the framework's signature
        """Delete the entries of the scope in force, and nothing else. Keywords are ignored.

        Raises:
            StoreError: the store could not do it.
            ScopeError: a tenant is required and none is in scope.
        """
        self._cache.clear()

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """See `lookup`; nothing blocks the event loop."""
        return await self._front.arun(self._guarded(self._lookup(prompt, llm_string), "lookup"))

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """See `update`; nothing blocks the event loop."""
        await self._front.arun(
            self._guarded(self._update(prompt, llm_string, return_val), "update")
        )

    async def aclear(self, **kwargs: object) -> None:  # noqa: ARG002 - see clear
        """See `clear`."""
        await self._cache.aio.clear()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return itself: a copied model asks the same cache."""
        return self

    # -- one call as a request ---------------------------------------------------------------------

    def _request(self, prompt: str, llm_string: str) -> Request | None:
        try:
            settings = self._settings.of(llm_string)
            asked = prompts.read(prompt)
            whole = asked if isinstance(asked, str) else list(asked.messages)
            request = Request(prompt=whole, settings=settings)
            return self._by_question(request, asked)
        except CanonicalError as error:
            miss = Miss(reason=Reason.UNCACHEABLE, detail=str(error))
            self._front.bypassed(miss)
            return None

    def _by_question(self, request: Request, asked: prompts.Chat | str) -> Request:
        """Add the question, if all else that the model sees can become part of the Partition."""
        if self._question is None:
            return request
        text = asked if isinstance(asked, str) else asked.last_text
        try:
            question = self._question(text) if text else None
        except Exception as error:  # noqa: BLE001 - the user's function; counted, exact hits stay
            self._cache.core.counters.note("adapter.question", error)
            return request
        if not question or text.count(question) != 1:
            return request
        around: list[object] = list(text.split(question))
        if not isinstance(asked, str):
            around = [*asked.messages[:-1], {**asked.messages[-1], "content": around}]
        system = canonical.value(around).decode("utf-8", "surrogatepass")
        return Request(question=question, settings=replace(request.runs, system=system))

    # -- the paths of lookup and update, for sync and async ----------------------------------------

    def _lookup(self, prompt: str, llm_string: str) -> Flow[list[Generation] | None]:
        request = self._request(prompt, llm_string)
        if request is None:
            return None
        ask = self._front.ask(request)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            self._pending.put(prompt, llm_string, request, ask)  # its update is one, too
            return None
        found = yield from self._front.look(ask, read=_read)
        if isinstance(found, Found):
            return found.output
        self._pending.put(prompt, llm_string, request, found)
        return None

    def _update(self, prompt: str, llm_string: str, made: Sequence[Generation]) -> Flow[None]:
        asked = self._pending.take(prompt, llm_string)
        request = asked.request if asked else self._request(prompt, llm_string)
        if request is None:
            return
        answer, outcome = answer_of(made, asked), asked.outcome if asked else None
        yield from self._front.update(request, answer, outcome=outcome)

    def _guarded(self, flow: Flow[Done], what: str) -> Flow[Done | None]:
        """Run a path so that no odd prompt or answer fails the call (unless the cache is strict)."""
        core = self._cache.core
        try:
            return (yield from flow)
        except Exception as error:
            if core.strict and isinstance(error, StampCacheError):
                raise
            core.counters.note(f"adapter.{what}", error)
        return None


def _read(answer: Answer, report: CacheFields) -> list[Generation]:
    """Return the generations of a hit, each with the report; raise `CodecError` if unreadable."""
    return [mark(each, report) for each in payload.load_generations(answer.payload, answer.format)]


def answer_of(generations: Sequence[Generation], asked: PendingCall | None) -> Answer:
    """Return the generations of one prompt as an answer.

    Raises:
        CanonicalError: they would not come back equal.
    """
    empty = any(not each.text.strip() and not _tool_calls(each) for each in generations)
    first = generations[0] if generations and not empty else None
    return Answer(
        text=str(first.text) if first else "",
        payload=payload.dump_generations(generations),
        format=payload.GENERATIONS,
        finish_reason=worst(finish_reason(each) for each in generations),
        revision=revision(first) if first else "",
        tool_calls=_tool_calls(first) if first else (),
        usage=usage_of(generations),
        latency_s=asked.elapsed_s if asked else 0.0,
    )


def _tool_calls(generation: Generation) -> tuple[Mapping[str, object], ...]:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return tuple(dict(call) for call in getattr(message, "tool_calls", ()))
