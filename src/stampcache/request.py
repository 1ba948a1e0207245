"""What an application is about to run: `Settings`, shared by many requests, and one `Request`."""

import enum
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from stampcache import canonical
from stampcache.errors import CanonicalError, ConfigError
from stampcache.model import AS_SET, Controls, Evidence, Scope, Stamps, stamp_values


class Seam(enum.Enum):
    """What an answer is an answer of; part of the Partition, so the two are never mixed.

    ``ANSWER`` is an application's final answer; ``MODEL`` one call of a model, where an answer that
    asks for tools is complete. ``DOCUMENTS`` are what a retriever found and ``VECTOR`` is what an
    embedder made of a text: neither is a reply, and neither is ever matched by meaning.
    """

    ANSWER = "answer"
    MODEL = "model"
    DOCUMENTS = "documents"
    VECTOR = "vector"

    @property
    def is_reply(self) -> bool:
        """Whether it is what a model said."""
        return self in _REPLIES


_REPLIES = frozenset({Seam.ANSWER, Seam.MODEL})


class Settings(Struct, frozen=True, kw_only=True):
    """What would be run, apart from the question: digested once, here, and kept by adapters.

    ``corpus`` names the documents that are asked; with ``whole_corpus`` any write to them makes an answer
    stale, not only one to a source that it cites; with ``watched`` a write that changes what is retrieved
    does (ADR 0020).
    ``digest`` is empty where a parameter has no canonical form; ``problem`` then says which, and
    requests with these settings are not cached.
    """

    model: str = ""
    endpoint: str = ""
    params: Mapping[str, object] = {}
    tools: Sequence[object] = ()
    system: str = ""
    stamps: Stamps = Stamps()
    corpus: str = ""
    whole_corpus: bool = False
    watched: bool = False
    seam: Seam = Seam.ANSWER
    digest: str = ""
    problem: str = ""

    def __post_init__(self) -> None:
        try:
            parts = [
                canonical.encode(self.model),
                canonical.encode(self.endpoint),
                canonical.value(self.params),
                canonical.value(self.tools),
                canonical.encode(self.system),
                canonical.encode(self.seam.value),
                canonical.encode(self.corpus),
                self._kept_true.encode(),
                *(canonical.encode(stamp) for stamp in stamp_values(self.stamps)),
            ]
        except CanonicalError as error:
            force_setattr(self, "problem", str(error))
            force_setattr(self, "digest", "")
        else:
            force_setattr(self, "problem", "")
            force_setattr(self, "digest", canonical.digest(parts, person=b"settings"))

    @property
    def _kept_true(self) -> str:
        if self.watched:
            return "watched"
        return "whole" if self.whole_corpus else "cited"


_NOTHING_SHORT: tuple[object, ...] = ("", "", {}, (), "", Stamps(), "")


class Request(Struct, frozen=True, kw_only=True):
    """What an application is about to run.

    Give ``settings`` where many requests share them (they are digested once); ``model``, ``params``,
    ``tools``, ``system``, ``endpoint``, ``stamps`` and ``corpus`` are the short way for one request.
    ``prompt`` is the rendered prompt or the messages, keyed byte by byte; ``question`` is keyed in
    its canonical form and is the only text that is ever embedded. ``evidence`` is what has been
    retrieved already (an empty tuple: nothing was found; ``None``: not retrieved). ``kind`` is the kind
    of data that is asked for: how long the answer may live, but no part of its identity. ``controls``
    say what this one request is to do otherwise; `stampcache.scope` says so for all inside of it.

    Raises:
        ConfigError: ``settings`` and the short way are both given and contradict each other.
    """

    question: str = ""
    model: str = ""
    params: Mapping[str, object] = {}
    tools: Sequence[object] = ()
    system: str = ""
    endpoint: str = ""
    stamps: Stamps = Stamps()
    corpus: str = ""
    kind: str = ""
    prompt: object = None
    history: Sequence[object] = ()
    evidence: tuple[Evidence, ...] | None = None
    scope: Scope | None = None
    settings: Settings | None = None
    controls: Controls = AS_SET

    def __post_init__(self) -> None:
        if type(self.question) is not str and isinstance(self.question, str):
            force_setattr(self, "question", str.__str__(self.question))  # not what it prints as
        if self.evidence is not None and type(self.evidence) is not tuple:
            force_setattr(self, "evidence", tuple(self.evidence))
        given = self.settings
        short = (
            self.model,
            self.endpoint,
            self.params,
            self.tools,
            self.system,
            self.stamps,
            self.corpus,
        )
        if given is not None and short == _NOTHING_SHORT:
            return
        settings = Settings(
            model=self.model,
            endpoint=self.endpoint,
            params=self.params,
            tools=self.tools,
            system=self.system,
            stamps=self.stamps,
            corpus=self.corpus,
            whole_corpus=given is not None and given.whole_corpus,
            watched=given is not None and given.watched,
            seam=Seam.ANSWER if given is None else given.seam,
        )
        if given is not None and given.digest != settings.digest:
            raise ConfigError(
                "The request has settings= and a model, params, tools, system, endpoint, stamps or "
                "corpus that say something else; give all of them in settings=."
            )
        force_setattr(self, "settings", settings)

    @property
    def runs(self) -> Settings:
        """The settings of this request, whichever way they were given."""
        assert self.settings is not None
        return self.settings
