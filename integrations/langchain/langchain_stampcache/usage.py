"""What making an answer took: why each model call ended and its tokens, as the models report them.

LangChain hands the reply of every call to a callback handler: the `Meter` of one making.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from stampcache import Usage

# How providers say that a reply is complete.
COMPLETE = frozenset({"", "stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete"})
WAITING = frozenset({"tool_calls", "function_call", "tool_use"})
_FINISHES = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")


def finish_reason(generation: Generation) -> str:
    """Return why the model stopped in lower case, ``refusal`` where it declined, or nothing."""
    info = generation.generation_info or {}
    if not isinstance(generation, ChatGeneration):
        return _finish(info)
    message = generation.message
    said = message_finish(message)
    return said if said == "refusal" else _finish(info) or said


def message_finish(message: BaseMessage) -> str:
    """Return the same of a message alone."""
    if message.additional_kwargs.get("refusal") or _refusal_block(message.content):
        return "refusal"
    return _finish(message.response_metadata)


def revision(generation: Generation) -> str:
    """Return by what the provider says the model was served, or nothing."""
    said: Mapping[str, object] = generation.generation_info or {}
    if isinstance(generation, ChatGeneration):
        said = {**said, **generation.message.response_metadata}
    found = said.get("system_fingerprint")
    return found if isinstance(found, str) else ""


def _finish(said: Mapping[str, object]) -> str:
    for name in _FINISHES:
        reason = said.get(name)
        if reason is not None:
            return str(getattr(reason, "name", reason)).lower()
    if said.get("status") in ("incomplete", "failed", "cancelled"):  # the Responses API
        return str(said["status"])
    return ""


def _refusal_block(content: object) -> bool:
    blocks = content if isinstance(content, list) else []
    return any(isinstance(each, dict) and each.get("type") == "refusal" for each in blocks)


def worst(reasons: Iterable[str]) -> str:
    """Return the first reason that is no plain end, since one reply cut off spoils all of them."""
    given = list(reasons)
    spoiled = (each for each in given if each not in COMPLETE and each not in WAITING)
    return next(spoiled, given[-1] if given else "")


def usage_of(generations: Sequence[Generation]) -> Usage:
    """Return the tokens that the generations of one call took together."""
    messages = [each.message for each in generations if isinstance(each, ChatGeneration)]
    return total(message_usage(each) for each in messages)


def message_usage(message: BaseMessage) -> Usage:
    """Return the tokens that a message reports; unknown ones are ``None``."""
    spent = message.usage_metadata if isinstance(message, AIMessage) else None
    if not spent:
        return Usage()
    return Usage(
        input_tokens=_count(spent, "input_tokens"),
        output_tokens=_count(spent, "output_tokens"),
        cached_tokens=_cached(spent, message.response_metadata),
        reasoning_tokens=_count(spent.get("output_token_details"), "reasoning"),
    )


def _cached(spent: Mapping[str, object], said: Mapping[str, object]) -> int | None:
    """Return the input tokens that the provider's own cache had; DeepSeek says them apart."""
    found = _count(spent.get("input_token_details"), "cache_read")
    return _count(said.get("token_usage"), "prompt_cache_hit_tokens") if found is None else found


def _count(spent: object, name: str) -> int | None:
    found = spent.get(name) if isinstance(spent, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum; what nobody reported stays unknown."""
    sums: dict[str, int] = {}
    for usage in usages:
        for name in usage.__struct_fields__:
            count: int | None = getattr(usage, name)
            if count is not None:
                sums[name] = sums.get(name, 0) + count
    return Usage(**sums)


class Meter(BaseCallbackHandler):
    """A callback handler for one making of one answer; safe for the threads of that making."""

    run_inline = True  # under an async manager too: nothing here waits

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usages: list[Usage] = []
        self._reasons: list[str] = []
        self._revision = ""

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
        """Note the usage and the finish reason of a call."""
        for generations in response.generations:
            with self._lock:
                self._usages.append(usage_of(generations))
                self._reasons.extend(finish_reason(each) for each in generations)
                self._revision = next(map(revision, generations), "") or self._revision

    @property
    def usage(self) -> Usage:
        """The tokens of all calls together."""
        with self._lock:
            return total(self._usages)

    @property
    def revision(self) -> str:
        """By what the last call was served, of those that tell."""
        return self._revision

    @property
    def finish_reason(self) -> str:
        """The first reason that is no plain end, else the last one; empty if nothing was seen."""
        with self._lock:
            return worst(self._reasons)
