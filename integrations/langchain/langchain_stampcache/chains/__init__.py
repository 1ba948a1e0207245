"""Retrieval and answer as one Runnable: `CachedChain`, of parts or around a chain."""
