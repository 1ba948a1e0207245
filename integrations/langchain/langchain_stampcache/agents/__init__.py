"""The final answers of agents: `StampCacheMiddleware`."""
