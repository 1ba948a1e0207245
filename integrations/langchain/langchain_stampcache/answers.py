"""Generations of one prompt as a stored answer, and back as a caller's own copy."""

from collections.abc import Mapping, Sequence

from langchain_core.outputs import ChatGeneration, Generation

from langchain_stampcache import payload
from langchain_stampcache.reports import copied_report, mark
from langchain_stampcache.usage import finish_reason, revision, usage_of, worst
from stampcache import Answer
from stampcache.adapters import CacheFields, TooFew


def answer_of(generations: Sequence[Generation], latency_s: float | None) -> Answer:
    """Return the generations of one prompt as an answer; making it took so many seconds, if known.

    Raises:
        CanonicalError: they would not come back equal.
    """
    empty = any(not each.text.strip() and not _tool_calls(each) for each in generations)
    first = generations[0] if generations and not empty else None
    return Answer(
        text=str(first.text) if first else "",
        payload=payload.dump_generations(generations),
        format=payload.GENERATIONS,
        finish_reason=worst(finish_reason(each) for each in generations),
        revision=revision(first) if first else "",
        tool_calls=_tool_calls(first) if first else (),
        usage=usage_of(generations),
        latency_s=latency_s or 0.0,
    )


def copied(answer: Answer, report: CacheFields, wanted: int | None) -> list[Generation]:
    """Return the generations of a hit, each with the report.

    Args:
        answer: what is stored.
        report: the fields of the cache that go with it.
        wanted: how many are asked for; ``None``: all.

    Raises:
        CodecError: the stored answer cannot be read.
        TooFew: it holds fewer than are asked for.
    """
    kept = payload.load_generations(answer.payload, answer.format)
    if wanted is not None and len(kept) < wanted:
        raise TooFew(f"{len(kept)} answers are stored, {wanted} are asked for")
    return [mark(each, report) for each in kept[:wanted]]


def mark_made(generations: Sequence[Generation], report: CacheFields) -> None:
    """Tell the caller of a chat model why its answer is no hit, beside what the provider says."""
    for each in generations:
        if isinstance(each, ChatGeneration):
            said = each.message.response_metadata
            each.message.response_metadata = {**said, "cache": copied_report(report)}


def _tool_calls(generation: Generation) -> tuple[Mapping[str, object], ...]:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return tuple(dict(call) for call in getattr(message, "tool_calls", ()))
