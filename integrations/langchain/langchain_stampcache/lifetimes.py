"""How long one answer lives at most, where several places say so: the shortest counts."""

from msgspec.structs import replace

from stampcache import Controls
from stampcache.adapters import surroundings


def within(controls: Controls, *limits_s: float | None) -> Controls:
    """Return the controls with the shortest of their own lifetime, of these, and of the scope's."""
    said = surroundings()
    told = (controls.ttl_s, said.controls.ttl_s if said is not None else None, *limits_s)
    known = [float(each) for each in told if each is not None]
    return replace(controls, ttl_s=min(known)) if known else controls
