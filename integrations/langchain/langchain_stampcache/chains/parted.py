"""A turn of a chain that is given in parts: a retriever, and what answers from its documents."""

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from langchain_stampcache import payload
from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.requests import Asked
from langchain_stampcache.chains.results import RESERVED, answer_of, copied, output, result_of
from langchain_stampcache.chains.turn import Chunks, Documents, Turn
from langchain_stampcache.pieces import Flowing, Piece, pieces_of
from langchain_stampcache.reports import copied_report, reset
from stampcache import Answer
from stampcache.adapters import CacheFields, Opened


class PartedTurn(Turn):
    """Takes ``{"input": question, ...}``; gives ``{"input", "context", "answer", "cache"}``."""

    def __init__(
        self, given: object, config: RunnableConfig, caller: Caller, *, condenses: bool
    ) -> None:
        if not isinstance(given, Mapping) or not isinstance(given.get("input"), str):
            raise ValueError(
                'CachedChain takes a mapping with the question, a text, under "input".'
            )
        super().__init__(given, config, caller)
        self._condenses = condenses

    @property
    def said(self) -> str:
        """The text under ``input``."""
        return str(self.inputs["input"])

    def asked(self) -> Asked:
        """Return the question and the other inputs, but for ``context``, which is retrieved."""
        inputs = self.beside("input", "context")
        return Asked(question=self.question, inputs=inputs, caller=self.caller)

    def to_retrieve(self) -> dict[str, Any]:
        """Return the inputs with the question."""
        return {**self.alone(), "input": self.question}

    def to_run(self) -> dict[str, Any]:
        """Return the inputs with the question and the documents."""
        return {**self.to_retrieve(), "context": list(self.documents or ())}

    def given_back(self) -> dict[str, Any]:
        """Return what the caller gave, and the question that stood alone for it."""
        condensed = {"question": self.question} if self._condenses else {}
        return {**self.inputs, **condensed}

    def output(self, raw: object, report: CacheFields) -> dict[str, Any]:
        """Return the inputs, the documents, the answer and the fields."""
        return output(self.given_back(), result_of(raw, self.documents or ()), report)

    def stored(self, raw: object) -> Answer:
        """Return the answer with its documents."""
        result = result_of(raw, self.documents or ())
        return answer_of(
            self.making(result.answer), payload=payload.dump_result(result), form=payload.CHAIN
        )

    def copied(self, answer: Answer, report: CacheFields) -> dict[str, Any]:
        """Return one's own copy of an answer as the output.

        Its documents are those that this question retrieved, if they are those it was made from. A
        similar question retrieves others, and what is stale was made from others.
        """
        same = report["level"] == "exact" and report["hit"]
        shared = report["level"] is None
        documents = self.documents if same or shared else None
        return copied(self.given_back(), answer, report, documents)

    def replayed(self, answer: Answer) -> Opened[Documents | None, object]:
        """Return the documents that an answer was made from, and its pieces."""
        stored = payload.load_result(answer.payload, answer.format)
        if isinstance(stored.answer, BaseMessage):
            reset(stored.answer)
            stored.answer.response_metadata.pop("cache", None)  # of another cache, below this one
        items: list[object] = [AddableDict(answer=each) for each in pieces_of(stored.answer)]
        if stored.extras:
            items.append(AddableDict(stored.extras))
        return Opened(stored.context, iter(items))

    def chunks(self, flow: Flowing) -> Chunks:
        """Return what makes chunks as those of LangChain's own retrieval chain."""
        return _PartedChunks(self.given_back(), whole=flow is Flowing.GROWING)


class _PartedChunks(Chunks):
    """A mapping with ``answer`` may come in any order: what comes before its answer is held back."""

    def __init__(self, inputs: dict[str, Any], *, whole: bool) -> None:
        self._inputs = inputs
        self._whole = whole
        self._held: list[AddableDict] = []
        self._has_answer = False
        self._last: object = None

    def opening(self, documents: Documents | None) -> Iterator[Piece]:
        yield Piece({name: one for name, one in self._inputs.items() if name not in _OURS})
        yield Piece({"context": list(documents or ())})

    def piece(self, item: object) -> Iterator[Piece]:
        if isinstance(item, AddableDict):
            self._has_answer = self._has_answer or "answer" in item
            self._held.append(item)
            if self._has_answer:
                yield from self._released()
        elif isinstance(item, Mapping) and "answer" in item:
            yield from self._split(item, whole=True)
        else:
            yield self._answer(item, whole=self._whole)

    def closing(self, report: CacheFields) -> Iterator[Piece]:
        yield from self._released()
        if report["level"] is not None and isinstance(self._last, AIMessageChunk):
            told = AIMessageChunk(content="", response_metadata={"cache": copied_report(report)})
            yield Piece({"answer": told})
        yield Piece({"cache": report})

    def _released(self) -> Iterator[Piece]:
        held, self._held = self._held, []
        for each in held:
            if self._has_answer:
                yield from self._split(each, whole=False)
            else:
                yield self._answer(each, whole=False)

    def _split(self, item: Mapping[str, Any], *, whole: bool) -> Iterator[Piece]:
        extras = {
            name: one
            for name, one in item.items()
            if name not in RESERVED and name not in self._inputs
        }
        if extras:
            yield Piece(extras, whole=whole)
        if "answer" in item:
            yield self._answer(item["answer"], whole=whole)

    def _answer(self, item: object, *, whole: bool) -> Piece:
        self._last = item
        return Piece({"answer": item}, whole=whole)


_OURS = frozenset({"context", "answer", "cache"})
