"""An application whose model is a pure function of what it is told, and what is compared of its answers.

The uncached application is the oracle: a cached one must give the same, but for ids, tokens and time.
"""

import asyncio
import copy
import hashlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from itertools import islice
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_fakes import USAGE, Shelf
from msgspec import Struct
from pydantic import BaseModel, PrivateAttr

TOKENS = 18
"""That `USAGE` says in all."""
SCRIPT = (
    "plain", "thinking", "blocks", "call", "calls", "wrong", "length", "refusal", "filtered", "empty",
    "nothing", "fail", "breaks",
)  # fmt: skip
"""The first words of questions: each says what kind of reply the model gives."""
STORABLE = frozenset({"plain", "thinking", "blocks", "call", "calls"})
_NOT_TOLD = ("cache", "token_usage")


class Filled(BaseModel):
    """An answer in a form."""

    text: str
    days: int


def bare(value: Any) -> Any:
    """Return a value without what may differ between a hit and a fresh answer, wherever it stands."""
    match value:
        case BaseMessageChunk():
            return bare(message_chunk_to_message(value))
        case BaseMessage():
            data = value.model_dump(exclude={"id", "usage_metadata", "response_metadata"})
            said = value.response_metadata.items()
            told = {name: one for name, one in said if name not in _NOT_TOLD}
            return {**data, "class": type(value).__name__, "response_metadata": told}
        case BaseException():
            return {"error": type(value).__name__, "says": str(value)}
        case Mapping():
            kept = {name: bare(one) for name, one in value.items() if name != "cache"}
            return {name: one for name, one in kept.items() if name != "stampcache_run"}
        case list() | tuple():
            return [bare(one) for one in value]
    return value.value if type(value).__name__ == "Interrupt" else value  # which has an id, too


def summed(chunks: Iterable[Any]) -> Any:
    """Return what chunks add up to; of objects that replace each other, the last."""
    total: Any = None
    for chunk in chunks:
        addable = isinstance(chunk, str | BaseMessageChunk | dict) and hasattr(chunk, "__add__")
        total = total + chunk if addable and total is not None else chunk
    return total


def are_apart(values: Sequence[Any]) -> bool:
    """Tell whether nothing that can be changed belongs to two of these values."""
    owned = [set(_owned(value)) for value in values]
    return sum(map(len, owned)) == len(set().union(*owned))


def _owned(value: Any) -> Iterator[int]:
    if isinstance(value, BaseModel | dict | list):
        yield id(value)
        inside: Any = vars(value) if isinstance(value, BaseModel) else value
        for one in inside.values() if isinstance(inside, dict) else inside:
            yield from _owned(one)


def vandalise(value: Any) -> None:
    """Change all that a caller was given: nobody else must notice."""
    match value:
        case BaseMessage():
            for part in (value.content, getattr(value, "tool_calls", None)):
                vandalise(part)
            vandalise(value.additional_kwargs)
            vandalise(value.response_metadata)
            if isinstance(value.content, str):
                value.content = "changed by a caller"
        case BaseModel():
            for name in type(value).model_fields:
                vandalise(getattr(value, name))
        case dict():
            for one in value.values():
                vandalise(one)
            value["changed"] = True
        case list():
            for one in value:
                vandalise(one)
            value.append({"type": "text", "text": "changed by a caller"})


# -- the model ------------------------------------------------------------------------------------------


class ScriptedChat(BaseChatModel):
    """Replies to the first word of the question, with a digest of all that it is told.

    With ``forgets`` it is not told by which tools former questions were answered.
    """

    model_name: str = "scripted-1"
    temperature: float = 0.0
    forgets: bool = False
    _told: list[str] = PrivateAttr(default_factory=list)
    _replies: list[str] = PrivateAttr(default_factory=list)

    @property
    def told(self) -> list[str]:
        """A digest of what each call was told."""
        return self._told

    @property
    def replied(self) -> list[str]:
        """The digests of calls whose replies came to their end."""
        return self._replies

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model_name, "temperature": self.temperature}

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **chosen, **options)

    def with_structured_output(
        self, schema: Any = None, *, include_raw: bool = False, **options: Any
    ) -> Any:
        """By a tool, as LangChain does it, or by ``method="json_mode"`` as JSON."""
        if options.get("method") != "json_mode":
            return super().with_structured_output(schema, include_raw=include_raw, **options)
        asked = self.bind(response_format={"type": "json_object"})
        parser: Any = PydanticOutputParser(pydantic_object=schema)
        if not include_raw:
            return asked | parser
        return RunnableMap(raw=asked) | RunnablePassthrough.assign(
            parsed=lambda told: parser.invoke(told["raw"])
        )

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        reply = self._reply(messages, {"stop": stop, **options})
        if reply.kind in ("fail", "breaks"):
            raise ConnectionError(f"the model is down ({reply.digest})")
        self._replies.append(reply.digest)
        info = {"finish_reason": reply.finish}
        return ChatResult(
            generations=[ChatGeneration(message=self._whole(reply), generation_info=info)]
        )

    async def _agenerate(
        self, messages: list[BaseMessage], *given: Any, **named: Any
    ) -> ChatResult:
        return self._generate(messages, *given, **named)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages, {"stop": stop, **options})
        if reply.kind == "fail":
            raise ConnectionError(f"the model is down ({reply.digest})")
        for place, chunk in enumerate(self._chunks(reply)):
            if reply.kind == "breaks" and place == 2:
                raise ConnectionError(f"the stream broke ({reply.digest})")
            yield chunk
        if reply.kind != "nothing":  # LangChain takes that for a failure
            self._replies.append(reply.digest)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, None, **options):
            yield chunk

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> "Reply":
        own = {"model": self.model_name, "temperature": self.temperature}
        heard = _without_tools(messages) if self.forgets else messages
        digest = _digest([conversation(heard), {**own, **options}])
        self._told.append(digest)
        return _scripted(messages, options, digest)

    def _whole(self, reply: "Reply") -> AIMessage:
        calls = [one for one in reply.calls if one["args"].startswith("{")]
        broken = [one for one in reply.calls if one not in calls]
        return AIMessage(
            content=reply.content,
            id=_fresh_id(),
            additional_kwargs=dict(reply.extra),
            tool_calls=[{**one, "args": json.loads(one["args"])} for one in calls],
            invalid_tool_calls=[{**one, "error": None} for one in broken],
            usage_metadata=USAGE,
            response_metadata={"model_name": self.model_name},
        )

    def _chunks(self, reply: "Reply") -> Iterator[ChatGenerationChunk]:
        if reply.kind == "nothing":
            return
        said_as = _fresh_id()
        for message in _pieces(reply):
            message.id = said_as
            yield ChatGenerationChunk(message=message)
        empty: Any = "" if isinstance(reply.content, str) else []
        last = AIMessageChunk(
            content=empty,
            usage_metadata=USAGE,  # type: ignore[arg-type]
            response_metadata={"model_name": self.model_name},
        )
        info = {"finish_reason": reply.finish}
        yield ChatGenerationChunk(message=last, generation_info=info)


class Reply(Struct, frozen=True, kw_only=True):
    """What the model says."""

    kind: str
    digest: str
    content: Any = ""
    extra: Mapping[str, Any] = {}
    calls: Sequence[Mapping[str, Any]] = ()
    finish: str = "stop"


def conversation(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return all of a conversation that a model is sent."""
    numbers: dict[str, int] = {}

    def number(given: Any) -> int:
        return numbers.setdefault(given, len(numbers))

    said: list[Any] = []
    for one in messages:
        calls = [*getattr(one, "tool_calls", ()), *getattr(one, "invalid_tool_calls", ())]
        said.append([
            one.type.replace("MessageChunk", "").lower(), one.content, one.name,
            {name: each for name, each in one.additional_kwargs.items() if name != "parsed"},
            [[call["name"], call["args"], number(call["id"])] for call in calls],
            number(one.tool_call_id) if isinstance(one, ToolMessage) else None,
        ])  # fmt: skip
    return said


def _without_tools(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a conversation without the calls of tools that came before its last question."""
    last = max(at for at, one in enumerate(messages) if isinstance(one, HumanMessage))
    return [
        one
        for at, one in enumerate(messages)
        if at >= last or not (isinstance(one, ToolMessage) or getattr(one, "tool_calls", None))
    ]


def _fresh_id() -> str:
    """Return an id as a provider gives one to each reply."""
    return f"msg-{uuid.uuid4()}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _scripted(messages: list[BaseMessage], asked: Mapping[str, Any], digest: str) -> Reply:
    question = next(one for one in reversed(messages) if isinstance(one, HumanMessage))
    kind = str(question.text).split()[0]
    tools = [tool["function"] for tool in asked.get("tools") or ()]
    if asked.get("response_format"):
        return _as_json(kind, digest)
    if asked.get("tool_choice") and kind not in ("fail", "breaks", "nothing"):
        return _calling(kind, digest, tools[-1:])
    if kind in ("call", "calls", "wrong", "mail", "ask") and not isinstance(
        messages[-1], ToolMessage
    ):
        named = {"call": tools[:1], "mail": tools[-1:], "ask": tools[-2:-1]}.get(kind, tools[:2])
        if named:
            return _calling(kind, digest, named)
    return _saying(kind, digest)


def _saying(kind: str, digest: str) -> Reply:
    text = f"This is the {kind} answer {digest} of the model"
    match kind:
        case "thinking":
            extra = {"reasoning_content": f"I think of {digest} first"}
            return Reply(kind=kind, digest=digest, content=text, extra=extra)
        case "blocks":
            blocks = [{"type": "text", "text": f"{word} ", "index": 0} for word in text.split()]
            whole = {"type": "text", "text": "".join(one["text"] for one in blocks), "index": 0}  # type: ignore[misc]
            return Reply(kind=kind, digest=digest, content=[whole])
        case "length":
            return Reply(kind=kind, digest=digest, content=text, finish="length")
        case "filtered":
            return Reply(kind=kind, digest=digest, content=text, finish="content_filter")
        case "refusal":
            extra = {"refusal": f"no {digest}"}
            return Reply(
                kind=kind, digest=digest, content=f"I cannot help with {digest}", extra=extra
            )
        case "empty" | "nothing":
            return Reply(kind=kind, digest=digest)
    return Reply(kind=kind, digest=digest, content=text)


def _calling(kind: str, digest: str, tools: Sequence[Mapping[str, Any]]) -> Reply:
    calls = [
        {
            "name": tool["name"],
            "args": "days: many" if kind == "wrong" else json.dumps(_arguments(tool, digest)),
            "id": f"call-{digest}-{at}",
            "type": "tool_call" if kind != "wrong" else "invalid_tool_call",
        }
        for at, tool in enumerate(tools)
    ]
    text = "" if kind == "call" else f"Let me see {digest} first"
    return Reply(kind=kind, digest=digest, content=text, calls=calls, finish="tool_calls")


def _arguments(tool: Mapping[str, Any], digest: str) -> dict[str, Any]:
    asked = tool["parameters"].get("properties", {})
    number = int(digest, 16) % 100
    return {
        name: number if one.get("type") == "integer" else f"{name} {digest}"
        for name, one in asked.items()
    }


def _as_json(kind: str, digest: str) -> Reply:
    if kind in ("fail", "breaks", "nothing"):
        return _saying(kind, digest)
    filled = json.dumps({"text": f"{kind} {digest}", "days": int(digest, 16) % 100})
    text = f"I would say {digest}" if kind == "wrong" else filled
    return Reply(kind=kind, digest=digest, content=text)


def _pieces(reply: Reply) -> Iterator[AIMessageChunk]:
    """Yield a reply word by word: first its thoughts, then its text, then its calls in two parts."""
    extra = dict(reply.extra)
    empty: Any = "" if isinstance(reply.content, str) else []
    for word in re.findall(r"\S+\s*", extra.pop("reasoning_content", "")):
        yield AIMessageChunk(content=empty, additional_kwargs={"reasoning_content": word})
    if isinstance(reply.content, str):
        for word in re.findall(r"\S+\s*", reply.content):
            yield AIMessageChunk(content=word)
    else:
        for word in re.findall(r"\S+\s*", reply.content[0]["text"]):
            yield AIMessageChunk(content=[{"type": "text", "text": word, "index": 0}])
    if extra:
        yield AIMessageChunk(content=empty, additional_kwargs=extra)
    for at, call in enumerate(reply.calls):
        begun = {"name": call["name"], "args": call["args"][:5], "id": call["id"], "index": at}
        rest = {"name": None, "args": call["args"][5:], "id": None, "index": at}
        for part in (begun, rest):
            yield AIMessageChunk(content=empty, tool_call_chunks=[part])  # type: ignore[list-item]


# -- what is seen of a run ------------------------------------------------------------------------------


class Recorder(BaseCallbackHandler):
    """Notes the events of each run in their order.

    Tokens are joined, since a stored answer may be cut at other places than a fresh one.
    """

    run_inline = True

    def __init__(self) -> None:
        self.runs: dict[Any, list[Any]] = {}
        self.tokens: dict[Any, str] = {}
        self.replies: list[AIMessage] = []

    def _note(self, run_id: Any, *what: Any) -> None:
        self.runs.setdefault(run_id, []).append(list(what))

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "chain starts", given.get("name"))

    def on_chain_end(self, outputs: Any, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "chain ends")

    def on_chain_error(self, error: BaseException, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "chain fails", bare(error))

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, **given: Any
    ) -> None:
        params = given.get("invocation_params")
        self._note(run_id, "model starts", given.get("name"), params, conversation(messages[0]))

    def on_llm_new_token(self, token: Any, *, run_id: Any, **given: Any) -> None:
        blocks = token if isinstance(token, list) else [{"text": token}]
        said = "".join(one.get("text", "") for one in blocks)
        self.tokens[run_id] = self.tokens.get(run_id, "") + said

    def on_llm_end(self, response: Any, *, run_id: Any, **given: Any) -> None:
        messages = [each.message for row in response.generations for each in row]
        self.replies += copy.deepcopy(messages)  # the caller gets these very objects
        self._note(run_id, "model ends", bare(messages), self.tokens.get(run_id, ""))

    def on_llm_error(self, error: BaseException, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "model fails", bare(error))

    def on_tool_start(self, serialized: Any, input_str: Any, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "tool starts", serialized.get("name"), input_str)

    def on_tool_end(self, output: Any, *, run_id: Any, **given: Any) -> None:
        self._note(run_id, "tool ends")

    def by_run(self, kind: str = "") -> list[str]:
        """Return the events of each run of a kind; those of runs at once have no common order."""
        runs = [run for run in self.runs.values() if run[0][0].startswith(kind)]
        return sorted(json.dumps(run, sort_keys=True, default=repr) for run in runs)

    @property
    def reports(self) -> list[dict[str, Any]]:
        """What the cache said in the replies."""
        said = [one.response_metadata.get("cache") for one in self.replies]
        return [one for one in said if one is not None]

    @property
    def tokens_used(self) -> int:
        """What the replies say that they took."""
        spent = [one.usage_metadata for one in self.replies]
        return sum(one["total_tokens"] for one in spent if one is not None)


class LendingShelf(Shelf):
    """Gives copies of its documents, as a vector store does."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return copy.deepcopy(super()._get_relevant_documents(query, run_manager=run_manager))


# -- programs -------------------------------------------------------------------------------------------

Drawn = TypeVar("Drawn")


def drawn(draw: Callable[[Random], Drawn], length: int) -> st.SearchStrategy[list[Drawn]]:
    """Return lists of things drawn evenly; what fails shrinks to fewer of them.

    Strategies of Hypothesis prefer what is short, small and alike: dialogues that never meet again.
    """
    seeds = st.lists(st.integers(0, 2**32 - 1), min_size=length, max_size=length)
    return seeds.map(lambda given: [draw(Random(seed)) for seed in given if seed])


def listed(draw: Callable[[Random], Drawn], length: int, random: Random) -> list[Drawn]:
    """Return a list of things drawn evenly, always the same for the same numbers."""
    return [draw(random) for _ in range(length)]


# -- how an application is called -----------------------------------------------------------------------

WAYS = ("invoke", "ainvoke", "stream", "astream", "left", "aleft", "batch", "abatch", "events")
STREAMS = frozenset({"stream", "astream", "left", "aleft", "events"})
LEFT = frozenset({"left", "aleft"})
BATCHES = frozenset({"batch", "abatch"})


def call(
    asked: Any,
    way: str,
    inputs: Sequence[Any],
    config: Any,
    *,
    options: Any,
    got: list[Any],
    chunks: int,
) -> list[Any]:
    """Call a Runnable; return what else is seen of the call than what the caller gets.

    Args:
        asked: what is called.
        way: one of `WAYS`.
        inputs: all of them are asked in a batch, else the first one.
        config: of the call.
        options: of the call.
        got: what the caller gets is added here, also if the call fails then.
        chunks: after how many of them a stream is left.
    """
    first = inputs[0]
    several: Any = {"return_exceptions": True, **options}
    match way:
        case "invoke":
            got.append(asked.invoke(first, config, **options))
        case "ainvoke":
            got.append(asyncio.run(asked.ainvoke(first, config, **options)))
        case "batch":
            got.extend(asked.batch(list(inputs), config, **several))
        case "abatch":
            got.extend(asyncio.run(asked.abatch(list(inputs), config, **several)))
        case "stream":
            got.extend(asked.stream(first, config, **options))
        case "left":
            with closing(asked.stream(first, config, **options)) as stream:
                got.extend(islice(stream, chunks))
        case "events":
            return asyncio.run(
                _events(asked.astream_events(first, config, version="v2", **options), got)
            )
        case _:
            limit = chunks if way == "aleft" else None
            asyncio.run(_read(asked.astream(first, config, **options), got, limit))
    return []


async def _read(stream: Any, got: list[Any], limit: int | None) -> None:
    async with aclosing(stream) as given:
        async for chunk in given:
            got.append(chunk)
            if len(got) == limit:
                return


async def _events(stream: Any, got: list[Any]) -> list[Any]:
    seen: list[Any] = []
    async for event in stream:
        if event["event"] == "on_chat_model_stream":
            got.append(event["data"]["chunk"])
        elif not event["event"].endswith("_stream"):
            told = (
                bare(event["data"].get("output")) if event["event"] == "on_chat_model_end" else None
            )
            seen.append([event["event"], event["name"], told])
    return sorted(seen, key=repr)  # steps that run at once have no order
