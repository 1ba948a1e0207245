"""Faults that are there: they are told in the matrix, and their tests are expected to fail.

A test that passes nevertheless fails, so that a mended fault leaves this list.
"""

from collections.abc import Mapping

KNOWN: Mapping[tuple[str, str], str] = {}
"""By the number of the case and the name of the seam: what is wrong."""
