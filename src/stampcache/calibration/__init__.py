"""From when on two questions count as the same: thresholds, and the promise of a wrong-hit rate (pure).

`Calibration` is a threshold that somebody measured (ADR 0006). `prove` makes a `Promise` from labelled
pairs, or says in a `Refusal` why it cannot; `Promises` finds the one that covers a cache, a `Monitor`
withdraws it, `curve` is what there is to choose from (ADR 0024).
"""

from stampcache.calibration.bounds import Interval, interval, needed
from stampcache.calibration.curve import Point, curve, within
from stampcache.calibration.labels import REPORT, Labelled, Subject, digest_of
from stampcache.calibration.monitor import Monitor, monitor_of, watched
from stampcache.calibration.promise import DELTA, Lack, Promise, Promises, Refusal, promises_from
from stampcache.calibration.proof import prove
from stampcache.calibration.thresholds import (
    LOWEST,
    MINILM,
    MULTILINGUAL,
    Calibration,
    StampCacheWarning,
    as_calibration,
    calibration_for,
)
from stampcache.calibration.weighing import WEIGHTS, reweighed, weighed

__all__ = [
    "DELTA",
    "LOWEST",
    "MINILM",
    "MULTILINGUAL",
    "REPORT",
    "WEIGHTS",
    "Calibration",
    "Interval",
    "Labelled",
    "Lack",
    "Monitor",
    "Point",
    "Promise",
    "Promises",
    "Refusal",
    "StampCacheWarning",
    "Subject",
    "as_calibration",
    "calibration_for",
    "curve",
    "digest_of",
    "interval",
    "monitor_of",
    "needed",
    "promises_from",
    "prove",
    "reweighed",
    "watched",
    "weighed",
    "within",
]
