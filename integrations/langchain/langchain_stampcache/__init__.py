"""stampcache for LangChain: model calls and RAG answers that are cached while they still hold."""

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_stampcache.chains.chain import CachedChain
from langchain_stampcache.chat.model import CachedChatModel
from langchain_stampcache.llm_cache.cache import StampCache
from langchain_stampcache.llm_cache.finding import InPrompt
from langchain_stampcache.retrieval.embeddings import CachedEmbeddings
from langchain_stampcache.retrieval.retriever import CachedRetriever
from langchain_stampcache.watching.watch import watch

if TYPE_CHECKING:
    from langchain_stampcache.agents.middleware import StampCacheMiddleware
    from langchain_stampcache.graphs.keys import node_key
    from langchain_stampcache.graphs.node_cache import StampNodeCache

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
    "watch",
]

_AGENTS = {
    "StampCacheMiddleware": "agents.middleware",
    "StampNodeCache": "graphs.node_cache",
    "node_key": "graphs.keys",
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
