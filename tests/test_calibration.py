"""Thresholds are cosines, checked where they enter, and belong to measured embedders only."""

import math
import warnings
from collections.abc import Mapping

import pytest

from stampcache.calibration import (
    MINILM,
    MULTILINGUAL,
    Calibration,
    StampCacheWarning,
    as_calibration,
    calibration_for,
)
from stampcache.errors import ConfigError


def test_a_namespace_has_its_own_threshold_or_the_common_one() -> None:
    calibration = Calibration(0.9, {"legal": 0.97})

    assert calibration.threshold_for("legal") == 0.97
    assert calibration.threshold_for("anything else") == 0.9


def test_the_measured_embedder_says_what_it_was_measured_on() -> None:
    calibration = calibration_for(MINILM)

    assert calibration is not None
    assert 0.8 <= calibration.threshold < 1
    assert "fow-cache" in calibration.measured_on


def test_a_calibration_of_single_languages_holds_for_these_alone() -> None:
    calibration = Calibration(0.9, {"legal": 0.97}, languages={"English": 0.95})

    assert calibration.threshold_for("any", "How?") == 0.95
    assert calibration.threshold_for("legal", "How?") == 0.97
    assert calibration.threshold_for("any", "怎么办？") == 0.9
    assert (calibration.lacks("How?"), calibration.lacks("怎么办？")) == ("", "Chinese")
    assert calibration.between("How?", "Why?") is None
    assert calibration.between("How?", "怎么办？") == ("English", "Chinese")


def test_a_calibration_without_languages_holds_for_all() -> None:
    calibration = Calibration(0.9)

    assert calibration.lacks("怎么办？") == ""
    assert calibration.between("How?", "怎么办？") is None


def test_the_multilingual_embedder_is_calibrated_for_english() -> None:
    calibration = calibration_for(MULTILINGUAL)

    assert calibration is not None
    assert list(calibration.languages) == ["English"]


def test_a_language_that_is_not_told_apart_is_refused() -> None:
    with pytest.raises(ConfigError, match="'German' is given"):
        Calibration(0.9, languages={"German": 0.9})
    with pytest.raises(ConfigError, match="cosine"):
        Calibration(0.9, languages={"English": 0.2})


def test_an_embedder_that_nobody_measured_has_no_calibration() -> None:
    assert calibration_for("somebody's model") is None
    assert calibration_for("") is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (0.9, Calibration(0.9)),
        (1, Calibration(1)),
        ({"threshold": 0.9}, Calibration(0.9)),
        ({"threshold": 0.9, "namespaces": {"a": 0.95}}, Calibration(0.9, {"a": 0.95})),
        (Calibration(0.8), Calibration(0.8)),
        (None, None),
    ],
)
def test_it_is_given_as_a_number_a_mapping_or_itself(
    raw: float | Mapping[str, object] | Calibration | None, expected: Calibration | None
) -> None:
    assert as_calibration(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        0.2,
        0.0,
        -1.0,
        1.0001,
        90,
        math.nan,
        math.inf,
        True,
        "0.9",
        {"threshold": 0.2},
        {"threshold": 0.9, "namespaces": {"a": 0.3}},
        {"threshold": 0.9, "namespaces": {"a": 95.0}},
        {"threshold": "high"},
        {"threshold": 0.9, "thresholds": {}},
        {"namespaces": {}},
        {},
    ],
)
def test_what_is_no_cosine_is_refused_in_one_sentence(raw: object) -> None:
    with pytest.raises(ConfigError) as refused:
        as_calibration(raw)  # type: ignore[arg-type]  # users are not all type-checked

    assert str(refused.value).endswith(".")


def test_a_distance_is_explained() -> None:
    with pytest.raises(ConfigError, match="higher is closer"):
        as_calibration(0.1)


@pytest.mark.parametrize("raw", [0.5, 0.7499, {"threshold": 0.9, "namespaces": {"a": 0.6}}])
def test_a_loose_threshold_is_warned_of(raw: float | Mapping[str, object]) -> None:
    with pytest.warns(StampCacheWarning, match="loose"):
        calibration = as_calibration(raw)

    assert calibration is not None


def test_a_threshold_that_is_not_loose_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_calibration(0.75)
