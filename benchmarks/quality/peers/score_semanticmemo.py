"""semanticmemo 2.0: its bundled classifier, then its entity gate below 0.995, as its cache does."""

from handing import Asked, Decision, run
from semanticmemo import CacheConfig, ClassifierConfig
from semanticmemo.classifier import ClassifierService
from semanticmemo.entity_change_detection import EntityChangeDetector

BUNDLED = ClassifierConfig.bundled()
CLASSIFIER = ClassifierService(BUNDLED.model_path, threshold=BUNDLED.threshold)
GATE = EntityChangeDetector(None)
SKIPS_GATE = CacheConfig().high_precision_skip_threshold


def decide(pair: Asked) -> Decision:
    """Judge a pair as its orchestrator does without a cross-encoder, which is its default."""
    score = CLASSIFIER.predict(pair.asked_vector, pair.stored_vector)
    gated = score < SKIPS_GATE and _changed(pair)
    return Decision(score >= CLASSIFIER.threshold and not gated, 0.0 if gated else score)


def _changed(pair: Asked) -> bool:
    """Ask the gate; some pairs end it with a `StopIteration`, and what fails serves nothing."""
    try:
        return bool(GATE.detect(pair.asked, pair.stored).entity_changed)
    except StopIteration:
        return True


run(decide)
