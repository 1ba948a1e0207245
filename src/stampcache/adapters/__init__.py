"""Everything that an adapter of a framework may use besides the public names of `stampcache`.

An adapter turns calls of its framework into requests (`holds_secret` and `callable_identity` say
what of a setting is keyed, `named_source` what a chunk comes from), runs them through a `Front`, and
reports the outcome with `fields`. What stands here is kept stable for adapters outside of this
repository, too.
"""

from stampcache.adapters.fingerprint import callable_identity
from stampcache.adapters.front import Found, Front, Made, Read, Recheck
from stampcache.adapters.reporting import CacheFields, fields
from stampcache.adapters.sources import SOURCE_NAMES, named_source
from stampcache.adapters.versions import Grounding, Validity, VersionOf, checked, seen_stamp
from stampcache.assembly import CAPACITY, LIFETIME_S
from stampcache.core import Core
from stampcache.effects import Flow, Step
from stampcache.embedders.frameworks import name_of
from stampcache.errors import CanonicalError
from stampcache.explain import Explanation
from stampcache.flows import Ask
from stampcache.intake import Tenants
from stampcache.scope import current_scope
from stampcache.unkeyed import CALLING, holds_secret, shaping

__all__ = [
    "CALLING",
    "CAPACITY",
    "LIFETIME_S",
    "SOURCE_NAMES",
    "Ask",
    "CacheFields",
    "CanonicalError",
    "Core",
    "Explanation",
    "Flow",
    "Found",
    "Front",
    "Grounding",
    "Made",
    "Read",
    "Recheck",
    "Step",
    "Tenants",
    "Validity",
    "VersionOf",
    "callable_identity",
    "checked",
    "current_scope",
    "fields",
    "holds_secret",
    "name_of",
    "named_source",
    "seen_stamp",
    "shaping",
]
