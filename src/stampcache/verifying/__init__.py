"""The verifier that stampcache ships: "same question?" as a calibrated probability.

`load` reads its weights. See ADR 0025 and docs/reference/verifier.md.
"""

from stampcache.verifying.trained import Asking, TrainedVerifier
from stampcache.verifying.weights import load

__all__ = ["Asking", "TrainedVerifier", "load"]
