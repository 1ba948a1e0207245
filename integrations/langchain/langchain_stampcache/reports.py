"""The fields by which a hit tells that it is one; apart from them it looks like a fresh answer."""

from collections.abc import Mapping

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, Generation

from stampcache.adapters import CacheFields

# Where providers keep counts of tokens in a reply's response_metadata.
_COUNTS = frozenset({"token_usage", "usage", "usage_metadata", "prompt_eval_count", "eval_count"})


def mark(generation: Generation, report: CacheFields) -> Generation:
    """Return a generation read from the cache as a hit: no id, no tokens used, and the report."""
    if isinstance(generation, ChatGeneration):
        reset(generation.message)
        generation.message.response_metadata["cache"] = copied_report(report)
    return generation


def copied_report(report: CacheFields) -> dict[str, object]:
    """Return a copy of the report, of which nothing is shared with another place."""
    return {**report, "saved": dict(report["saved"])}


def reset(message: BaseMessage) -> None:
    """Take from one's own copy of a message its id and the tokens that it took when it was made."""
    message.id = None
    if isinstance(message, AIMessage):
        message.usage_metadata = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    said = message.response_metadata
    message.response_metadata = {
        name: zeroed(item) if name in _COUNTS else item for name, item in said.items()
    }


def zeroed(item: object) -> object:
    """Return what a provider counted with every number at 0."""
    match item:
        case bool():
            return item
        case int() | float():
            return 0
        case Mapping():
            return {name: zeroed(each) for name, each in item.items()}
    return item
