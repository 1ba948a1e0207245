"""Watched indexes: `watch`, and what it needs to see writes and searches."""
