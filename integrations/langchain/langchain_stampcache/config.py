"""What of LangChain's config of a call may change its answer, as functions and graphs read it there."""

from langchain_core.runnables import RunnableConfig

from stampcache.adapters import CanonicalError, holds_secret

# Which run it is, and nothing of what is to be answered.
RUN_NAMES = frozenset({
    "checkpoint_id", "checkpoint_map", "checkpoint_ns", "langgraph_request_id", "run_id",
    "thread_id", "thread_ts",
})  # fmt: skip
# Said to the cache itself: who asks is in the scope, and how it is asked in the controls.
_TOLD = frozenset({"audience", "namespace", "stampcache", "tenant"})


def configured(config: RunnableConfig | None) -> dict[str, object]:
    """Return what is ``configurable`` in a config but who asks, which run it is, and secrets.

    A function may read any of it, so all is keyed. Of ``metadata`` nothing is: it is for traces.

    Raises:
        CanonicalError: a name in it is no text.
    """
    given = (config or {}).get("configurable") or {}
    kept: dict[str, object] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise CanonicalError(f"configurable has the key {name!r}, which is no text")
        ignored = name in RUN_NAMES or name in _TOLD or name.startswith("__")
        if not ignored and not holds_secret(name, value):
            kept[name] = value
    return kept
