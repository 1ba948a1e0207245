"""Who makes a call of a chain, and what the cache is told for it: by the scope around, or the config.

Taken when the call is made. A stream may be read where its scope has ended, and must then not be
taken for somebody else's.
"""

from contextlib import AbstractContextManager, nullcontext

from langchain_core.runnables import RunnableConfig
from msgspec import Struct

import stampcache
from langchain_stampcache.config import told
from stampcache import ConfigError, Controls, Scope, ScopeError
from stampcache.adapters import Surroundings, controls_in, kind_in, surroundings

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
        said = self.around
        if said is None:
            return nullcontext()
        return stampcache.scope(
            tenant=said.scope.tenant or None,
            namespace=said.scope.namespace,
            audience=said.scope.audience,
            question=said.question,
            evidence=said.evidence,
            no_cache=said.controls.no_cache,
            no_store=said.controls.no_store,
            ttl_s=said.controls.ttl_s,
            variety=said.controls.variety,
        )


def caller_of(config: RunnableConfig) -> Caller:
    """Return who calls, by `stampcache.scope`, else by ``metadata``, else by ``configurable``."""
    said = surroundings()
    try:
        by_config = told(config)
        kind = kind_in(config.get("metadata"), config.get("configurable"))
    except (ScopeError, ConfigError) as error:
        return Caller(problem=error, around=said)
    who, controls = by_config.scope, by_config.controls
    if said is not None:
        who = said.scope if who is None else who
        controls = controls if said.controls == _AS_SET else controls.over(said.controls)
    return Caller(scope=who, controls=controls, kind=kind, around=said)
