"""Who asks, where a framework carries it itself: in the config of a run, or in an agent's context.

What `stampcache.scope` says comes first, then the places that an adapter passes, in the order of its
documentation.
"""

from collections.abc import Mapping, Sequence

from stampcache.errors import ConfigError, ScopeError
from stampcache.model import AS_SET, Controls, Scope
from stampcache.scope import surroundings

SCOPE_NAMES = ("tenant", "namespace", "audience")
CONTROL_NAMES = ("no_cache", "no_store", "ttl_s", "variety")
KIND_NAME = "kind"
OURS = "stampcache"
"""Under this name a place may hold a mapping of both: names of the scope, and of controls."""
_SAYING = frozenset({*SCOPE_NAMES, OURS})


def scope_in(*places: object) -> Scope | None:
    """Return who asks by these places, for ``Request.scope``; ``None`` where they add nothing.

    Each name is taken from the first that says it: `stampcache.scope`, then the places in their order,
    but for those that name another tenant. Where nobody names a tenant, only what stands under
    ``stampcache`` counts: a bare ``audience`` may be anything.

    Args:
        places: mappings or objects with ``tenant``, ``namespace`` and ``audience``, or with a mapping of
            them under ``stampcache``; anything else says nothing.

    Raises:
        ScopeError: one of them is no text, or an empty tenant: nobody knows then who asks.
    """
    places = tuple(place for place in places if _may_say(place))
    if not places:  # nearly always
        return None
    said = surroundings()
    around = Scope(tenant="") if said is None else said.scope
    given = _said(around, places, bare=True)
    if "tenant" not in given:
        given = _said(around, places, bare=False)
    texts = {name: _text(name, value) for name, value in given.items()}
    inner = Scope(**{"tenant": "", **texts})
    return None if inner == around else inner


def _said(around: Scope, places: Sequence[object], *, bare: bool) -> dict[str, object]:
    """Return what is said of the scope, each name by the first that says it."""
    unsaid = Scope(tenant="")
    given: dict[str, object] = {
        name: value
        for name in SCOPE_NAMES
        if (value := getattr(around, name)) != getattr(unsaid, name)
    }
    for place in places:
        found = {name: _found(place, name, bare=bare) for name in SCOPE_NAMES}
        named = {name: value for name, value in found.items() if value is not None}
        tenant = named.get("tenant")
        if tenant is not None and "tenant" in given and not _same(tenant, given["tenant"]):
            continue
        given = {**named, **given}
    return given


def _same(one: object, other: object) -> bool:
    return isinstance(one, str) and one == other


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
        known = (*SCOPE_NAMES, *CONTROL_NAMES, KIND_NAME)
        unknown = ours.keys() - set(known)
        if unknown:
            names = ", ".join(known)
            raise ConfigError(
                f'"{OURS}" holds {", ".join(sorted(map(repr, unknown)))}; it takes {names}.'
            )
        given = {name: ours[name] for name in CONTROL_NAMES if name in ours}
        if given:
            controls = controls.over(Controls(**given))  # type: ignore[arg-type]  # checked there
    return controls


def kind_in(*places: object) -> str:
    """Return the kind of data that these places name under ``stampcache``, for ``Request.kind``.

    The first one that names any is taken; empty where none does.

    Raises:
        ConfigError: it is no text.
    """
    for place in places:
        kind = _ours(place).get(KIND_NAME)
        if kind is None:
            continue
        if not isinstance(kind, str):
            raise ConfigError(f"{KIND_NAME} is {kind!r}; give the name of a kind of data.")
        return kind
    return ""


def _may_say(place: object) -> bool:
    if type(place) is dict:
        return not _SAYING.isdisjoint(place)
    return place is not None


def _ours(place: object) -> Mapping[str, object]:
    if place is None or (type(place) is dict and OURS not in place):  # nearly always
        return {}
    ours = place.get(OURS) if isinstance(place, Mapping) else getattr(place, OURS, None)
    return ours if isinstance(ours, Mapping) else {}


def _found(place: object, name: str, *, bare: bool) -> object:
    ours = _ours(place).get(name)
    if ours is not None or not bare:
        return ours
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or (name == "tenant" and not value):
        raise ScopeError(f"{name} is {value!r}; give it as a text, converted where it is made.")
    return value
