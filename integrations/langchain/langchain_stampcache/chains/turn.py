"""One request to a cached chain: what it has found out so far. Nothing of it is shared."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.conversation import has_history, is_history, without_history
from langchain_stampcache.chains.requests import Asked
from langchain_stampcache.chains.results import Making
from langchain_stampcache.pieces import Flowing
from langchain_stampcache.reports import reset
from langchain_stampcache.usage import Meter
from stampcache import Answer, Evidence
from stampcache.adapters import CacheFields, Opened, Reading

Documents = list[Document]


class Turn(ABC):
    """Inputs and config of one call; its documents once retrieved, and how they were searched for.

    ``condensed`` is the question that stands alone, once it was asked for: then the question is
    answered as if nothing had been said before.
    """

    def __init__(self, inputs: Mapping[str, Any], config: RunnableConfig, caller: Caller) -> None:
        self.inputs = dict(inputs)
        self.config = config
        self.caller = caller
        self.meter = Meter()
        self.latency_s = 0.0
        self.condensed: str | None = None
        self.documents: Documents | None = None
        self.evidence: tuple[Evidence, ...] | None = None
        self.heard: list[Reading] = []

    @property
    @abstractmethod
    def said(self) -> str:
        """The text asked, as the caller put it."""

    @property
    def question(self) -> str:
        """The text asked, or the one that stands alone for it."""
        return self.said if self.condensed is None else self.condensed

    @property
    def has_history(self) -> bool:
        """Whether something was said before."""
        return has_history(self.inputs)

    def alone(self) -> dict[str, Any]:
        """Return the inputs beside the question, without a history where the question needs none."""
        return dict(self.inputs) if self.condensed is None else without_history(self.inputs)

    def beside(self, *taken: str) -> dict[str, Any]:
        """Return the inputs that identify it beside the question, which stands under ``taken``."""
        without = self.condensed is not None
        return {
            name: value
            for name, value in self.inputs.items()
            if name not in taken and not (without and is_history(name, value))
        }

    def to_retrieve(self) -> dict[str, Any]:
        """Return what a retriever that takes inputs is given beside the question."""
        return self.alone()

    def running(self) -> RunnableConfig:
        """Return the config under which the answer is made: this turn's meter listens too."""
        return listened_to(self.config, [self.meter])

    @abstractmethod
    def asked(self) -> Asked:
        """Return what identifies this request."""

    @abstractmethod
    def to_run(self) -> object:
        """Return what the answer is made from."""

    def sources(self, raw: object) -> Sequence[Document] | None:  # noqa: ARG002 - who has no other
        """Return what a chain that retrieves for itself answered from; ``None``: that is unknown."""
        return None

    @abstractmethod
    def output(self, raw: object, report: CacheFields) -> Any:
        """Return what the caller gets for what was made."""

    @abstractmethod
    def stored(self, raw: object) -> Answer:
        """Return what was made in the form that is stored.

        Raises:
            CanonicalError: something in it would not come back equal.
        """

    @abstractmethod
    def copied(self, answer: Answer, report: CacheFields) -> Any:
        """Return one's own copy of an answer as the output.

        Raises:
            CodecError: the stored answer cannot be read.
        """

    @abstractmethod
    def replayed(self, answer: Answer) -> Opened[Documents | None, object]:
        """Return a stored answer as a stream: the documents it was made from, and its pieces.

        Raises:
            CodecError: the stored answer cannot be read.
        """

    def shared(self, item: object) -> object:
        """Return a chunk of a stream as it is given to all its readers, and stored."""
        return item

    @abstractmethod
    def chunks(self, flow: Flowing) -> "Chunks":
        """Return what makes this caller's own chunks of the items of a stream."""

    def making(self, answer: object) -> Making:
        """Return an answer with what making it took."""
        return Making(answer=answer, meter=self.meter, latency_s=self.latency_s)


class Chunks(ABC):
    """The chunks that one caller gets of a stream."""

    @abstractmethod
    def opening(self, documents: Documents | None) -> Iterable[Any]:
        """Yield what is known before the answer; ``documents`` are those it is made from."""

    @abstractmethod
    def piece(self, item: object) -> Iterable[Any]:
        """Yield the chunks for one item, of which the caller gets a copy."""

    @abstractmethod
    def closing(self, report: CacheFields) -> Iterable[Any]:
        """Yield what is left, and the fields of the cache."""


def listened_to(config: RunnableConfig, handlers: list[Any]) -> RunnableConfig:
    """Return a config with further callback handlers; the given one stays as it was."""
    given = config.get("callbacks")
    if given is None or isinstance(given, list):
        return {**config, "callbacks": [*(given or []), *handlers]}
    manager = given.copy()
    for handler in handlers:
        manager.add_handler(handler, inherit=True)
    return {**config, "callbacks": manager}


def reset_all(value: object) -> None:
    """Take ids and tokens from all messages in one's own copy, wherever they stand in it."""
    match value:
        case BaseMessage():
            reset(value)
        case dict():
            for one in value.values():
                reset_all(one)
        case list():
            for one in value:
                reset_all(one)


def own(item: Any) -> Any:
    """Return a caller's own copy of what several are given, or are given and is stored.

    What cannot be copied (it holds a lock, or a client) is not stored either, and given as it is.
    """
    if isinstance(item, str):
        return item
    try:
        return copy.deepcopy(item)
    except Exception:  # noqa: BLE001 - whatever an object of the app does on being copied
        return item
