"""Other caches, each run in an environment of its own (see `benchmarks.stores.beside`)."""
