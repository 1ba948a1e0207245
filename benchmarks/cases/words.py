"""The words of the cases: what a seam can do, what is asked, what a model says, what comes back."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

QUESTION = "How long is annual leave?"
SECRET = "sk-secret"
Fields: TypeAlias = Mapping[str, Any]


class Ability(enum.Enum):
    """What a case needs from a seam, in the words of the matrix."""

    PARAMETERS = "sees the parameters of the model"
    ENDPOINT = "sees the endpoint"
    CHANGES = "sees a living model that is changed"
    OPTIONS = "sees the options of one call"
    PLAIN_TEXT = "stands before a model of plain text"
    TOOLS = "sees tools"
    TOOL_TURNS = "answers turns that call tools"
    SCHEMAS = "returns objects of a schema"
    CALLABLES = "sees functions of the application"
    SYSTEM = "sees the system prompt"
    HISTORY = "sees a conversation"
    MESSAGES = "is given messages"
    SEVERAL = "returns several generations"
    GENERATIONS = "is handed generations"
    MEANING = "matches by meaning"
    PROMPTS = "is shown a rendered prompt"
    CONDENSES = "condenses a conversation to a question"
    DOCUMENTS = "sees documents"
    CITES = "knows which documents an answer cites"
    RECHECKS = "compares what is retrieved now"
    TENANTS = "is told who asks"
    CONTROLS = "is told otherwise for one request"
    VARIETY = "may have several answers to a question"
    TIME = "has a clock that can be set"
    STREAMS = "sees streams"
    ONE_ANSWER = "shares answers between streams and plain calls"
    USAGE = "sees tokens"
    BREAKDOWN = "sees the breakdown of tokens"
    LEAVING = "sees that the reader of a stream has left"
    CALLBACKS = "tells callbacks of tokens"
    FLIGHTS = "sees equal requests that run at once"
    FIELDS = "reports hit, level and entry"
    MISSES = "reports misses, too"
    STAMPED = "stands on a stampcache cache"
    CLEARS = "can be cleared"
    BOUNDED = "has a bound"
    LLAMA = "is a seam of LlamaIndex"
    MADE_ANEW = "gives answers with ids"
    REPLIES = "answers with what a model said"
    ADMITS = "judges what a model said"
    VECTORS = "returns vectors"
    CORE = "is the core itself"


class Verdict(enum.Enum):
    """A cell of the matrix."""

    HOLDS = "holds"
    FAILS = "fails"
    ELSEWHERE = "does not apply"
    UNSEEN = "cannot be seen there"
    CORE = "in the core"


class Lack(Struct, frozen=True):
    """Why a seam has not an ability: it has no such thing, is not shown it, or the core decides it."""

    verdict: Verdict
    why: str


def elsewhere(why: str) -> Lack:
    """Return that something is not the affair of a seam."""
    return Lack(Verdict.ELSEWHERE, why)


def unseen(why: str) -> Lack:
    """Return that something is not shown to a seam."""
    return Lack(Verdict.UNSEEN, why)


class Model(Struct, frozen=True, kw_only=True):
    """The settings of the model behind an application."""

    name: str = "fake-1"
    temperature: float | None = 0.0
    endpoint: str = "http://one.example/v1"
    params: Mapping[str, Any] = {}


class Said(Struct, frozen=True, kw_only=True):
    """What a model says, whatever its framework makes of it.

    ``tool`` is the call of a tool, by name and arguments; ``reasoning`` what it thought aloud.
    """

    text: str = ""
    finish: str = "stop"
    tool: tuple[str, Mapping[str, Any]] | None = None
    reasoning: str = ""


Saying: TypeAlias = Callable[[str, int], Said]
"""What a model says to a question, at its so-manieth call."""


def numbered(question: str, call: int) -> Said:
    """Answer with the number of the call, so that a cached answer is known by it."""
    return Said(text=f"Answer {call} to: {question}")


class Call(Struct, frozen=True, kw_only=True):
    """One question to an application, and what comes with it.

    ``tenant`` ``None``: outside of any scope. ``options`` are those of this call of the model. In
    ``history``, ``("human", text)`` and ``("ai", text)`` are turns, ``("call", name)`` and
    ``("tool", text)`` a tool that was called and what it gave. ``ids`` begins the ids of all
    messages and calls. ``parts`` is what was retrieved for a rendered prompt.
    """

    question: str = QUESTION
    tenant: str | None = None
    namespace: str | None = None
    audience: str | None = None
    system: str = ""
    history: Sequence[tuple[str, str]] = ()
    options: Mapping[str, Any] = {}
    controls: Mapping[str, Any] = {}
    tools: Sequence[Any] = ()
    tool_choice: str | None = None
    schema: type | None = None
    ids: str = ""
    parts: Sequence[str] = ()
    stream: bool = False


class Reply(Struct, frozen=True, kw_only=True):
    """What came back: the text, the cache's fields where there are any, and the framework's object.

    ``usage`` counts its tokens; ``essence`` is all that a hit and a fresh answer have in common.
    """

    text: str
    raw: Any
    fields: Fields | None = None
    usage: int | None = None
    id: str | None = None
    tool_calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    reasoning: str = ""
    essence: Any = None

    @property
    def told(self) -> Fields:
        """The cache's fields, of a seam that reports (`Ability.FIELDS`)."""
        assert self.fields is not None, "nothing is reported"
        return self.fields
