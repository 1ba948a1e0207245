"""The stores: memory (the executable specification) and SQLite; independent siblings."""
