"""Who calls a cached chat model, carried from the call to where LangChain has the model run.

LangChain hands the config of a call to ``invoke`` and ``stream``, and only part of it further on; so the
caller is read there, and travels among the call options. It is taken out of them again before keys are
made and the inner model is called.
"""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.runnables import RunnableConfig, ensure_config

from langchain_stampcache.caller import Caller, caller_of
from stampcache.adapters import Surroundings, surroundings

_CALLED = "stampcache_called"


class Called:
    """Who makes a call, and what the scopes around it said when it was made.

    Older versions of LangChain show traces the options of a stream as they are. So its repr says nothing,
    and it has no field for them to write out.
    """

    __slots__ = ("_told",)

    def __init__(self, caller: Caller, said: Surroundings | None) -> None:
        self._told: Callable[[], tuple[Caller, Surroundings | None]] = lambda: (caller, said)

    def __repr__(self) -> str:
        return "Called()"

    @property
    def caller(self) -> Caller:
        """Who makes it."""
        return self._told()[0]

    @property
    def said(self) -> Surroundings | None:
        """What the scopes around it said."""
        return self._told()[1]


_NOBODY = Called(Caller(), None)


def with_caller(
    options: Mapping[str, Any],
    config: RunnableConfig | None,
    run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None = None,
) -> dict[str, Any]:
    """Return call options that say who calls, if these do not.

    Args:
        options: of the call.
        config: of the call, where it is at hand.
        run_manager: of the call, whose metadata count where the config says nothing.
    """
    if isinstance(options.get(_CALLED), Called):
        return dict(options)
    whole = ensure_config(config)
    inherited = getattr(whole.get("callbacks"), "metadata", None) or {}
    of_run = run_manager.metadata if run_manager is not None else None
    metadata = {**inherited, **(of_run or {}), **(whole.get("metadata") or {})}
    whole["metadata"] = metadata
    return {**options, _CALLED: Called(caller_of(whole), surroundings())}


def called_by(options: Mapping[str, Any]) -> Called:
    """Return who calls, by options of `with_caller`."""
    called = options.get(_CALLED)
    return called if isinstance(called, Called) else _NOBODY


def without_caller(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call options that are the user's own."""
    return {name: value for name, value in options.items() if name != _CALLED}
