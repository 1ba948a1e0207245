"""The settings of one call of a model: what LangChain says of it in a text, and what it leaves out."""

import threading
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache.llm_cache.calling import ModelCall, unsaid
from langchain_stampcache.llm_cache.custom import CustomModels
from langchain_stampcache.llm_cache.llm_string import COUNT, LlmSettings, Said
from langchain_stampcache.parameters import ENDPOINTS, first_text
from stampcache import Settings, canonical

SETTINGS_KEPT = 512


class ModelSettings(Struct, frozen=True):
    """The settings of one call; ``wanted`` is how many answers it asks for, if it says."""

    settings: Settings
    wanted: int | None = None


class CallSettings:
    """Gives the settings of calls; those that are equal are digested once. Safe for threads."""

    def __init__(self, strings: LlmSettings) -> None:
        self._strings = strings
        self._custom = CustomModels()
        self._lock = threading.Lock()
        self._known: dict[tuple[str, bytes], Settings] = {}

    def of(self, llm_string: str, running: ModelCall | None) -> ModelSettings:
        """Return the settings of one call.

        Args:
            llm_string: what LangChain says of it.
            running: the call itself, where it is seen.

        Raises:
            CanonicalError: it cannot be cached; the message names the part.
        """
        read = self._strings.read(llm_string)
        settings, said = read.settings, read.said
        more = self._unsaid(running, said)
        if said.counted:
            more.pop(COUNT, None)
        if not more:
            return ModelSettings(settings, said.count)
        options = more.get("options")
        recounted = COUNT in more or (isinstance(options, dict) and COUNT in options)
        # Where a number of answers is keyed, all that are stored are wanted.
        return ModelSettings(self._with(settings, more), None if recounted else said.count)

    def _unsaid(self, running: ModelCall | None, said: Said) -> dict[str, object]:
        if running is None:
            return {}
        return unsaid(running, said.params, self._custom, is_fresh=said.fresh)

    def _with(self, settings: Settings, more: Mapping[str, object]) -> Settings:
        place = (settings.digest, canonical.value(more))
        known = self._known.get(place)
        if known is None:
            known = replace(
                settings,
                endpoint=first_text(more, ENDPOINTS) or settings.endpoint,
                params={**settings.params, "unsaid": more},
            )
            with self._lock:
                if len(self._known) >= SETTINGS_KEPT:
                    self._known.clear()
                self._known[place] = known
        return known
