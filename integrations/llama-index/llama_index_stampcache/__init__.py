"""stampcache for LlamaIndex: query engines whose answers are cached while they still hold."""

from llama_index_stampcache.engine import CachedQueryEngine

__version__ = "0.1.0"

__all__ = ["CachedQueryEngine"]
