"""The demo: the RAG application of an example, which answers through the cache."""

from stampcache.demo.run import run

__all__ = ["run"]
