"""What a chain gives back: a made answer as it is stored, and a stored one as it is served."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from msgspec import Struct
from pydantic import BaseModel

from langchain_stampcache import payload
from langchain_stampcache.payload import ChainResult
from langchain_stampcache.reports import copied_report, reset
from langchain_stampcache.usage import COMPLETE, WAITING, Meter, message_finish, message_usage
from stampcache import Answer, Usage
from stampcache.adapters import CacheFields

Inputs = Mapping[str, Any]
RESERVED = frozenset({"input", "context", "answer", "cache"})


class Making(Struct, frozen=True, kw_only=True):
    """What was made, its answer (a text, a message, an object), and what making it took."""

    answer: object
    meter: Meter
    latency_s: float


def result_of(raw: object, documents: Sequence[Document]) -> ChainResult:
    """Split what an answer chain returned: a mapping with ``answer`` may carry further keys."""
    if isinstance(raw, Mapping) and "answer" in raw:
        extras = {name: item for name, item in raw.items() if name not in RESERVED}
        return ChainResult(raw["answer"], list(documents), extras)
    return ChainResult(raw, list(documents), {})


def answer_of(made: Making, *, payload: bytes, form: str) -> Answer:
    """Return what was made as it is stored, with its bytes in that form."""
    answer = made.answer
    calls = answer.tool_calls if isinstance(answer, AIMessage) else []
    return Answer(
        text=_text(answer),
        payload=payload,
        format=form,
        finish_reason=_finish_reason(answer, made.meter),
        revision=made.meter.revision,
        tool_calls=tuple(dict(call) for call in calls),
        usage=_usage(answer, made.meter),
        latency_s=made.latency_s,
    )


def _text(answer: object) -> str:
    match answer:
        case str():
            return str(answer)
        case BaseMessage():
            return str(answer.text)
        case BaseModel():
            return answer.model_dump_json()
        case None:
            return ""
    return str(answer) if answer not in ([], {}, ()) else ""


def _finish_reason(answer: object, meter: Meter) -> str:
    seen = meter.finish_reason
    if isinstance(answer, BaseMessage):
        own = message_finish(answer)
        return own if own and (seen in COMPLETE or seen in WAITING) else seen
    if seen in WAITING and not isinstance(answer, str):
        return "stop"  # the calls of tools were themselves the answer, read by a parser
    return seen


def _usage(answer: object, meter: Meter) -> Usage:
    seen = meter.usage
    if seen == Usage() and isinstance(answer, BaseMessage):
        return message_usage(answer)
    return seen


def output(inputs: Inputs, result: ChainResult, report: CacheFields) -> dict[str, Any]:
    """Return what the chain returns."""
    return {
        **result.extras,
        **inputs,
        "context": result.context,
        "answer": result.answer,
        "cache": report,
    }


def copied(
    inputs: Inputs, kept: Answer, report: CacheFields, documents: Sequence[Document] | None
) -> dict[str, Any]:
    """Return the caller's own copy of an answer that was made for another request, or before.

    Args:
        inputs: what this caller gave.
        kept: the stored answer.
        report: the fields of the cache that go with it.
        documents: what this caller's question retrieved; ``None``: those the answer was made from.

    Raises:
        CodecError: the stored answer cannot be read.
    """
    stored = payload.load_result(kept.payload, kept.format)
    if isinstance(stored.answer, BaseMessage):
        reset(stored.answer)
        if report["level"] is not None:  # from the store, and not from an equal call just made
            stored.answer.response_metadata["cache"] = copied_report(report)
    context = stored.context if documents is None else list(documents)
    return output(inputs, ChainResult(stored.answer, context, stored.extras), report)
