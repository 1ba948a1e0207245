"""stampcache for LangChain: model calls and RAG answers that are cached while they still hold."""

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_stampcache.cache import StampCache
from langchain_stampcache.cached_retriever import CachedRetriever
from langchain_stampcache.chain import CachedChain
from langchain_stampcache.chat_model import CachedChatModel
from langchain_stampcache.embeddings import CachedEmbeddings
from langchain_stampcache.finding import InPrompt

if TYPE_CHECKING:
    from langchain_stampcache.middleware import StampCacheMiddleware
    from langchain_stampcache.node_cache import StampNodeCache
    from langchain_stampcache.node_keys import node_key

__version__ = "0.1.0"

__all__ = [
    "CachedChain",
    "CachedChatModel",
    "CachedEmbeddings",
    "CachedRetriever",
    "InPrompt",
    "StampCache",
    "StampCacheMiddleware",
    "StampNodeCache",
    "node_key",
]

_AGENTS = {
    "StampCacheMiddleware": "middleware",
    "StampNodeCache": "node_cache",
    "node_key": "node_keys",
}


def __getattr__(name: str) -> object:
    """Import what needs LangChain's agents only once it is asked for."""
    if name not in _AGENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_AGENTS[name]}"), name)
    except ImportError as error:
        raise ImportError(
            f"{name} needs newer or further packages: pip install 'langchain-stampcache[agents]'"
            f" ({error})."
        ) from error
