"""What a chat model gave, as it is stored, and back: as LangChain gives it, but from the cache."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from langchain_stampcache import payload
from langchain_stampcache.answers import answer_of
from langchain_stampcache.chat.call import ChatCall
from langchain_stampcache.reports import copied_report, reset, zeroed
from langchain_stampcache.usage import message_usage, usage_of
from stampcache import Answer, CodecError, Usage
from stampcache.adapters import CacheFields, CanonicalError, TooFew

_OUTPUT = "stampcache.llm_output"  # among the generation_info of the first one, while stored
_PARSED = "stampcache.response_format"  # an object of the class that the call itself names


def answer_from(result: ChatResult, call: ChatCall, latency_s: float) -> Answer:
    """Return what a call gave in the form that is stored.

    Raises:
        CanonicalError: something in it would not come back equal.
    """
    if len(result.generations) != call.choices:  # a provider's own way of saying how many
        raise CanonicalError(f"{call.choices} answers were asked for, as far as is known")
    said = result.llm_output or {}
    alone = len(result.generations) == 1
    stored = [_stored(each, call, said, alone=alone) for each in result.generations]
    answer = answer_of(stored, latency_s)
    revision = said.get("system_fingerprint")
    return replace(
        answer,
        usage=_usage(stored),
        revision=answer.revision or (revision if isinstance(revision, str) else ""),
    )


def _stored(
    generation: ChatGeneration, call: ChatCall, said: Mapping[str, Any], *, alone: bool
) -> ChatGeneration:
    """Return a copy with all in its message that LangChain puts there after the call."""
    info = generation.generation_info or {}
    message = generation.message
    known = {**info, **message.response_metadata}
    extra = dict(message.additional_kwargs)
    made = extra.get("parsed")
    if isinstance(made, BaseModel) and type(made) is call.schema:
        extra["parsed"] = {_PARSED: _data_of(made)}
    changed = {
        "response_metadata": {**said, **known} if alone else known,
        "additional_kwargs": extra,
    }
    kept = {**info, _OUTPUT: dict(said)} if said else info
    return ChatGeneration(message=message.model_copy(update=changed), generation_info=kept or None)


def _data_of(made: BaseModel) -> object:
    data = made.model_dump_json()
    if type(made).model_validate_json(data) != made:
        raise CanonicalError(f"a {type(made).__qualname__} would be rebuilt as another object")
    return data


def _usage(generations: Sequence[ChatGeneration]) -> Usage:
    """Return the tokens of the call; providers put those of all answers to each of them."""
    spent = [message_usage(each.message) for each in generations]
    if spent and all(each == spent[0] for each in spent):
        return spent[0]
    return usage_of(generations)


def generations_from(answer: Answer, call: ChatCall) -> list[ChatGeneration]:
    """Return the caller's own copy of a stored answer, without ids, and with no tokens used.

    Raises:
        CodecError: it cannot be read.
        TooFew: it holds fewer answers than the call asks for.
    """
    loaded = payload.load_generations(answer.payload, answer.format)
    generations = [each for each in loaded if isinstance(each, ChatGeneration)]
    if len(generations) < len(loaded):
        raise CodecError("the stored answer is none of a chat model")
    choices = call.choices
    if len(generations) < choices:
        raise TooFew(f"{len(generations)} answers are stored, and {choices} are asked for")
    del generations[choices:]
    for each in generations:
        _rebuild(each.message, call)
        unspent(each.message)
        each.generation_info = _unspent_info(each.generation_info)
    return generations


def result_from(answer: Answer, report: CacheFields, call: ChatCall) -> ChatResult:
    """Return the same as what the model itself returns, with the report in each message.

    Raises:
        CodecError: it cannot be read.
        TooFew: see `generations_from`.
    """
    generations = generations_from(answer, call)
    output = output_of(generations[0])
    for each in generations:
        each.message.response_metadata["cache"] = copied_report(report)
    return ChatResult(generations=generations, llm_output=output)


def output_of(generation: ChatGeneration) -> dict[str, Any] | None:
    """Take what the model said of the whole call out of a generation that was read."""
    info = generation.generation_info or {}
    output = info.pop(_OUTPUT, None)
    generation.generation_info = info or None
    return output if isinstance(output, dict) else None


def _rebuild(message: BaseMessage, call: ChatCall) -> None:
    made = message.additional_kwargs.get("parsed")
    if not isinstance(made, dict) or _PARSED not in made:
        return
    if call.schema is None:
        raise CodecError("the stored answer holds an object, and the call names no class for it")
    try:
        message.additional_kwargs["parsed"] = call.schema.model_validate_json(made[_PARSED])
    except (ValidationError, ValueError, TypeError) as error:
        raise CodecError(f"the stored object cannot be rebuilt ({error})") from error


def unspent(message: BaseMessage) -> None:
    """Take from one's own copy of a message its id and its tokens; which kinds of them it tells stays."""
    spent = message.usage_metadata if isinstance(message, AIMessage) else None
    reset(message)
    if isinstance(message, AIMessage) and spent:
        message.usage_metadata = cast(UsageMetadata, zeroed(spent))


def _unspent_info(info: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what was said beside a message with every count of tokens at 0."""
    if not info:
        return info
    outer = {**info, **(info.get(_OUTPUT) or {})}
    zeroed = AIMessage("", response_metadata=outer)
    reset(zeroed)
    counts = zeroed.response_metadata
    told: dict[str, Any] = {name: counts[name] for name in info}
    if _OUTPUT in info:
        told[_OUTPUT] = {name: counts[name] for name in info[_OUTPUT]}
    return told


def reported(result: ChatResult, report: CacheFields) -> ChatResult:
    """Return what a call has just given, with the report in each message."""
    return ChatResult(
        generations=[_with_report(each, report) for each in result.generations],
        llm_output=result.llm_output,
    )


def _with_report(generation: ChatGeneration, report: CacheFields) -> ChatGeneration:
    message = generation.message
    said = {**message.response_metadata, "cache": copied_report(report)}
    copy = message.model_copy(update={"response_metadata": said})  # it may be the inner model's own
    return ChatGeneration(message=copy, generation_info=generation.generation_info)
