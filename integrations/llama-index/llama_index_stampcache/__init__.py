"""stampcache for LlamaIndex: query engines whose answers are cached while they still hold."""

from llama_index_stampcache.chats.chat_engine import CachedChatEngine
from llama_index_stampcache.engines.query_engine import CachedQueryEngine
from llama_index_stampcache.engines.sub_questions import cache_sub_questions
from llama_index_stampcache.events import CacheHitEvent, CacheMissEvent
from llama_index_stampcache.llms.llm import CachedLLM
from llama_index_stampcache.retrieval.embedding import CachedEmbedding
from llama_index_stampcache.retrieval.retriever import CachedRetriever
from llama_index_stampcache.watching.watch import watch

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
    "watch",
]
