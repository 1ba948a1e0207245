"""Trains the verifier: ``python -m training.verifier --data ../shared/data --out FILE``."""
