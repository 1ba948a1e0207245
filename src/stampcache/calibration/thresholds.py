"""From which similarity on two questions count as the same, for each measured embedder (pure).

The unit is cosine similarity, higher is closer, and there is no other. A threshold belongs to one
embedder: the same number means something else for another one. So an embedder that nobody measured
has no calibration, and a cache with such an embedder serves exact hits only (ADR 0006).
"""

import warnings
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from stampcache.errors import ConfigError
from stampcache.languages import CHINESE, ENGLISH, language_of

LOWEST = 0.5
LOOSE = 0.75
MINILM = "all-minilm-l6-v2"
MULTILINGUAL = "multilingual-e5-small-q4@aba887a7aa821c01a0eb87ea552afb9e"


class StampCacheWarning(UserWarning):
    """A setting that works, but probably not as it was meant."""


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """Cosine thresholds in [0.5, 1]: pairs of questions at or above it go on to the other checks.

    ``namespaces`` holds thresholds of single namespaces; ``measured_on`` says on which data, with
    which rates. ``languages`` holds thresholds of single languages (`stampcache.languages`): where
    there are some, questions in any other language have none, nor has a pair in two languages.

    Raises:
        ConfigError: a threshold is no such cosine.
    """

    threshold: float
    namespaces: Mapping[str, float] = {}
    measured_on: str = ""
    languages: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        for threshold in self.thresholds:
            _check(threshold)
        unknown = sorted(self.languages.keys() - {ENGLISH, CHINESE})
        if unknown:
            raise ConfigError(
                f"A calibration for {unknown[0]!r} is given; the languages that are told apart are "
                f"{ENGLISH!r} and {CHINESE!r}."
            )

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Every threshold that is in it."""
        return (self.threshold, *self.namespaces.values(), *self.languages.values())

    def threshold_for(self, namespace: str, question: str = "") -> float:
        """Return the namespace's own threshold, that of the question's language, or the common one."""
        own = self.namespaces.get(namespace)
        if own is None and self.languages:
            own = self.languages.get(language_of(question))
        return self.threshold if own is None else own

    def lacks(self, question: str) -> str:
        """Return the language of a question for which there is no threshold; empty: there is one."""
        language = language_of(question) if self.languages else ""
        return "" if language in self.languages else language

    def between(self, asked: str, stored: str) -> tuple[str, str] | None:
        """Return the languages of two questions between which there is no threshold."""
        if not self.languages:
            return None
        both = language_of(asked), language_of(stored)
        return None if both[0] == both[1] else both


def _check(threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise ConfigError(
            f"The threshold {threshold!r} is no number; give a cosine similarity such as 0.9."
        )
    if not threshold <= 1:
        raise ConfigError(
            f"The threshold {threshold} is above 1; it is a cosine similarity, not a percentage."
        )
    if threshold < LOWEST:
        raise ConfigError(
            f"The threshold {threshold} is below {LOWEST}, where questions only share a topic; it "
            "is a cosine similarity, higher is closer (a distance of 0.1 is the similarity 0.9)."
        )


_MEASURED: Mapping[str, Calibration] = MappingProxyType(
    {
        MINILM: Calibration(
            threshold=0.90,
            measured_on=(
                "English, cosine and guards together, 95 % intervals. Fitted: traps served 2.4 "
                "% (0.7 to 8.4) of Kmemo's near misses, 1.3 % (0.7 to 2.4) of the nearest other "
                "questions of MTRAG. Not fitted: fow-cache serves 40.7 % (35.3 to 46.3) of what "
                "should hit and 2.0 % (0.9 to 4.3) of traps, QQP 33.9 % (31.5 to 36.3) and 4.0 "
                "% (3.3 to 4.8), CheckList (the guards were written by one half of it) 66.7 % "
                "(62.6 to 70.6) and 0.1 % (0.0 to 0.6)."
            ),
        ),
        MULTILINGUAL: Calibration(
            threshold=0.975,
            languages={ENGLISH: 0.975},
            measured_on=(
                "English, cosine and guards together, 95 % intervals. Fitted: traps served 2.4 "
                "% (0.7 to 8.4) of Kmemo's near misses, 1.3 % (0.7 to 2.4) of the nearest other "
                "questions of MTRAG. Not fitted: fow-cache serves 37.3 % (32.1 to 42.9) of what "
                "should hit and 1.7 % (0.7 to 3.8) of traps, QQP 28.1 % (25.9 to 30.5) and 3.0 "
                "% (2.4 to 3.7), CheckList 69.6 % (65.5 to 73.4) and 0.2 % (0.1 to 0.8)."
            ),
        ),
    }
)


def calibration_for(embedder_name: str) -> Calibration | None:
    """Return the calibration that was measured for this embedder, or ``None`` if none was."""
    return _MEASURED.get(embedder_name)


def as_calibration(
    raw: float | Mapping[str, object] | Calibration | None,
) -> Calibration | None:
    """Return a calibration from a threshold, a mapping of its fields, or itself.

    Warns with `StampCacheWarning` of thresholds below 0.75.

    Raises:
        ConfigError: a threshold is no cosine in [0.5, 1], or a field is unknown or of a wrong type.
    """
    if raw is None:
        return None
    given = _given(raw)
    loose = sorted({one for one in given.thresholds if one < LOOSE})
    if loose:
        warnings.warn(
            f"The threshold {loose[0]} is loose: below {LOOSE} most pairs are different questions "
            "on one topic; measure it on your own questions.",
            StampCacheWarning,
            stacklevel=2,
        )
    return given


def _given(raw: float | Mapping[str, object] | Calibration) -> Calibration:
    if isinstance(raw, Calibration):
        return raw
    if not isinstance(raw, Mapping):
        return Calibration(raw)
    try:
        return msgspec.convert(dict(raw), Calibration)
    except msgspec.ValidationError as error:
        raise ConfigError(f"This is no calibration: {error}.") from error
