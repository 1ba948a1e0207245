"""Who asks and what is to be done otherwise, where LangChain's config of a call says so."""

from langchain_core.runnables import RunnableConfig
from msgspec import Struct

from stampcache import Controls, Scope
from stampcache.adapters import controls_in, scope_in


class Told(Struct, frozen=True):
    """What a config says of a call."""

    scope: Scope | None
    controls: Controls


def told(config: RunnableConfig) -> Told:
    """Return what a config says: its ``metadata`` first, then ``configurable``.

    Raises:
        ScopeError: a tenant is no text.
        ConfigError: a control is unknown or out of range.
    """
    places = (config.get("metadata"), config.get("configurable"))
    return Told(scope_in(*places), controls_in(*places))
