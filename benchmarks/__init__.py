"""Benchmarks: modules that print a table; run one with ``python -m benchmarks.NAME``."""
