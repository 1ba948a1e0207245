"""Who makes a call of a chain, and what the cache is told for it: by the scope around, or the config.

Taken when the call is made. A stream may be read where its scope has ended, and must then not be
taken for somebody else's.
"""

from contextlib import AbstractContextManager

from langchain_core.runnables import RunnableConfig
from msgspec import Struct

from stampcache import ConfigError, Controls, Scope, ScopeError
from stampcache.adapters import (
    Surroundings,
    controls_in,
    kind_in,
    said_before,
    scope_in,
    surroundings,
)

_AS_SET = controls_in()  # nothing otherwise


class Caller(Struct, frozen=True, kw_only=True):
    """``around`` is what the scopes around the call said.

    ``problem`` is set where what is said of the caller makes no sense: then no cache is asked.
    """

    scope: Scope | None = None
    controls: Controls = _AS_SET
    kind: str = ""
    around: Surroundings | None = None
    problem: ScopeError | ConfigError | None = None

    def inside(self) -> AbstractContextManager[object]:
        """Return the scope around the call, for its steps that run later: caches below see it, too."""
        return said_before(self.around)


def caller_of(config: RunnableConfig) -> Caller:
    """Return who calls, by `stampcache.scope`, else by ``metadata``, else by ``configurable``."""
    said = surroundings()
    places = (config.get("metadata"), config.get("configurable"))
    try:
        who, controls, kind = scope_in(*places), controls_in(*places), kind_in(*places)
    except (ScopeError, ConfigError) as error:
        return Caller(problem=error, around=said)
    if said is not None:
        who = said.scope if who is None else who
        controls = controls if said.controls == _AS_SET else controls.over(said.controls)
    return Caller(scope=who, controls=controls, kind=kind, around=said)
