"""stampcache for LangChain: model calls and RAG answers that are cached while they still hold."""

from langchain_stampcache.cache import StampCache
from langchain_stampcache.chain import CachedChain

__version__ = "0.1.0"

__all__ = ["CachedChain", "StampCache"]
