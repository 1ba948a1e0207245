"""GPTCache 0.1.44: its distance evaluation at its shipped threshold, with FAISS's squared distance."""

from gptcache import Config
from gptcache.similarity_evaluation.distance import SearchDistanceEvaluation
from handing import Asked, Decision, run

EVALUATION = SearchDistanceEvaluation()
LOW, HIGH = EVALUATION.range()
NEEDED = LOW + (HIGH - LOW) * Config().similarity_threshold


def decide(pair: Asked) -> Decision:
    """Judge a pair as its adapter does with what its index found."""
    distance = float(((pair.asked_vector - pair.stored_vector) ** 2).sum())
    found = {"search_result": (distance, 0)}
    rank = float(EVALUATION.evaluation({"question": pair.asked}, found))
    return Decision(rank >= NEEDED, rank)


run(decide)
