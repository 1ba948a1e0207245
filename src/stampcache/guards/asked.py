"""One asked question beside many stored ones: each is profiled once, and only if it has to be (pure)."""

from collections.abc import Callable

from stampcache.guards.pair import Finding, compare
from stampcache.guards.profile import Profile, profile
from stampcache.guards.vetoes import vetoes


def profile_entry(entry_id: str, question: str) -> Profile:
    """Return the profile of a stored question; callers may remember it by the entry's id."""
    del entry_id  # only distinguishes entries, so that nothing is shared between tenants
    return profile(question)


class Asked:
    """A question that is compared with stored ones: profiled once, and only if it has to be.

    ``profile_stored`` gives the profile of an entry's question, as `profile_entry` does.
    """

    def __init__(
        self, question: str, profile_stored: Callable[[str, str], Profile] = profile_entry
    ) -> None:
        self._question = question
        self._profile_stored = profile_stored
        self._profile: Profile | None = None

    @property
    def profile(self) -> Profile:
        """The profile of the question that is asked."""
        if self._profile is None:
            self._profile = profile(self._question)
        return self._profile

    def stored(self, question: str, entry_id: str) -> Profile:
        """Return the profile of the question that an entry was stored with."""
        return self._profile_stored(entry_id, question)

    def findings(self, stored: str, entry_id: str) -> tuple[Finding, ...]:
        """Return what `findings` returns for this question and the one stored with an entry."""
        if self._question == stored:
            return ()
        return compare(self.profile, self._profile_stored(entry_id, stored))

    def vetoes(self, stored: str, entry_id: str) -> tuple[Finding, ...]:
        """Return what of these findings no score may overrule; see `stampcache.guards.VETOES`."""
        if self._question == stored:
            return ()
        return vetoes(self.profile, self._profile_stored(entry_id, stored))
