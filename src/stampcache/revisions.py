"""By which revision each model answered last, as this process has seen it (ADR 0014)."""

from stampcache.request import Settings

KEPT = 1_024


class Revisions:
    """The latest revision by model and endpoint; empty where none matters."""

    def __init__(self, *, matter: bool) -> None:
        self._matter = matter
        self._latest: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._latest)

    def saw(self, settings: Settings, revision: str) -> None:
        """Note by which revision a model was served; nothing where it did not tell."""
        if not revision or not self._matter:
            return
        if len(self._latest) >= KEPT:
            self._latest = {}
        self._latest[settings.model, settings.endpoint] = revision

    def latest(self, settings: Settings) -> str:
        """Return the revision that answered last; empty where that is unknown."""
        if not self._latest:
            return ""
        return self._latest.get((settings.model, settings.endpoint), "")
