"""stampcache for LlamaIndex: query engines whose answers are cached while they still hold."""

from llama_index_stampcache.cached_retriever import CachedRetriever
from llama_index_stampcache.chat_engine import CachedChatEngine
from llama_index_stampcache.embedding import CachedEmbedding
from llama_index_stampcache.engine import CachedQueryEngine
from llama_index_stampcache.events import CacheHitEvent, CacheMissEvent
from llama_index_stampcache.llm import CachedLLM
from llama_index_stampcache.sub_questions import cache_sub_questions

__version__ = "0.1.0"

__all__ = [
    "CacheHitEvent",
    "CacheMissEvent",
    "CachedChatEngine",
    "CachedEmbedding",
    "CachedLLM",
    "CachedQueryEngine",
    "CachedRetriever",
    "cache_sub_questions",
]
