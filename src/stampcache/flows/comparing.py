"""How one cache tells whether two questions are the same one: guards, and a verifier over them (pure).

Without a verifier the cosine decides, and whatever a guard sees rejects. With one, only those guards
still reject that may veto: what the others see is in its score (ADR 0006).
"""

from collections.abc import Callable, Set

from msgspec import Struct

from stampcache.guards import Profile, profile_entry
from stampcache.languages import language_of

GUARDS = "guards-3"
"""Counts up whenever guards begin to see, or no longer see, a difference."""
COSINE = "cosine"
"""What decides where there is no verifier, besides guards; no verifier may be called so."""


class Comparing(Struct, frozen=True, kw_only=True):
    """What a cache compares questions with.

    ``threshold`` is the score at or above which its verifier says that questions are the same; ``None``
    where it has none. ``reads`` tells that the verifier reads each question once, and ``verifier`` is its
    name. ``languages`` are those that it decides in: elsewhere it is cosine and guards; none: in all.
    ``told`` is the cosine from which on a user has it asked: what is below it is not scored.
    """

    profile_stored: Callable[[str, str], Profile] = profile_entry
    threshold: float | None = None
    reads: bool = False
    verifier: str = ""
    languages: Set[str] = frozenset()
    told: float | None = None

    def about(self, question: str) -> "Comparing":
        """Return what this question is compared with: no verifier where it does not decide."""
        if not self.languages or language_of(question) in self.languages:
            return self
        return Comparing(profile_stored=self.profile_stored)

    @property
    def decider(self) -> str:
        """What decides, with its version: a promise holds for it alone."""
        told = "" if self.told is None else f"+from-{self.told:g}"
        return f"{self.verifier or COSINE}+{GUARDS}{told}"


AS_MEASURED = Comparing()
"""Cosine and guards alone."""
