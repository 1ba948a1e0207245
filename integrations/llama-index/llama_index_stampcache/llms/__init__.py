"""Models: `CachedLLM`."""
