"""Watched vector stores, record managers and document stores: what is written is told to the cache."""
