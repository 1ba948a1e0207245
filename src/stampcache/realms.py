"""The digests that all requests of one scope and one set of settings share, kept while they are used."""

from collections.abc import Set

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


_NOBODY = _Last(None, None, None, Realm("", "", "", b""))


class Realms:
    """Realms by scope, settings and stamps; safe for threads."""

    def __init__(self, master_secret: bytes) -> None:
        self._master = master_secret
        self._known: dict[tuple[Scope, str, Stamps], Realm] = {}
        self._owners: dict[str, str] = {}
        self._last = _NOBODY

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
            if len(self._owners) >= KEPT:
                self._owners = {}
            self._owners[realm.scope] = realm.tenant
        self._last = _Last(scope, settings, stamps, realm)
        return realm

    def others(self, tenant: str) -> Set[str]:
        """Return the scope digests that are known not to be of this tenant, by its digest."""
        return {scope for scope, owner in list(self._owners.items()) if owner != tenant}

    def forget(self, tenant: str) -> None:
        """Let go of everything that was derived for this tenant, by its digest.

        By an empty one let go of all names; which digests belong together stays known.
        """
        known = list(self._known.items()) if tenant else []
        self._known = {place: realm for place, realm in known if realm.tenant != tenant}
        owners = list(self._owners.items())
        self._owners = {scope: owner for scope, owner in owners if owner != tenant}
        self._last = _NOBODY
