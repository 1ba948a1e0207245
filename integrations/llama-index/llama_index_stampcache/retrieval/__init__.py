"""Retrievers and embeddings behind a cache."""
