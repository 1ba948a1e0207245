"""Any chat model, LLM or function as one thing that answers a prompt, to threads and to tasks."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from msgspec import Struct

from stampcache.errors import ConfigError, JudgeError
from stampcache.model import Usage

Call: TypeAlias = Callable[[str], Any]
_OBJECT = {"type": "json_object"}
_ONLY_FORMALLY_ASYNC = frozenset(
    {
        "langchain_core.language_models.chat_models",
        "langchain_core.language_models.llms",
        "llama_index.core.llms.custom",
    }
)
"""Where a model has its async method from these, that one runs the sync method: on the event loop, or in
a thread of the application's pool that is lost while it hangs."""


class Reply(Struct, frozen=True):
    """What a model replied, and the tokens it took, as far as it told."""

    text: str
    usage: Usage = Usage()


class AskModel(Protocol):
    """Answers a prompt; raises whatever its model raises."""

    @property
    def name(self) -> str:
        """How the model is called."""
        ...

    @property
    def awaits(self) -> bool:
        """Whether it answers to tasks without blocking them; otherwise `ask` it in a thread."""
        ...

    def ask(self, prompt: str) -> Reply:
        """Return what it replies."""
        ...

    async def aask(self, prompt: str) -> Reply:
        """See `ask`."""
        ...


class _Called:
    """A pair of calls, one of which may be missing."""

    def __init__(
        self, name: str, call: Call | None, acall: Callable[[str], Awaitable[Any]] | None
    ) -> None:
        self.name = name
        self.awaits = acall is not None
        self._call = call
        self._acall = acall

    def ask(self, prompt: str) -> Reply:
        if self._call is None:
            raise JudgeError("this judge is a coroutine function; use it with an AsyncCache")
        return _reply(self._call(prompt))

    async def aask(self, prompt: str) -> Reply:
        if self._acall is None:
            raise JudgeError("this judge is no coroutine function")
        return _reply(await self._acall(prompt))


def as_model(given: object, *, json_mode: bool = False) -> AskModel:
    """Return a LangChain chat model or LLM, a LlamaIndex LLM, or a function of a prompt as one thing.

    With ``json_mode`` a LangChain model is told to reply with one JSON object
    (``response_format``); what others are told is the affair of whoever made them.

    Raises:
        ConfigError: it is none of these.
    """
    name = _name(given)
    bind = getattr(given, "bind", None)
    model = bind(response_format=_OBJECT) if json_mode and callable(bind) else given
    invoke, complete = getattr(model, "invoke", None), getattr(model, "complete", None)
    native = _is_async(given)
    if callable(invoke):
        return _Called(name, invoke, getattr(model, "ainvoke", None) if native else None)
    if callable(complete):
        return _Called(name, complete, getattr(model, "acomplete", None) if native else None)
    if callable(given):
        made = given if inspect.isroutine(given) else getattr(given, "__call__", given)  # noqa: B004 - whether calling it gives a coroutine
        is_async = inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(made)
        return _Called(name, None, given) if is_async else _Called(name, given, None)
    raise ConfigError(
        f"judge= is a {type(given).__name__}; give a LangChain chat model, a LlamaIndex LLM, or a"
        " function that takes a prompt and returns a text."
    )


def _name(given: object) -> str:
    """Return how a model is called; what is only wrapped around one has no name of its own."""
    inner = _wrapped(given)
    if inner is not None:
        return _name(inner)
    for attribute in ("model_name", "model", "__name__"):
        name = getattr(given, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(given).__name__


def _is_async(given: object) -> bool:
    """Tell whether the async method of a model is one of its own."""
    inner = _wrapped(given)
    if inner is not None:
        return _is_async(inner)
    methods = [getattr(type(given), name, None) for name in ("_agenerate", "acomplete")]
    return not any(getattr(one, "__module__", "") in _ONLY_FORMALLY_ASYNC for one in methods)


def _wrapped(given: object) -> object | None:
    """Return the model under ``bind``, ``with_retry`` and ``with_fallbacks`` of LangChain."""
    for attribute in ("bound", "runnable"):
        inner = vars(given).get(attribute) if hasattr(given, "__dict__") else None
        if inner is not None and callable(getattr(inner, "invoke", None)):
            return cast("object", inner)
    return None


def _reply(raw: object) -> Reply:
    """Return the text of what a model replied, whichever form it has.

    Raises:
        JudgeError: it has no text.
    """
    for read in (_plain, _message, _completion):
        reply = read(raw)
        if reply is not None:
            return reply
    if inspect.iscoroutine(raw):
        raw.close()
    raise JudgeError(f"the judge returned a {type(raw).__name__} without a text")


def _plain(raw: object) -> Reply | None:
    return Reply(raw) if isinstance(raw, str) else None


def _message(raw: object) -> Reply | None:
    """Read a LangChain message."""
    if not hasattr(raw, "content"):
        return None
    text = getattr(raw, "text", None)
    text = text() if callable(text) and not isinstance(text, str) else text
    content = text if isinstance(text, str) else raw.content
    if not isinstance(content, str):
        return None
    told = getattr(raw, "usage_metadata", None)
    return Reply(str(content), _usage(told, "input_tokens", "output_tokens"))


def _completion(raw: object) -> Reply | None:
    """Read a LlamaIndex completion."""
    text = getattr(raw, "text", None)
    if not isinstance(text, str):
        return None
    told = getattr(raw, "additional_kwargs", None)
    return Reply(text, _usage(told, "prompt_tokens", "completion_tokens"))


def _usage(told: object, read: str, written: str) -> Usage:
    """Return what a provider told of tokens; what is no number of them is unknown."""
    if not isinstance(told, Mapping):
        return Usage()
    return Usage(input_tokens=_tokens(told.get(read)), output_tokens=_tokens(told.get(written)))


def _tokens(told: object) -> int | None:
    return told if type(told) is int and told >= 0 else None
