"""One request to a `CachedChain`: what it has found out so far. Nothing of it is shared."""

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from langchain_stampcache.results import Making, copied, result_of
from langchain_stampcache.usage import Meter
from stampcache import Answer, Evidence
from stampcache.adapters import CacheFields


class Turn:
    """Inputs and config of one call; its documents once retrieved."""

    def __init__(self, inputs: Mapping[str, Any], config: RunnableConfig) -> None:
        if not isinstance(inputs, Mapping) or not isinstance(inputs.get("input"), str):
            raise ValueError(
                'CachedChain takes a mapping with the question, a text, under "input".'
            )
        self.inputs = dict(inputs)
        self.config = config
        self.meter = Meter()
        self.documents: list[Document] | None = None
        self.evidence: tuple[Evidence, ...] | None = None

    @property
    def question(self) -> str:
        """The text asked."""
        return str(self.inputs["input"])

    def metered(self) -> RunnableConfig:
        """Return the config under which the answer is made: this turn's meter listens too."""
        given = self.config.get("callbacks")
        if given is None or isinstance(given, list):
            return {**self.config, "callbacks": [*(given or []), self.meter]}
        manager = given.copy()
        manager.add_handler(self.meter, inherit=True)
        return {**self.config, "callbacks": manager}

    def to_answer(self) -> dict[str, Any]:
        """Return what the answer chain is given: the inputs and the documents."""
        return {**self.inputs, "context": list(self.documents or ())}

    def made(self, raw: object, latency_s: float) -> Making:
        """Return what came of the answer chain."""
        return Making(
            result=result_of(raw, self.documents or ()), meter=self.meter, latency_s=latency_s
        )

    def copied(self, answer: Answer, report: CacheFields) -> dict[str, Any]:
        """Return one's own copy of an answer as the output.

        Its documents are those that this question retrieved, if they are those it was made from. A
        similar question retrieves others, and what is stale was made from others.

        Raises:
            CodecError: the stored answer cannot be read.
        """
        same = report["level"] == "exact" and report["hit"]
        shared = report["level"] is None
        return copied(self.inputs, answer, report, self.documents if same or shared else None)
