"""One call of a model as a request to the cache, for every seam below which only a prompt is seen."""

import threading
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache import prompt as prompts
from langchain_stampcache.caller import Caller
from langchain_stampcache.llm_cache.finding import Finder, Finding
from stampcache import Evidence, Request, Settings
from stampcache.adapters import Core, Validity, surroundings

SETTINGS_KEPT = 512


class Call(Struct, frozen=True):
    """One call: what is asked of the cache, and the chunks that its answer is made from.

    The evidence stands in the request, too, where it is compared at a lookup. ``wanted`` is how many
    answers are asked for, if the call says so.
    """

    request: Request
    evidence: tuple[Evidence, ...] | None = None
    wanted: int | None = None


class Calls:
    """Makes requests of prompts; safe for threads and tasks."""

    def __init__(self, core: Core, finder: Finder, validity: Validity) -> None:
        self._core = core
        self._finder = finder
        self._validity = validity
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Settings] = {}

    def of(
        self,
        asked: prompts.Chat | str,
        settings: Settings,
        caller: Caller,
        *,
        wanted: int | None = None,
    ) -> Call:
        """Return what is asked: the question where it is found, else the whole prompt.

        Args:
            asked: the prompt in canonical form.
            settings: of the model and of this call.
            caller: who makes the call, and what the cache is told for it.
            wanted: how many answers are asked for, if that is no part of the settings.

        Raises:
            CanonicalError: a part of it has no canonical form.
        """
        finding = self._found(asked)
        if finding is None:
            said = surroundings()
            cited = said.evidence if said is not None else None
            return Call(_exactly(asked, settings, caller), cited, wanted)
        return Call(
            Request(
                question=finding.question,
                history=finding.history,
                evidence=finding.evidence if self._compared(finding) else None,
                settings=self._settings(settings, finding),
                scope=caller.scope,
                controls=caller.controls,
                kind=caller.kind,
            ),
            finding.evidence,
            wanted,
        )

    def _found(self, asked: prompts.Chat | str) -> Finding | None:
        try:
            return self._finder.find(asked)
        except Exception as error:  # noqa: BLE001 - the user's function; counted, exact hits stay
            self._core.counters.note("adapter.question", error)
            return None

    def _compared(self, finding: Finding) -> bool:
        """Tell whether evidence is compared at a lookup, as no announced change would tell of it."""
        if self._validity.grounding == "version":
            return not finding.has_ids
        return self._validity.rechecked

    def _settings(self, settings: Settings, finding: Finding) -> Settings:
        """Return the settings with all that is neither question nor evidence nor history."""
        place = (settings.digest, finding.rest)
        known = self._known.get(place)
        if known is None:
            known = replace(
                settings,
                system=finding.rest,
                corpus=self._validity.corpus if finding.evidence is not None else "",
                whole_corpus=self._validity.whole_corpus and finding.evidence is not None,
            )
            with self._lock:
                if len(self._known) >= SETTINGS_KEPT:
                    self._known.clear()
                self._known[place] = known
        return known


def _exactly(asked: prompts.Chat | str, settings: Settings, caller: Caller) -> Request:
    whole: str | Sequence[object] = asked if isinstance(asked, str) else list(asked.messages)
    return Request(
        prompt=whole,
        settings=settings,
        scope=caller.scope,
        controls=caller.controls,
        kind=caller.kind,
    )
