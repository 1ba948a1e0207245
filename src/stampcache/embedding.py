"""The embedder of one cache: questions in, checked vectors of one generation out (ADR 0015).

An embedder can change under its name: other weights, another pooling, a provider's silent update. Its
old vectors then lie in another space than its new ones. So a few fixed texts, the canaries, are
embedded when a cache is opened and compared with what they were; if they differ, a new generation
begins. The generation is part of the embedder's stamp, and so of the Partition: vectors of two
generations are never compared, and the old ones come back if the old embedder does.
"""

import asyncio
import base64
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import msgspec
import numpy as np
from msgspec import Struct

from stampcache import canonical, signature
from stampcache.embed import aembed_question, embed_question, embed_texts
from stampcache.errors import ConfigError, EmbedderError
from stampcache.model import Vector
from stampcache.ports import Embedded, Embedder, Store
from stampcache.scope import scope

CANARIES = (
    "How many days of leave does a new employee have in the first year?",
    "Reset the password of a locked account.",
    "The invoice of 14 March was paid twice in euros.",
)
SAME_COSINE = 0.999
"""Above it two vectors of one text are of one embedder: other hardware or precision stays above."""

_ANEW = scope(no_cache=True, no_store=True)
"""An embedder may itself stand behind a cache of vectors, which would hide that it changed."""

_MOST_GENERATIONS = 64
_KNOWS_SOME_TEXTS = (LookupError, AssertionError, NotImplementedError)


class _Canary(Struct, frozen=True):
    """What one canary was embedded to: the unit vector (float32, base64) and its norm."""

    vector: str
    norm: str

    def matches(self, now: Embedded) -> bool:
        then = np.frombuffer(base64.b64decode(self.vector), np.float32)
        if len(then) != len(now.vector) or signature.norm_moved(self.norm, now.norm):
            return False
        return float(then @ now.vector) >= SAME_COSINE


class Told(Struct, frozen=True):
    """Whom to tell: that another generation began (with its stamp), and what went wrong."""

    changed: Callable[[str], None]
    note: Callable[[str, Exception], None]
    event: Callable[[str], None]


class QuestionEmbedder:
    """Embeds the questions of one cache; safe for threads and tasks.

    ``problem`` is why it could not be looked at when the cache was opened.
    """

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.embedder = embedder
        self.generation = 1
        self.problem: EmbedderError | None = None
        self._seen = False
        self._told: Told | None = None
        self._store = store
        self._known_dimension: int | None = None
        self._lock = threading.Lock()

    def tell(self, told: Told) -> None:
        """Say from now on what is found out."""
        self._told = told
        if self.problem is not None:
            told.note("embedder_at_open", self.problem)

    @property
    def stamp(self) -> str:
        """The embedder's name, with its generation from the second one on."""
        name = self.embedder.name.replace("#", "##")  # so that no name is another one's generation
        return name if self.generation == 1 else f"{name}#{self.generation}"

    def verify(self) -> bool:
        """Embed the canaries and find the generation that they belong to; tell if it is another one.

        Raises:
            EmbedderError: they could not be embedded.
            ConfigError: the store holds vectors of another size under this embedder's name.
        """
        seen = self._canaries()
        for one in seen:
            self.check_dimension(len(one.vector))
        before, self.generation = self.generation, self._generation_of(seen)
        self._seen = True
        return self.generation != before

    def suspect(self) -> bool:
        """Look at the embedder again; if it is another one, say so, and go on in its generation.

        Raises:
            EmbedderError: it could not be looked at.
        """
        told = self._told
        if told is not None:
            told.event("embedder.suspected")
        changed = self.verify()
        if changed and told is not None:
            told.changed(self.stamp)
        return changed

    def embed(self, question: str) -> Embedded:
        """Return the vector of a question, by the embedder that made those of its generation.

        Raises:
            EmbedderError: it could not be embedded, its vector cannot be used, or another generation
                began meanwhile.
            ConfigError: it has another size than the store's vectors.
        """
        stamp = self.stamp
        with self._of_generation():
            embedded = embed_question(self.embedder, canonical.text(question))
        self._settle(embedded, stamp)
        return Embedded(embedded.vector, embedded.norm, stamp)

    async def aembed(self, question: str) -> Embedded:
        """Return the same as `embed` without blocking the event loop."""
        stamp = self.stamp
        with self._of_generation():
            embedded = await aembed_question(self.embedder, canonical.text(question))
        if self._seen and len(embedded.vector) == self._known_dimension:
            self._settle(embedded, stamp)
        else:
            await asyncio.to_thread(self._settle, embedded, stamp)
        return Embedded(embedded.vector, embedded.norm, stamp)

    def _settle(self, embedded: Embedded, stamp: str) -> None:
        """Make sure of which generation a vector is that was made while this was the stamp."""
        self.check_dimension(len(embedded.vector))
        if not self._seen:
            self._look_late()
        if stamp != self.stamp:
            raise EmbedderError(f"The embedder {self.embedder.name!r} changed; it begins anew.")

    def _look_late(self) -> None:
        """Look at an embedder that could not be looked at when the cache was opened."""
        try:
            self.suspect()
        except EmbedderError as error:
            if not isinstance(error.__cause__, _KNOWS_SOME_TEXTS):
                raise  # it may be another one: no vector of it is used until it has been seen
            if self._told is not None:
                self._told.note("canaries", error)
            self._seen = True  # a table of texts: known by its name only

    def check_dimension(self, dimension: int) -> None:
        """Record the size of the embedder's vectors in the store, or compare it with the record.

        Raises:
            ConfigError: the store holds vectors of another size under this embedder's name.
        """
        if dimension == self._known_dimension:
            return
        name = self.embedder.name
        with self._lock:
            known = int(self._store.claim(f"dimension:{name}", str(dimension)))
            self._known_dimension = known
        if known != dimension:
            raise ConfigError(
                f"The embedder {name!r} gives vectors of {dimension} numbers, but this store holds"
                f" its vectors of {known}: give the changed embedder another name, or open another"
                " store. Nothing was lost."
            )

    def _of_generation(self) -> scope | nullcontext[None]:
        """Embed anew in a later generation: a cache of vectors may hold those of the one before."""
        return _ANEW if self.generation > 1 else nullcontext()

    def _canaries(self) -> Sequence[Embedded]:
        with _ANEW:
            try:
                return embed_texts(self.embedder, CANARIES)
            except EmbedderError as error:
                if error.__cause__ is not None:
                    raise
                # it answered, but no row per text: some embed one text at a time
                return [embed_question(self.embedder, text) for text in CANARIES]

    def _generation_of(self, seen: Sequence[Embedded]) -> int:
        mine = msgspec.json.encode([_Canary(_packed(one.vector), one.norm) for one in seen])
        for generation in range(1, _MOST_GENERATIONS):
            fact = f"canaries:{self.embedder.name}#{generation}"
            known = msgspec.json.decode(self._store.claim(fact, mine.decode()), type=list[_Canary])
            if all(then.matches(now) for then, now in zip(known, seen, strict=True)):
                return generation
        raise EmbedderError(
            f"The embedder {self.embedder.name!r} gives another vector for the same text each time."
        )


def _packed(vector: Vector) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, np.float32).tobytes()).decode()
