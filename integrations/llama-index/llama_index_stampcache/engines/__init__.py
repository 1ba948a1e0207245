"""Query engines: `CachedQueryEngine` and sub-questions."""
