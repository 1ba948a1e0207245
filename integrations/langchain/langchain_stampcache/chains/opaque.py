"""A turn of a chain that is not looked into: a question goes in, an answer comes out (ADR 0018).

What it gives back of its input (LangChain's chains carry ``input`` through) is never stored: it is
each caller's own. Its documents are those under ``context``, or those that its retrievers found.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict
from msgspec import Struct

from langchain_stampcache import payload
from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.found import Finds
from langchain_stampcache.chains.requests import Asked
from langchain_stampcache.chains.results import answer_of
from langchain_stampcache.chains.turn import Chunks, Documents, Turn, listened_to, reset_all
from langchain_stampcache.payload import Whole
from langchain_stampcache.pieces import Flowing, Piece, pieces_of
from langchain_stampcache.reports import copied_report
from stampcache import Answer
from stampcache.adapters import CacheFields, Opened

QUESTION_KEYS = ("input", "question")


class Echo(enum.Enum):
    """Stands in a shared chunk for what each caller put in."""

    OWN = enum.auto()


class Form(Struct, frozen=True, kw_only=True):
    """How an opaque chain is asked, and how it tells of the cache.

    ``question_key``: where the question stands in its input; empty: where `QUESTION_KEYS` say.
    ``with_fields``: what is no mapping comes in one, with the fields beside it. ``condenses``: a
    question may have been made to stand alone.
    """

    question_key: str = ""
    with_fields: bool = False
    condenses: bool = False

    def key_in(self, given: object) -> str:
        """Return under which key a question stands; empty where the input is the question.

        Raises:
            ValueError: there is none.
        """
        if isinstance(given, str):
            return ""
        names = (self.question_key,) if self.question_key else QUESTION_KEYS
        if isinstance(given, Mapping):
            for name in names:
                if isinstance(given.get(name), str):
                    return name
        places = " or ".join(f'"{name}"' for name in names)
        raise ValueError(
            f"CachedChain.around takes the question, a text, or a mapping with it under {places};"
            " name another key with question_key=."
        )

    def alone(self) -> tuple[str, ...]:
        """Return the forms in which a question may be asked with nothing beside it."""
        names = (self.question_key,) if self.question_key else QUESTION_KEYS
        return (_form(""), *map(_form, names))


class OpaqueTurn(Turn):
    """Takes what its chain takes, and gives what its chain gives."""

    def __init__(
        self, given: object, config: RunnableConfig, caller: Caller, *, form: Form
    ) -> None:
        self._key = form.key_in(given)
        super().__init__(given if isinstance(given, Mapping) else {}, config, caller)
        self._given = given
        self._form = form
        self._finds = Finds()

    @property
    def said(self) -> str:
        """The question as it was put."""
        return str(self.inputs[self._key] if self._key else self._given)

    def asked(self) -> Asked:
        """Return the question, the other inputs, and where in the input the question stood."""
        return Asked(
            question=self.question,
            inputs=self.beside(self._key),
            form=_form(self._key),
            caller=self.caller,
        )

    def to_retrieve(self) -> dict[str, Any]:
        """Return the inputs with the question as a retriever finds it."""
        return {**self.alone(), "input": self.question}

    def to_run(self) -> object:
        """Return the input; of a question that stands alone, without the history."""
        if self.condensed is None:
            return self._given
        return {**self.alone(), self._key: self.question}

    def running(self) -> RunnableConfig:
        """Return the config of the chain's run, in which its retrievers are heard."""
        return listened_to(self.config, [self.meter, self._finds])

    def sources(self, raw: object) -> Sequence[Document] | None:
        """Return the documents that the chain shows, or else those that its retrievers found.

        Where it shows one that none of them found like that, it may be one of theirs that the chain
        has changed since: then all of both.
        """
        shown = raw.get("context") if isinstance(raw, Mapping) else None
        found = self._finds.documents
        if not isinstance(shown, list | tuple) or not _are_documents(shown):
            return found
        if not found or all(one in found for one in shown):
            return list(shown)
        return [*shown, *(one for one in found if one not in shown)]

    def output(self, raw: object, report: CacheFields) -> object:
        """Return what the chain returned, with the fields where they find a place."""
        if isinstance(raw, Mapping):
            return self._mapping({name: self._own(name, one) for name, one in raw.items()}, report)
        if self._form.with_fields:
            return self._mapping({"answer": raw}, report)
        return told(raw, report) if isinstance(raw, BaseMessage) else raw

    def stored(self, raw: object) -> Answer:
        """Return what the chain returned, without what it only gave back."""
        value, echoed = raw, ()
        if isinstance(raw, Mapping):
            plain = {name: self._neutral(name, one) for name, one in raw.items()}
            echoed = tuple(name for name, one in plain.items() if one is Echo.OWN)
            value = {
                name: one for name, one in plain.items() if name not in echoed and name != "cache"
            }
        said = answer_in(value)
        return answer_of(
            self.making(said), payload=payload.dump_whole(Whole(value, echoed)), form=payload.WHOLE
        )

    def copied(self, answer: Answer, report: CacheFields) -> object:
        """Return one's own copy of what a chain returned, to this caller or to another one."""
        stored = payload.load_whole(answer.payload, answer.format)
        reset_all(stored.value)
        if isinstance(stored.value, dict):
            echoes: dict[str, object] = dict.fromkeys(stored.echoed, Echo.OWN)
            return self.output({**echoes, **stored.value}, report)
        return self.output(stored.value, report)

    def replayed(self, answer: Answer) -> Opened[Documents | None, object]:
        """Return what a chain returned in pieces."""
        stored = payload.load_whole(answer.payload, answer.format)
        reset_all(stored.value)
        return Opened(None, iter(list(_items_of(stored))))

    def shared(self, item: object) -> object:
        """Return a chunk without what is the caller's own."""
        if not isinstance(item, Mapping):
            return item
        neutral = {name: self._neutral(name, one) for name, one in item.items()}
        return AddableDict(neutral) if isinstance(item, AddableDict) else neutral

    def chunks(self, flow: Flowing) -> Chunks:
        """Return what makes chunks as those of the chain."""
        return _OpaqueChunks(self, flow)

    def own_entries(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of a chunk for this caller; another cache's fields are not his."""
        return {name: self._own(name, one) for name, one in item.items() if name != "cache"}

    @property
    def tells_beside(self) -> bool:
        """Whether what is no mapping comes in one, with the fields beside it."""
        return self._form.with_fields

    def stands_beside(self) -> dict[str, Any]:
        """Return what stands beside an answer: the question that stood alone for the caller's."""
        if not self._form.condenses or "question" in self.inputs:
            return {}
        return {"question": self.question}

    def _mapping(self, entries: dict[str, Any], report: CacheFields) -> dict[str, Any]:
        return {**entries, **self.stands_beside(), "cache": report}

    def _neutral(self, name: str, entry: object) -> object:
        return Echo.OWN if self._is_given_back(name, entry) else entry

    def _own(self, name: str, entry: object) -> object:
        if entry is Echo.OWN or self._is_given_back(name, entry):
            return self.inputs.get(name, self.said)
        return entry

    def _is_given_back(self, name: str, entry: object) -> bool:
        """Tell whether an entry of an output is one of the input, or the question under any name."""
        if name != "answer" and isinstance(entry, str) and entry == self.question:
            return True
        run = self.to_run()
        return isinstance(run, Mapping) and name in run and _is_same(run[name], entry)


def told(message: BaseMessage, report: CacheFields) -> BaseMessage:
    """Return a message that tells of the cache; the given one stays as it was."""
    said = {**message.response_metadata, "cache": copied_report(report)}
    return message.model_copy(update={"response_metadata": said})


def _form(key: str) -> str:
    return f"under {key}" if key else "text"


def answer_in(value: object) -> object:
    """Return what of a chain's output is its answer: that is what must not be empty or a refusal."""
    if not isinstance(value, Mapping):
        return value
    if "answer" in value:
        return value["answer"]
    messages = value.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return last if isinstance(last, AIMessage) else value


def _are_documents(shown: Sequence[object]) -> TypeGuard[Sequence[Document]]:
    return all(isinstance(one, Document) for one in shown)


def _is_same(put_in: object, came_out: object) -> bool:
    if put_in is came_out:
        return put_in is not None
    try:
        return type(put_in) is type(came_out) and bool(put_in == came_out)
    except Exception:  # noqa: BLE001 - whatever objects of the app do on being compared
        return False


def _items_of(stored: Whole) -> Iterator[object]:
    value = stored.value
    if not isinstance(value, dict):
        yield from pieces_of(value)
        return
    if stored.echoed:
        yield AddableDict(dict.fromkeys(stored.echoed, Echo.OWN))
    for name, one in sorted(value.items(), key=lambda entry: entry[0] == "answer"):
        if name == "answer":
            for piece in pieces_of(one):
                yield AddableDict({name: piece})
        else:
            yield AddableDict({name: one})


class _OpaqueChunks(Chunks):
    """A whole message is held back until it is known that no other one follows."""

    def __init__(self, turn: OpaqueTurn, flow: Flowing) -> None:
        self._turn = turn
        self._whole = flow is Flowing.GROWING
        self._is_mapping = turn.tells_beside
        self._held: BaseMessage | None = None
        self._last: object = None

    def opening(self, documents: Documents | None) -> Iterator[Any]:  # noqa: ARG002 - in its answer
        return iter(())

    def piece(self, item: object) -> Iterator[Any]:
        self._last = item
        if isinstance(item, Mapping):
            self._is_mapping = True
            addable = isinstance(item, AddableDict)
            yield Piece(self._turn.own_entries(item), whole=self._whole or not addable)
        elif self._turn.tells_beside:
            yield Piece({"answer": item}, whole=self._whole)
        elif isinstance(item, BaseMessageChunk):
            yield _untold(item)
        elif isinstance(item, BaseMessage):
            self._held = item
        else:
            yield item

    def closing(self, report: CacheFields) -> Iterator[Any]:
        if self._is_mapping:
            yield Piece({**self._turn.stands_beside(), "cache": report}, whole=True)
        elif self._held is not None:
            yield told(self._held, report)
        elif isinstance(self._last, AIMessageChunk):
            empty: str | list[Any] = "" if isinstance(self._last.content, str) else []
            yield AIMessageChunk(content=empty, response_metadata={"cache": copied_report(report)})


def _untold(chunk: BaseMessageChunk) -> BaseMessageChunk:
    """Return a chunk without the fields of another cache, to which ours would be added."""
    if "cache" not in chunk.response_metadata:
        return chunk
    said = {name: one for name, one in chunk.response_metadata.items() if name != "cache"}
    return chunk.model_copy(update={"response_metadata": said})
