"""What a case sees of an application with a cache in it, whatever the seam.

A `Rig` is one cache at one seam, empty, for one case. It makes applications (`App`), each with a model of
its own settings behind the same cache; a case asks them and counts how often a model really answered.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.caches import BaseCache
from msgspec import Struct

from benchmarks.cases.meaning import WatchedEmbedder
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, Said, Saying
from stampcache import Cache


class App(ABC):
    """One application behind the cache of its rig."""

    @property
    @abstractmethod
    def calls(self) -> int:
        """How often the model has answered."""

    @abstractmethod
    def ask(self, call: Call) -> Reply:
        """Answer as the application does."""

    @abstractmethod
    async def aask(self, call: Call) -> Reply:
        """See `ask`."""

    @abstractmethod
    def spoil(self, reply: Reply) -> None:
        """Change the object that an earlier call returned, as a careless caller would."""

    @abstractmethod
    def reply_with(self, saying: Saying) -> None:
        """Let the model answer otherwise from now on."""

    def share(self, call: Call) -> str:
        """Answer one of many equal questions at once (`Ability.FLIGHTS`)."""
        return self.ask(call).text

    async def ashare(self, call: Call) -> str:
        """See `share`."""
        return (await self.aask(call)).text

    def change(self, **settings: Any) -> None:
        """Change settings of the living model (`Ability.CHANGES`)."""
        raise NotImplementedError

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """Ask on after a reply, whose own message stands in the history (`Ability.HISTORY`)."""
        raise NotImplementedError

    def several(self, call: Call, count: int) -> Sequence[str]:
        """Return so many generations (`Ability.SEVERAL`)."""
        raise NotImplementedError

    def pieces(self, call: Call) -> Sequence[str]:
        """Return the pieces of a stream as they come (`Ability.STREAMS`)."""
        raise NotImplementedError

    def abandon(self, call: Call) -> None:
        """Read one piece of a stream and leave (`Ability.STREAMS`)."""
        raise NotImplementedError

    def break_streams(self, *, at: int | None) -> None:
        """Let streams of the model fail at this piece (`Ability.STREAMS`)."""
        raise NotImplementedError

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """Return the tokens of which callbacks are told in a stream (`Ability.STREAMS`)."""
        raise NotImplementedError

    def metered(self, calls: Sequence[Call]) -> int:
        """Ask, and return how many tokens the framework counts in all (`Ability.USAGE`)."""
        raise NotImplementedError

    def vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vectors of documents (`Ability.VECTORS`)."""
        raise NotImplementedError


class Rig(ABC):
    """One cache at one seam, for one case."""

    name: ClassVar[str]
    lacks: ClassVar[Mapping[Ability, Lack]]

    @abstractmethod
    def app(self, model: Model = Model()) -> App:  # noqa: B008 - frozen
        """Return an application with such a model; all of them share the cache."""

    def has(self, ability: Ability) -> bool:
        """Tell whether the seam has an ability."""
        return ability not in self.lacks

    def another(self, **options: Any) -> "Rig":
        """Return another rig of this kind, whose cache has these options (`Ability.STAMPED`)."""
        raise NotImplementedError

    @property
    def cache(self) -> Cache:
        """The stampcache cache, where there is one (`Ability.STAMPED`)."""
        raise NotImplementedError

    @property
    def embedder(self) -> WatchedEmbedder:
        """The embedder of that cache (`Ability.MEANING`)."""
        raise NotImplementedError

    @property
    def base_cache(self) -> BaseCache:
        """The cache as LangChain asks it (`Ability.GENERATIONS`)."""
        raise NotImplementedError

    def plain_text(self) -> App:
        """Return an application that is a model of plain text (`Ability.PLAIN_TEXT`)."""
        raise NotImplementedError

    def prompted(self, how: str, *, grounding: str) -> App:
        """Return an application that renders RAG prompts (`Ability.PROMPTS`).

        ``how``: the question in them is found by the ``"template"``, or by a function, ``"extractor"``.
        """
        raise NotImplementedError

    def condensing(self, condense: Callable[[Sequence[tuple[str, str]], str], str]) -> App:
        """Return an application that condenses by this function (`Ability.CONDENSES`)."""
        raise NotImplementedError

    def with_function(self, function: Callable[[str], str]) -> App:
        """Return an application whose answers go through a function (`Ability.CALLABLES`)."""
        raise NotImplementedError

    def write(self, name: str, text: str) -> None:
        """Write a document that the applications read, and tell the cache (`Ability.DOCUMENTS`)."""
        raise NotImplementedError

    def delete(self, name: str) -> None:
        """Delete a document, and tell the cache (`Ability.DOCUMENTS`)."""
        raise NotImplementedError

    def move(self, name: str, other: str) -> None:
        """Write a document again under another id, and tell nobody (`Ability.RECHECKS`)."""
        raise NotImplementedError

    def citing(self) -> "Rig":
        """Return a rig of this kind whose answers rest on what they cite only (`Ability.CITES`)."""
        return self.another()

    def spend(self, seconds: float) -> None:
        """Let time go by (`Ability.TIME`)."""
        raise NotImplementedError

    def clear(self, tenant: str | None = None, namespace: str | None = None) -> None:
        """Clear the cache, for who asks (`Ability.CLEARS`)."""
        raise NotImplementedError

    def bounded(self, entries: int) -> "Rig":
        """Return another rig of this kind, whose cache holds so many entries (`Ability.BOUNDED`)."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """How many entries there are (`Ability.BOUNDED`)."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of the cache."""


Check = Callable[[Rig], None]


class Case(Struct, frozen=True):
    """A fault that must be impossible: its number, in a sentence, what it needs, and its check."""

    number: str
    title: str
    needs: tuple[Ability, ...]
    check: Check

    def lack(self, rig: type[Rig] | Rig) -> Lack | None:
        """Return why the case cannot be asked at this seam; ``None`` where it can."""
        return next((rig.lacks[need] for need in self.needs if need in rig.lacks), None)


class Suite:
    """The cases of one group."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def case(self, number: str, title: str, *needs: Ability) -> Callable[[Check], Check]:
        """Add the decorated function as the check of a case, or of several, as ``"F15/F16"``."""

        def add(check: Check) -> Check:
            self.cases.append(Case(number, title, needs, check))
            return check

        return add


def ask_in_turn(app: App, call: Call, *, is_async: bool) -> Reply:
    """Ask in one of the two ways."""
    return asyncio.run(app.aask(call)) if is_async else app.ask(call)


def ways(rig: Rig) -> Sequence[Callable[[App, Call], Reply]]:
    """Return all ways in which an application of the rig can be asked."""

    def streaming(call: Call) -> Call:
        return Call(**{name: getattr(call, name) for name in call.__struct_fields__} | STREAM)

    found: list[Callable[[App, Call], Reply]] = [
        lambda app, call: app.ask(call),
        lambda app, call: asyncio.run(app.aask(call)),
    ]
    if rig.has(Ability.STREAMS):
        found.append(lambda app, call: app.ask(streaming(call)))
        found.append(lambda app, call: asyncio.run(app.aask(streaming(call))))
    return found


STREAM = {"stream": True}


def saying(*replies: Said) -> Saying:
    """Return what says these in turn, the last one ever after."""

    def said(question: str, call: int) -> Said:  # noqa: ARG001 - whatever is asked
        return replies[min(call, len(replies)) - 1]

    return said


@contextlib.contextmanager
def other(rig: Rig, **options: Any) -> Iterator[Rig]:
    """Give another rig of the kind for a while."""
    made = rig.another(**options)
    try:
        yield made
    finally:
        made.close()
