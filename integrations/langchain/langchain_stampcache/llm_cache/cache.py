"""`StampCache`: the cache that LangChain asks before each call of a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.outputs import Generation
from langchain_core.prompts import BasePromptTemplate
from msgspec.structs import replace

from langchain_stampcache import prompt as prompts
from langchain_stampcache.answers import answer_of, copied, mark_made
from langchain_stampcache.caller import Caller, caller_of
from langchain_stampcache.llm_cache.calling import config_of, model_call, takes_text
from langchain_stampcache.llm_cache.calls import Call, Calls
from langchain_stampcache.llm_cache.finding import SEPARATOR, Extractor, Finder, Variables
from langchain_stampcache.llm_cache.llm_string import LlmSettings
from langchain_stampcache.llm_cache.model_settings import CallSettings
from langchain_stampcache.llm_cache.pending import Pending, PendingCall
from stampcache import (
    AsyncCache,
    Cache,
    Calibration,
    ConfigError,
    Manifest,
    Miss,
    Reason,
    ScopeError,
    StampCacheError,
    Stamps,
    open_cache,
)
from stampcache.adapters import (
    CAPACITY,
    LIFETIME_S,
    CanonicalError,
    Flow,
    Found,
    Front,
    Grounding,
    Kept,
    Tenants,
    Validity,
    VersionOf,
    checked,
    fields,
)

_BY_SCOPE = Caller()  # whoever the scope around says, as the core itself reads it


class StampCache(BaseCache):
    """Answers model calls from the cache, for ``set_llm_cache(...)`` or a model's ``cache=``.

    A call is matched exactly by its whole prompt, unless the question in it is known: by the user's
    own ``template=``, by a function ``question=``, or by ``stampcache.scope(question=...)``. Then the
    question is matched, by meaning too where the cache has an embedder, and the chunks in the prompt
    are its evidence. Whatever else is in the prompt must be equal.

    Whatever goes wrong is counted and logged, and the model is called as if there were no cache; so
    it is, without lookup or update, where a tenant is required and none is in scope.

    What LangChain shows to no cache at this place is listed in docs/how-to/llm-cache.md.
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
        template: BasePromptTemplate[Any] | None = None,
        question_variable: str | None = None,
        context_variable: str | None = None,
        context_separator: str = SEPARATOR,
        question: Extractor | None = None,
        grounding: Grounding = "recheck",
        version_of: VersionOf = "sources",
        corpus: str = "",
        manifest: Manifest | str | Path | None = None,
    ) -> None:
        """Open a cache, or stand on one.

        Args:
            cache: a URL as `stampcache.open_cache` takes it, or an open cache.
            embedder: see `open_cache`; like the next ones only together with a URL.
            calibration: see `open_cache`.
            tenants: see `open_cache`.
            stamps: versions that the calls do not show: of the model behind a name, for example.
            capacity: see `open_cache`; only with a URL.
            ttl_s: see `open_cache`; only with a URL.
            template: from which your prompts are rendered: a ``ChatPromptTemplate``, or a
                ``PromptTemplate`` for a model of plain text. It is read backwards.
            question_variable: which variable of it is the question (default: ``input``,
                ``question`` or ``query``), or the placeholder whose last message asks.
            context_variable: which variable holds the chunks (default: ``context``, if it is there).
            context_separator: what stands between two chunks. An empty text: the context is one.
            question: receives the last human message of a chat (or a plain prompt) and returns the
                stand-alone question in it word by word, or an `InPrompt` with the context, too, or
                ``None``. It is asked where the template does not fit.
            grounding: ``"recheck"`` serves an answer only to a prompt with the chunks that it was
                made from. ``"version"`` serves it until ``cache.invalidate(...)`` touches what it
                was made from, as `stampcache.scope` told by ``evidence=`` with ids. ``"none"``: time
                alone ends its life.
            version_of: under ``"version"``, the ``"sources"`` that an answer cites, or the whole
                ``"corpus"``.
            corpus: the name of the body of documents, for ``cache.invalidate(corpus=...)``.
            manifest: of the index, or the path of the file that ingestion wrote.

        Raises:
            ConfigError: a setting is wrong, the template cannot be read backwards, the version of the
                index must be known and is not, or options are given for a cache that is open already.
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
        core = self._cache.core
        if grounding == "watch":
            raise ConfigError(
                'A model is asked after its documents were retrieved: grounding="watch" would save'
                ' nothing here. Take "recheck", or CachedChain(grounding="watch") around both.'
            )
        validity = Validity(
            grounding=grounding, version_of=version_of, corpus=corpus, stamps=stamps or Stamps()
        )
        variables = Variables(
            question=question_variable, context=context_variable, separator=context_separator
        )
        finder = Finder(template=template, variables=variables, extract=question, corpus=corpus)
        has_index = finder.reads_context or validity.needs_evidence
        validity = checked(core, validity, manifest=manifest, has_index=has_index)
        self._front = Front(core, kind="langchain.model")
        self._settings = LlmSettings(stamps=validity.stamps)
        self._models = CallSettings(self._settings)
        self._calls = Calls(core, finder, validity)
        self._pending = Pending()

    @property
    def cache(self) -> Cache:
        """The cache underneath: for `stats`, `explain`, `invalidate`, `report_bad`."""
        return self._cache

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the generations of an equal call, as the caller's own copy, or ``None``."""
        return self._front.run(self._looked_up(prompt, llm_string))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep the generations of a call, unless they must not be served again.

        The messages among them are told why they are no hit (``response_metadata["cache"]``).
        """
        self._front.run(self._updated(prompt, llm_string, return_val))

    def clear(self, **kwargs: object) -> None:  # noqa: ARG002 - the framework's signature
        """Delete the entries of the scope in force, and nothing else. Keywords are ignored.

        Raises:
            StoreError: the store could not do it.
            ScopeError: a tenant is required and none is in scope.
        """
        self._cache.clear()

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """See `lookup`; nothing blocks the event loop."""
        return await self._front.arun(self._looked_up(prompt, llm_string))

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """See `update`; nothing blocks the event loop."""
        await self._front.arun(self._updated(prompt, llm_string, return_val))

    async def aclear(self, **kwargs: object) -> None:  # noqa: ARG002 - see clear
        """See `clear`."""
        await self._cache.aio.clear()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return itself: a copied model asks the same cache."""
        return self

    # -- the paths of lookup and update, for sync and async ----------------------------------------

    def _call(self, prompt: str, llm_string: str) -> Call | Miss:
        """Return one call as a request, or the Miss of one that bypasses the cache."""
        try:
            running = model_call(llm_string)
            config = config_of(running)
            caller = caller_of(config) if config else _BY_SCOPE
            if caller.problem is not None:
                raise caller.problem
            model = self._models.of(llm_string, running)
            asked = prompt if takes_text(running) else prompts.read(prompt)
            return self._calls.of(asked, model.settings, caller, wanted=model.wanted)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except ScopeError as error:
            self._front.event("adapter.unscoped")
            return Miss(reason=Reason.UNSCOPED, detail=str(error))
        except ConfigError as error:  # a control that makes no sense
            self._front.failed("controls", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def _lookup(self, prompt: str, llm_string: str) -> Flow[list[Generation] | None]:
        call = self._call(prompt, llm_string)
        if isinstance(call, Miss):
            self._bypassed(prompt, llm_string, call)
            return None
        ask = self._front.ask(call.request)
        if isinstance(ask, Miss):
            self._bypassed(prompt, llm_string, ask)
            return None
        wanted = call.wanted
        found = yield from self._front.look(
            ask, read=lambda answer, report: copied(answer, report, wanted)
        )
        if isinstance(found, Found):
            return found.output
        self._pending.put(
            prompt, llm_string, call.request, found, evidence=call.evidence, wanted=wanted
        )
        return None

    def _bypassed(self, prompt: str, llm_string: str, miss: Miss) -> None:
        self._front.bypassed(miss)
        self._pending.put(prompt, llm_string, None, miss)  # its update is one, too

    def _update(self, prompt: str, llm_string: str, made: Sequence[Generation]) -> Flow[None]:
        asked = self._pending.take(prompt, llm_string)
        if asked is None:  # forgotten, or the lookup was no call of this cache
            yield from self._update_alone(prompt, llm_string, made)
            return
        try:
            if asked.request is not None:
                call = Call(asked.request, asked.evidence, asked.wanted)
                yield from self._keep(call, made, asked)
        finally:
            mark_made(made, fields(asked.outcome))

    def _update_alone(self, prompt: str, llm_string: str, made: Sequence[Generation]) -> Flow[None]:
        """Store what was made where its lookup is not known: as of the earliest it may have been."""
        call = self._call(prompt, llm_string)
        if isinstance(call, Miss):
            return
        fence = self._pending.forgotten_fence
        if fence is None:
            yield from self._keep(call, made, None)
            return
        ask = self._front.ask(call.request)
        if isinstance(ask, Miss):
            return
        miss = yield from self._front.passed_over(ask, "its lookup was forgotten")
        # Of this reason, so that the question is embedded now.
        forgotten = replace(miss, fence=min(fence, miss.fence), reason=Reason.NO_CACHE)
        yield from self._keep(call, made, PendingCall(call.request, forgotten, None, call.evidence))

    def _keep(
        self, call: Call, made: Sequence[Generation], asked: PendingCall | None
    ) -> Flow[None]:
        if call.wanted is not None and len(made) != call.wanted:
            self._front.event("adapter.not_storable")  # else fewer would be what others wanted
            return
        answer = answer_of(made, None if asked is None else asked.elapsed_s)
        outcome = asked.outcome if asked else None
        yield from self._front.update(call.request, Kept(answer, call.evidence), outcome=outcome)

    # -- no odd prompt or answer fails a call (unless the cache is strict) ---------------------------

    def _looked_up(self, prompt: str, llm_string: str) -> Flow[list[Generation] | None]:
        try:
            return (yield from self._lookup(prompt, llm_string))
        except Exception as error:  # noqa: BLE001 - counted; the model is called
            self._note("lookup", error)
            failed = Miss(reason=Reason.STORE_ERROR, detail="the lookup failed")
            self._pending.put(prompt, llm_string, None, failed)  # who knows no fence stores nothing
        return None

    def _updated(self, prompt: str, llm_string: str, made: Sequence[Generation]) -> Flow[None]:
        try:
            yield from self._update(prompt, llm_string, made)
        except Exception as error:  # noqa: BLE001 - counted; the application has its answer
            self._note("update", error)

    def _note(self, what: str, error: Exception) -> None:
        core = self._cache.core
        if core.strict and isinstance(error, StampCacheError):
            raise error
        core.counters.note(f"adapter.{what}", error)
