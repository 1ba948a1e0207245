"""Who asks, where a framework carries it itself: in the config of a run, or in an agent's context.

What `stampcache.scope` says comes first. Where that names no tenant, the first place that does is
taken: an adapter passes the places in the order of its documentation.
"""

from collections.abc import Mapping

from stampcache.errors import ConfigError, ScopeError
from stampcache.model import AS_SET, Controls, Scope
from stampcache.scope import surroundings

SCOPE_NAMES = ("tenant", "namespace", "audience")
CONTROL_NAMES = ("no_cache", "no_store", "ttl_s", "variety")
OURS = "stampcache"
"""Under this name a place may hold a mapping of both: names of the scope, and of controls."""


def scope_in(*places: object) -> Scope | None:
    """Return who asks by these places, for ``Request.scope``; ``None`` where they add nothing.

    Args:
        places: mappings or objects with ``tenant``, ``namespace`` and ``audience``, or with a mapping of
            them under ``stampcache``; anything else says nothing.

    Raises:
        ScopeError: one of them is no text, or an empty tenant: nobody knows then who asks.
    """
    said = surroundings()
    if said is not None and said.scope.tenant:
        return None
    for place in places:
        named = {name: value for name in SCOPE_NAMES if (value := _found(place, name)) is not None}
        if named.get("tenant") is None:
            continue
        around = Scope(tenant="") if said is None else said.scope
        texts = {name: _text(name, value) for name, value in named.items()}
        inner = {"namespace": around.namespace, "audience": around.audience, **texts}
        return Scope(**inner)
    return None


def controls_in(*places: object) -> Controls:
    """Return what these places tell the cache to do otherwise, for ``Request.controls``.

    Raises:
        ConfigError: a control is unknown or out of range.
    """
    controls = AS_SET
    for place in places:
        ours = _ours(place)
        if not ours:
            continue
        unknown = ours.keys() - {*SCOPE_NAMES, *CONTROL_NAMES}
        if unknown:
            names = ", ".join((*SCOPE_NAMES, *CONTROL_NAMES))
            raise ConfigError(
                f'"{OURS}" holds {", ".join(sorted(map(repr, unknown)))}; it takes {names}.'
            )
        given = {name: ours[name] for name in CONTROL_NAMES if name in ours}
        if given:
            controls = controls.over(Controls(**given))  # type: ignore[arg-type]  # checked there
    return controls


def _ours(place: object) -> Mapping[str, object]:
    ours = place.get(OURS) if isinstance(place, Mapping) else getattr(place, OURS, None)
    return ours if isinstance(ours, Mapping) else {}


def _found(place: object, name: str) -> object:
    ours = _ours(place).get(name)
    if ours is not None:
        return ours
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or (name == "tenant" and not value):
        raise ScopeError(f"{name} is {value!r}; give it as a text, converted where it is made.")
    return value
