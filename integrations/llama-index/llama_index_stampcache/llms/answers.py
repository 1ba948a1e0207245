"""What a model said, as the cache stores it: its text, its calls of tools, how it ended, what it took."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index_stampcache.llms import payload as llm_payload
from llama_index_stampcache.llms.forms import Form, Tree
from llama_index_stampcache.usage import Meter
from stampcache import Answer


def answer_of(form: Form, trees: Sequence[Tree], *, latency_s: float) -> Answer:
    """Return the answer that the chunks of one response make.

    Raises:
        TypeError, ValueError: a chunk is no JSON.
    """
    last = trees[-1]
    meter = Meter()
    for tree in trees[:-1]:
        meter.streamed(tree["raw"])
    if len(trees) > 1:
        meter.streamed(last["raw"])
    meter.ended(_spent(trees))
    return Answer(
        text=_text(trees),
        payload=llm_payload.encode(form, trees),
        format=llm_payload.FORMAT,
        finish_reason=meter.finish_reason,
        revision=meter.revision,
        tool_calls=_tool_calls(last),
        usage=meter.usage,
        latency_s=latency_s,
    )


def _spent(trees: Sequence[Tree]) -> object:
    """Return the last raw response that tells of tokens, else what else is told of them."""
    for tree in reversed(trees):
        raw = tree["raw"]
        if isinstance(raw, Mapping) and isinstance(raw.get("usage"), Mapping):
            return raw
    last = trees[-1]
    raw, told = last["raw"], last["additional_kwargs"]
    if isinstance(raw, Mapping) and not raw.get("usage"):
        return {**raw, "usage": {**told}} if "prompt_tokens" in told else raw
    return {"usage": told}


def _text(trees: Sequence[Tree]) -> str:
    """Return what was said; where the last chunk does not hold all of it, the chunks together."""
    last = trees[-1]
    if "text" in last:
        said: Any = last["text"]
    else:
        blocks = last["message"]["blocks"]
        said = "\n".join(one["text"] for one in blocks if one["block_type"] == "text")
    return said or "".join(tree["delta"] or "" for tree in trees)


def _tool_calls(tree: Tree) -> tuple[Mapping[str, object], ...]:
    message = tree.get("message")
    if message is None:
        return ()
    blocks = [one for one in message["blocks"] if one["block_type"] == "tool_call"]
    if blocks:
        return tuple({"name": one["tool_name"], "args": one["tool_kwargs"]} for one in blocks)
    calls = message["additional_kwargs"].get("tool_calls")
    return tuple({"call": one} for one in calls) if isinstance(calls, list) else ()
