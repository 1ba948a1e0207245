"""From a call of an agent's model to a Request: all that the middleware can see of the agent.

The seam is the first call of the model in a run, where model, tools, system prompt and response format
stand as they will be used. Whatever is not seen there stands for ``version``.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore
from msgspec import Struct
from pydantic import BaseModel

from langchain_stampcache import prompt as prompts
from langchain_stampcache.agents.schemas import described_format
from langchain_stampcache.config import RUN_NAMES
from langchain_stampcache.fingerprint import Fingerprint, Running
from langchain_stampcache.lifetimes import within
from langchain_stampcache.retrieval.settings import RetrieverSettings
from langchain_stampcache.schemas import name_of
from stampcache import Controls, Request, Settings
from stampcache.adapters import (
    CanonicalError,
    KnownSettings,
    Validity,
    controls_in,
    kind_in,
    scope_in,
)

OURS = "stampcache"
RUN = "stampcache_run"
_SCOPE = frozenset({"tenant", "namespace", "audience"})
_NOT_STATE = frozenset({"messages", "jump_to", "structured_response", RUN})
# How often something was called: kept by middlewares that limit it, and read by no model.
_COUNTS = frozenset({
    "run_model_call_count", "run_tool_call_count", "thread_model_call_count",
    "thread_tool_call_count",
})  # fmt: skip


class Declared(Struct, frozen=True, kw_only=True):
    """What an application says of its agent, as `StampCacheMiddleware` takes it."""

    validity: Validity
    cacheable_tools: frozenset[str]
    context_fields: frozenset[str] | None
    state_fields: frozenset[str] | None
    ttl_s: float | None


class Agent(dict[str, object]):
    """The parts of an agent by name; its own name begins the place that an error message tells."""


class AgentRequests:
    """Makes the requests of one agent."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._parts = _Parts(version=declared.validity.version)
        self._told = _Parts(version=None)  # a version stands for no part of a single run
        self._known = KnownSettings()
        Controls(ttl_s=declared.ttl_s)  # refuses what is no time

    def of(self, asked: ModelRequest[Any], config: RunnableConfig, *, last: bool) -> Request:
        """Return what is asked.

        Args:
            asked: the first call of the model in a run.
            config: of the run.
            last: whether nothing else wraps the model inside of the middleware.

        Raises:
            CanonicalError: a part of the agent has no identity; the message names it.
            ScopeError: who asks is said in a way that is no text.
            ConfigError: a control is unknown or out of range.
        """
        if not last and self._declared.validity.version is None:
            raise CanonicalError(
                "another middleware wraps the model inside of StampCacheMiddleware and is not seen;"
                " put StampCacheMiddleware last in middleware=[...], or pass version="
            )
        self._refuse_live(asked.tools)
        places = _places(asked, config)
        return Request(
            **_question(asked),
            kind=kind_in(*places) or self._declared.validity.kind,
            settings=self._settings(asked, config),
            scope=scope_in(*places),
            controls=within(controls_in(*places), self._declared.ttl_s),
        )

    def state_of(self, state: Mapping[str, Any], config: RunnableConfig) -> object:
        """Return what of an agent's state shapes its answers, besides the messages, as plain data.

        Raises:
            CanonicalError: a field of it has no canonical form.
        """
        return self._told.read(Agent(state=self._shaping_state(state)), config).described

    def _shaping_state(self, state: Mapping[str, Any]) -> dict[str, object]:
        named = self._declared.state_fields
        return {name: value for name, value in _kept_state(state).items() if _is_named(name, named)}

    def besides(self, state: Mapping[str, Any]) -> Mapping[str, object]:
        """Return the other fields of an agent's state, which shape no answer, but may be changed."""
        named = self._declared.state_fields
        kept = _kept_state(state).items()
        return {name: value for name, value in kept if not _is_named(name, named)}

    def running(self, asked: ModelRequest[Any], config: RunnableConfig) -> Running:
        """Return what a call of the model runs with: model, tools, prompt, format, context.

        Raises:
            CanonicalError: a part of it has no identity.
        """
        system = [asked.system_message] if asked.system_message is not None else []
        told = Agent(
            model_settings=asked.model_settings,
            context=self._context(asked.runtime.context),
            configurable=self._configurable(config),
        )
        return self._parts.read(
            Agent(
                model=asked.model,
                tools={f"{at}:{_tool_name(tool)}": tool for at, tool in enumerate(asked.tools)},
                system=list(prompts.of_messages(system).messages),
                response_format=described_format(asked.response_format),
                tool_choice=asked.tool_choice,
                name=(config.get("metadata") or {}).get("lc_agent_name"),
                told=self._told.read(told, config).described,
            ),
            config,
        )

    def _settings(self, asked: ModelRequest[Any], config: RunnableConfig) -> Settings:
        return self._known.of_state(
            type(asked.model),
            self._seen(asked, config),
            lambda: self._read(asked, config),
        )

    def _seen(self, asked: ModelRequest[Any], config: RunnableConfig) -> list[object]:
        """Return the values from which `_read` describes an agent; where they are plain, all of them."""
        model, system = asked.model, asked.system_message
        is_model = isinstance(model, BaseChatModel)
        return [
            self._parts.state_of(model) if is_model else model,
            asked.tools,
            [] if system is None else list(prompts.of_messages([system]).messages),
            asked.response_format,
            asked.tool_choice,
            asked.model_settings,
            (config.get("metadata") or {}).get("lc_agent_name"),
            self._context(asked.runtime.context),
            self._configurable(config),
            self._shaping_state(asked.state),
        ]

    def _read(self, asked: ModelRequest[Any], config: RunnableConfig) -> Settings:
        """Return the settings of an agent that was not seen like this before."""
        validity = self._declared.validity
        running = self.running(asked, config)
        params = {
            "framework": "langchain.agent",
            "version": validity.version,
            "cacheable_tools": sorted(self._declared.cacheable_tools),
            "agent": running.described,
            "state": self.state_of(asked.state, config),
        }
        return self._known.of(
            params,
            lambda: Settings(
                model=running.model,
                endpoint=running.endpoint,
                params=params,
                stamps=validity.stamps,
                corpus=validity.corpus,
                whole_corpus=bool(self._declared.cacheable_tools),
                watched=validity.watched,
            ),
        )

    def _context(self, context: object) -> object:
        if context is None:
            return {}
        fields = _fields(context)
        return context if fields is None else self._shaping(fields)

    def _configurable(self, config: RunnableConfig) -> dict[str, object]:
        given = config.get("configurable") or {}
        kept = {
            name: value
            for name, value in given.items()
            if not name.startswith("__") and name not in RUN_NAMES
        }
        return self._shaping(kept)

    def _shaping(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the fields that shape answers; of what is said to the cache, who asks.

        Who asks is part of the key even where `stampcache.scope` says something else.
        """
        kept: dict[str, object] = {}
        for name, value in given.items():
            if name == OURS and isinstance(value, Mapping):
                kept[name] = {each: value[each] for each in _SCOPE & value.keys()}
            elif name in _SCOPE or _is_named(name, self._declared.context_fields):
                kept[name] = value
        return kept

    def _refuse_live(self, tools: Sequence[object]) -> None:
        """Refuse tools that the provider runs itself, of whose use the agent is told nothing."""
        for tool in tools:
            if _is_live(tool):
                name = _tool_name(tool)
                if name not in self._declared.cacheable_tools:
                    raise CanonicalError(
                        f"the provider runs the tool {name!r} itself; name it in cacheable_tools=,"
                        " if what it gives holds as long as an answer lives"
                    )


class _Parts(Fingerprint):
    """Reads an agent's parts: of what tools search, how it is searched, and not what it holds.

    What it holds is the corpus: an announced change of that makes answers stale.
    """

    def __init__(self, *, version: str | None) -> None:
        super().__init__(version=version)
        self._retrievers = RetrieverSettings()

    def values_of(self, node: BaseModel) -> Mapping[str, object]:
        """Return the fields of an object that say what it does."""
        if isinstance(node, BaseRetriever):
            return self._retrievers.values_of(node)
        values = dict(super().values_of(node))
        if isinstance(node, BaseTool):  # without what the framework injects, which has no schema
            values["args_schema"] = node.tool_call_schema
            given = node.args_schema
            values["checks"] = self.class_of(given) if isinstance(given, type) else None
        return values

    def function(self, item: object, resolve: Any) -> object:
        """Return what a function would do, or which kind of store is searched."""
        if isinstance(item, VectorStore):
            return {"vector_store": name_of(type(item))}
        return super().function(item, resolve)


def _is_live(tool: object) -> bool:
    """Tell whether the provider runs a tool: ``{"type": "web_search"}``, ``{"google_search": {}}``."""
    if not isinstance(tool, Mapping) or "function" in tool:
        return False
    return bool(tool.get("type")) or not (tool.get("name") or tool.get("title"))


def _tool_name(tool: object) -> str:
    if isinstance(tool, Mapping):
        return str(tool.get("name") or tool.get("type") or next(iter(tool), ""))
    return str(getattr(tool, "name", type(tool).__name__))


def is_question(asked: ModelRequest[Any]) -> bool:
    """Tell whether a call of a model begins to answer a person: not one in the middle of a run."""
    last = asked.messages[-1] if asked.messages else None
    return isinstance(last, HumanMessage) and asked.state.get(RUN) is None


def _question(asked: ModelRequest[Any]) -> dict[str, Any]:
    """Return the question and the history before it; a question that is not only text is a prompt."""
    chat = prompts.of_messages(asked.messages)
    if not chat.last_text.strip():
        return {"prompt": {"messages": list(chat.messages)}}
    *history, last = chat.messages
    asked_as = {name: item for name, item in last.items() if name not in ("content", "type")}
    said = [{"asked_as": asked_as}] if any(asked_as.values()) else []
    return {"question": chat.last_text, "history": [*history, *said]}


def _places(asked: ModelRequest[Any], config: RunnableConfig) -> tuple[object, ...]:
    return (asked.runtime.context, config.get("metadata"), config.get("configurable"))


def _kept_state(state: Mapping[str, Any]) -> dict[str, object]:
    """Return what an agent's state keeps besides the messages, and how often something was called."""
    ignored = _NOT_STATE | _COUNTS
    return {
        name: value for name, value in state.items() if name not in ignored and value is not None
    }


def _is_named(name: str, fields: frozenset[str] | None) -> bool:
    return fields is None or name in fields


def _fields(context: object) -> Mapping[str, object] | None:
    """Return the fields of a runtime context; ``None`` where it is an object without fields."""
    if isinstance(context, Mapping):
        return context
    if isinstance(context, BaseModel):
        named = {name: getattr(context, name) for name in type(context).model_fields}
        return {**named, **(context.model_extra or {})}
    if dataclasses.is_dataclass(context) and not isinstance(context, type):
        return {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    return None
