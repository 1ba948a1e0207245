"""What a verifier reads in Chinese questions, and what it compares (pure)."""

from stampcache.languages import CHINESE
from stampcache.verifying.chinese.pair import NAMES, against
from stampcache.verifying.chinese.reading import reader
from stampcache.verifying.trained import Language

IN_CHINESE = Language(CHINESE, NAMES, reader, against)

__all__ = ["IN_CHINESE"]
