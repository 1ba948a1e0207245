"""The digests that all requests of one scope and one set of settings share, kept while they are used."""

from msgspec import Struct

from stampcache import identity
from stampcache.identity import Realm
from stampcache.model import Scope, Stamps
from stampcache.request import Settings

KEPT = 4_096


class _Last(Struct, frozen=True):
    """The realm that was asked for last; replaced as a whole, so that threads see one or the other."""

    scope: Scope | None
    settings: Settings | None
    stamps: Stamps | None
    realm: Realm


class Realms:
    """Realms by scope, settings and stamps; safe for threads."""

    def __init__(self, master_secret: bytes) -> None:
        self._master = master_secret
        self._known: dict[tuple[Scope, str, Stamps], Realm] = {}
        self._last = _Last(None, None, None, Realm("", "", "", b""))

    def __len__(self) -> int:
        return len(self._known)

    def of(self, scope: Scope, settings: Settings, stamps: Stamps) -> Realm:
        """Return the realm.

        Raises:
            CanonicalError: the settings have no canonical form.
        """
        last = self._last
        if last.scope is scope and last.settings is settings and last.stamps is stamps:
            return last.realm  # one scope, one app: nothing is hashed
        place = (scope, settings.digest, stamps)
        realm = self._known.get(place)
        if realm is None:
            realm = identity.realm(self._master, scope, settings, stamps)
            if len(self._known) >= KEPT:
                self._known = {}
            self._known[place] = realm
        self._last = _Last(scope, settings, stamps, realm)
        return realm
