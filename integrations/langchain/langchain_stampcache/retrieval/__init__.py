"""Retrievers and embeddings: their caches, and what of them is keyed."""
