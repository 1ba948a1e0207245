"""Everything that an adapter of a framework may use besides the public names of `stampcache`.

An adapter turns calls of its framework into requests (`holds_secret` and `callable_identity` say
what of a setting is keyed, `named_source` what a chunk comes from, `scope_in`, `controls_in` and
`kind_in` what its framework carries of them), runs them through a `Front` (streams through a
`Streaming`, vectors through `Vectors`, what a retriever finds through `Documents`), and reports the
outcome with `fields`. It puts a `Watch` before an index, which announces and tells its writes, and
lets `hear` of its searches; `sweep` checks the watch. What stands here is kept stable for adapters
outside of this repository, too.
"""

from stampcache.adapters.asking import Build, asked
from stampcache.adapters.documents import (
    DocumentForm,
    Documents,
    Retrieved,
    checked_retrieval,
)
from stampcache.adapters.embedders import EmbedderSettings, Role
from stampcache.adapters.fingerprint import callable_identity, value_identity
from stampcache.adapters.front import Found, Front, Kept, Made, Read, Recheck, TooFew
from stampcache.adapters.hearing import FROM_CACHE, hear, is_heard, listening, readings
from stampcache.adapters.index_view import VOLATILE, IndexView, chunk_digest
from stampcache.adapters.known import KnownSettings
from stampcache.adapters.known_functions import KnownFunctions
from stampcache.adapters.reporting import CacheFields, fields
from stampcache.adapters.scoping import controls_in, kind_in, scope_in
from stampcache.adapters.sources import SOURCE_NAMES, named_source
from stampcache.adapters.state import written_by
from stampcache.adapters.streaming import Begun, Replay, Streaming
from stampcache.adapters.sweeping import Sweep, sweep
from stampcache.adapters.vectors import Vectors
from stampcache.adapters.versions import Grounding, Validity, VersionOf, checked, seen_stamp
from stampcache.adapters.watching import Watch
from stampcache.assembly import CAPACITY, LIFETIME_S
from stampcache.core import Core
from stampcache.corpora import Change, Chunk, Committed, Intent, Metric, Reading, Standing
from stampcache.effects import Flow, Step
from stampcache.embedders.frameworks import name_of
from stampcache.errors import CanonicalError
from stampcache.explain import Explanation
from stampcache.flows import Ask
from stampcache.intake import Tenants
from stampcache.scope import Surroundings, current_scope, said_before, surroundings
from stampcache.spaces import as_bytes
from stampcache.streams import AsyncOpened, AsyncReader, Opened, Reader
from stampcache.unkeyed import CALLING, holds_secret, shaping

__all__ = [
    "CALLING",
    "CAPACITY",
    "FROM_CACHE",
    "LIFETIME_S",
    "SOURCE_NAMES",
    "VOLATILE",
    "Ask",
    "AsyncOpened",
    "AsyncReader",
    "Begun",
    "Build",
    "CacheFields",
    "CanonicalError",
    "Change",
    "Chunk",
    "Committed",
    "Core",
    "DocumentForm",
    "Documents",
    "EmbedderSettings",
    "Explanation",
    "Flow",
    "Found",
    "Front",
    "Grounding",
    "IndexView",
    "Intent",
    "Kept",
    "KnownFunctions",
    "KnownSettings",
    "Made",
    "Metric",
    "Opened",
    "Read",
    "Reader",
    "Reading",
    "Recheck",
    "Replay",
    "Retrieved",
    "Role",
    "Standing",
    "Step",
    "Streaming",
    "Surroundings",
    "Sweep",
    "Tenants",
    "TooFew",
    "Validity",
    "Vectors",
    "VersionOf",
    "Watch",
    "as_bytes",
    "asked",
    "callable_identity",
    "checked",
    "checked_retrieval",
    "chunk_digest",
    "controls_in",
    "current_scope",
    "fields",
    "hear",
    "holds_secret",
    "is_heard",
    "kind_in",
    "listening",
    "name_of",
    "named_source",
    "readings",
    "said_before",
    "scope_in",
    "seen_stamp",
    "shaping",
    "surroundings",
    "sweep",
    "value_identity",
    "written_by",
]
