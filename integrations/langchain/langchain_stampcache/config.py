"""What of LangChain's config of a call may change its answer, as functions and graphs read it there."""

from langchain_core.runnables import RunnableConfig

from stampcache import Scope
from stampcache.adapters import CanonicalError, current_scope, holds_secret

# Which run it is, and nothing of what is to be answered.
RUN_NAMES = frozenset({
    "checkpoint_id", "checkpoint_map", "checkpoint_ns", "langgraph_request_id", "run_id",
    "thread_id", "thread_ts",
})  # fmt: skip
_TO_THE_CACHE = "stampcache"
_WHO = frozenset({"audience", "namespace", "tenant"})


def configured(config: RunnableConfig | None, who: Scope | None) -> dict[str, object]:
    """Return what is ``configurable`` in a config but which run it is, secrets, and who asks.

    A function may read any of it, so all is keyed. Of ``metadata`` nothing is: it is for traces.

    Args:
        config: of the call.
        who: asks, as the config says; ``None``: as `stampcache.scope` says. Another one that is named
            there nevertheless is keyed, too, since a function may answer for that one.

    Raises:
        CanonicalError: a name in it is no text.
    """
    asking = current_scope() if who is None else who
    kept: dict[str, object] = {}
    for name, value in ((config or {}).get("configurable") or {}).items():
        if not isinstance(name, str):
            raise CanonicalError(f"configurable has the key {name!r}, which is no text")
        if name in RUN_NAMES or name == _TO_THE_CACHE or name.startswith("__"):
            continue
        is_asking = name in _WHO and asking is not None and getattr(asking, name) == value
        if not is_asking and not holds_secret(name, value):
            kept[name] = value
    return kept
