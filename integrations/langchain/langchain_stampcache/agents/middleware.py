"""`StampCacheMiddleware`: the final answers of an agent, from the cache while they hold."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypeVar, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.runtime import Runtime
from langgraph.types import Command

from langchain_stampcache.agents.replaying import Replay
from langchain_stampcache.agents.requests import (
    RUN,
    AgentRequests,
    Declared,
    is_question,
)
from langchain_stampcache.agents.runs import Begun, Ended, Run, Runs, Said, Unkept, marked, read
from langchain_stampcache.agents.schemas import specs_of
from stampcache import (
    AsyncCache,
    Cache,
    ConfigError,
    Manifest,
    Miss,
    Reason,
    Request,
    Stamps,
)
from stampcache.adapters import (
    FROM_CACHE,
    Ask,
    Flow,
    Found,
    Front,
    Kept,
    Reading,
    Step,
    Validity,
    asked,
    checked,
    fields,
    hear,
)

Handler: TypeAlias = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler: TypeAlias = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
Replied: TypeAlias = ModelResponse[Any] | ExtendedModelResponse[Any]
Done = TypeVar("Done")
LOGGER = logging.getLogger("stampcache")
_PROBLEMS_TOLD = 64
# What `create_agent` hands to the middleware that stands last: the call of the model itself.
_MODEL_CALLS = frozenset({"_execute_model_sync", "_execute_model_async"})


class CachedAgentState(AgentState[Any]):
    """The state of an agent, and the token of a run whose answer may be stored.

    The token is never in a checkpoint: a run that was interrupted goes on without it, and is not
    stored.
    """

    stampcache_run: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]


class StampCacheMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Answers an agent's questions from the cache: the model is not called, and no tool.

    Put it last in ``create_agent(middleware=[..., StampCacheMiddleware(cache)])``. Only final answers
    are kept, and only under the whole conversation before them, the model with its parameters, the
    tools with their code, system prompt, response format, state and context. The reply tells what the
    cache did in ``response_metadata["cache"]``. Failures of the cache are counted and logged, and the
    agent runs as if there were none.
    """

    state_schema = CachedAgentState

    def __init__(
        self,
        cache: Cache | AsyncCache,
        *,
        cacheable_tools: Collection[str] = (),
        corpus: str = "",
        grounding: Literal["version", "watch"] = "version",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        ttl_s: float | None = None,
        context_fields: Collection[str] | None = None,
        state_fields: Collection[str] | None = None,
        version: str | None = None,
    ) -> None:
        """Put a cache before an agent.

        Args:
            cache: an open cache.
            cacheable_tools: names of the tools that may be skipped: they change nothing, and what
                they return depends on their arguments and the corpus only. An answer is stored only
                if its run called no other tool.
            corpus: what those tools read. ``cache.invalidate(corpus=...)``, or any document in it,
                makes all answers stale. Without a name, every announced change does.
            grounding: ``"version"`` as above. ``"watch"``: all that those tools read are indexes of
                ``corpus`` that are watched (see `langchain_stampcache.watch`); then any write to them
                makes all answers stale, and nobody need announce it.
            stamps: versions that cannot be seen from here. With a ``corpus`` that is not watched, that
                of its index must be known, by this, a ``manifest`` or ``version``.
            manifest: of the index, or the path of the file that ingestion wrote.
            kind: of data, which says how long answers live.
            ttl_s: seconds that an answer lives at most; default: as the cache says.
            context_fields: fields of the runtime context, and of ``configurable``, that shape
                answers; default: all. Who asks (tenant, namespace, audience) always counts.
            state_fields: the same of the agent's state, besides the messages.
            version: stands for what is not seen, and for parts that cannot be identified: other
                middlewares that wrap tools or stand after this one, clients that tools hold; not for
                objects in context, ``configurable`` or state.

        Raises:
            ConfigError: a setting is wrong, ``cache`` is none, or the version of the index is not known.
        """
        super().__init__()
        if not isinstance(cache, Cache | AsyncCache):
            raise ConfigError(f"cache= takes an open cache, not {cache!r}; see open_cache(...).")
        self._cacheable = _names("cacheable_tools", cacheable_tools) or frozenset()
        has_index = bool(corpus or manifest)
        if grounding not in ("version", "watch"):
            raise ConfigError(f'grounding= is {grounding!r}; an agent takes "version" or "watch".')
        if grounding == "watch" and not has_index:
            raise ConfigError(
                'grounding="watch" needs the name of what the tools read: give corpus=, as watch(...)'
                " was given it."
            )
        given = Validity(
            grounding=grounding if has_index else "none",
            version_of="corpus",
            corpus=corpus,
            kind=kind,
            stamps=stamps or Stamps(),
            version=version,
        )
        self._front = Front(cache.core, kind="langchain.agent")
        validity = checked(cache.core, given, manifest=manifest, has_index=has_index)
        self._corpus = validity.corpus
        self._requests = AgentRequests(
            Declared(
                validity=validity,
                cacheable_tools=self._cacheable,
                context_fields=_names("context_fields", context_fields),
                state_fields=_names("state_fields", state_fields),
                ttl_s=ttl_s,
            )
        )
        self._runs = Runs()
        self._told: set[str] = set()

    # -- the hooks ---------------------------------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Replied:
        """Look up at the first call of the model in a run; note what the others reply."""
        call: Step[ModelResponse[Any]] = Step(sync=lambda: handler(request), aio=_not_here)
        return self._front.run(self._reply(request, call, last=_is_model(handler)))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Replied:
        """See `wrap_model_call`; the cache never blocks the event loop."""
        call: Step[ModelResponse[Any]] = Step(sync=_not_there, aio=lambda: handler(request))
        return await self._front.arun(self._reply(request, call, last=_is_model(handler)))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002 - the framework's signature
        """Store the answer with which a run ended, if it may be served again."""
        self._front.run(self._end(cast(Mapping[str, Any], state)))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002 - the framework's signature
        """See `after_agent`."""
        await self._front.arun(self._end(cast(Mapping[str, Any], state)))

    # -- one call of the model ---------------------------------------------------------------------

    def _reply(
        self, request: ModelRequest[Any], call: Step[ModelResponse[Any]], *, last: bool
    ) -> Flow[Replied]:
        if not is_question(request):
            return (yield from self._continued(request, call))
        ask = self._ask(request, last=last)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            return (yield from self._begun(Run(None, ask), call))
        specs = specs_of(request.response_format)
        found = yield from self._front.look(ask, read=lambda kept, told: read(kept, told, specs))
        if isinstance(found, Found):
            if self._corpus:
                hear(Reading(corpus=self._corpus, problem=FROM_CACHE))
            return (yield from self._said_again(request, found.output))
        config = _config()
        begun = Begun(
            self._requests.running(request, config).described,
            self._requests.state_of(request.state, config),
            self._requests.besides(request.state),
        )
        return (yield from self._begun(Run(ask.request, found, begun, specs), call))

    def _begun(self, run: Run, call: Step[ModelResponse[Any]]) -> Flow[Replied]:
        response = yield from call
        run.saw(response)
        return ExtendedModelResponse(
            model_response=marked(response, fields(run.outcome)),
            command=Command(update={RUN: self._runs.begin(run)}),
        )

    def _continued(
        self, request: ModelRequest[Any], call: Step[ModelResponse[Any]]
    ) -> Flow[ModelResponse[Any]]:
        token = request.state.get(RUN)
        run = self._runs.of(token) if isinstance(token, str) else None
        response = yield from call
        if run is None:
            return response
        if run.request is not None:
            run.goes_on(self._running(request), request.messages)
        run.saw(response)
        return marked(response, fields(run.outcome))

    def _said_again(self, request: ModelRequest[Any], said: Said) -> Flow[ModelResponse[Any]]:
        """Return a hit, told to streams and callbacks as a model tells its reply."""
        replay = Replay(message=said.reply)
        told = yield from Step(
            sync=lambda: replay.invoke(request.messages),
            aio=lambda: replay.ainvoke(request.messages),
        )
        said.reply.id = told.id
        return ModelResponse(result=said.messages, structured_response=said.structured)

    def _ask(self, request: ModelRequest[Any], *, last: bool) -> Ask | Miss:
        ask = asked(self._front, lambda: self._requests.of(request, _config(), last=last))
        if isinstance(ask, Miss) and ask.reason is Reason.UNCACHEABLE:
            self._tell(ask.detail)
        return ask

    def _tell(self, problem: str) -> None:
        """Log once why an agent cannot be cached: its parts are not seen before its first run."""
        if problem not in self._told and len(self._told) < _PROBLEMS_TOLD:
            self._told.add(problem)
            LOGGER.warning("this agent's answers are not cached: %s", problem)

    def _running(self, request: ModelRequest[Any]) -> object:
        try:
            return self._requests.running(request, _config()).described
        except Exception as error:  # noqa: BLE001 - counted; the agent goes on, and is not stored
            self._front.failed("agent", error)
            return None

    # -- the end of a run --------------------------------------------------------------------------

    def _end(self, state: Mapping[str, Any]) -> Flow[None]:
        token = state.get(RUN)
        if token is None:
            return
        run = self._runs.end(token)
        if run is None:
            self._front.event(f"adapter.agent.{Unkept.RUN_FORGOTTEN.value}")
        elif run.request is not None:  # else it bypassed the cache
            yield from self._ended(run, run.request, state)

    def _ended(self, run: Run, request: Request, state: Mapping[str, Any]) -> Flow[None]:
        unkept = self._unkept(run, state)
        if unkept is not None:
            self._front.event(f"adapter.agent.{unkept.value}")
            return
        kept = self._front.kept(lambda: Kept(run.answer()))
        if kept is not None:
            yield from self._front.update(request, kept, outcome=run.outcome)

    def _unkept(self, run: Run, state: Mapping[str, Any]) -> Unkept | None:
        try:
            now = self._requests.state_of(state, _config())
            ended = Ended(state, now, self._requests.besides(state))
            return run.unkept(ended, self._cacheable)
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._front.failed("agent", error)
            return Unkept.UNFINISHED


def _names(option: str, given: Collection[str] | None) -> frozenset[str] | None:
    """Return names as a set.

    Raises:
        ConfigError: they are one text, whose letters would be taken for names.
    """
    if isinstance(given, str):
        raise ConfigError(f"{option}= takes a list of names, not the text {given!r}.")
    return None if given is None else frozenset(given)


def _config() -> RunnableConfig:
    """Return the config of the run in which the hook is called."""
    return ensure_config()


def _is_model(handler: Handler | AsyncHandler) -> bool:
    """Tell whether a handler is the call of the model itself, with no other middleware around it."""
    return getattr(handler, "__name__", "") in _MODEL_CALLS


def _not_here() -> Awaitable[ModelResponse[Any]]:
    raise AssertionError("a sync call of a model was driven as a task")


def _not_there() -> ModelResponse[Any]:
    raise AssertionError("an async call of a model was driven by a thread")
