"""The seams at which a cache stands, by name."""
