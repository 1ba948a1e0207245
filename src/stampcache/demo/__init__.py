"""The demo: a real RAG application, of the examples, that answers through the cache."""

from stampcache.demo.run import run

__all__ = ["run"]
