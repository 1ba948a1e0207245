"""What an engine would run, read from its live objects: the settings of its requests.

Everything is keyed unless a list says that it does not change an answer. Of what has no identity the
user gives ``version=`` instead.
"""

from llama_index_stampcache.describing import Describer
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.hidden import endpoints_of
from llama_index_stampcache.parts import Position
from stampcache import Settings, Stamps
from stampcache.adapters import KnownSettings, Validity, seen_stamp


class Fingerprint:
    """Reads the settings of one engine, as they are at each call.

    ``known`` are the stamps of the cache itself: what it knows is not seen anew. ``name`` tells it from
    others that look the same.
    """

    def __init__(self, inner: Inner, validity: Validity, *, known: Stamps, name: str = "") -> None:
        self._inner = inner
        self._validity = validity
        self._known = validity.stamps.over(known)
        self._name = name
        named = validity.corpus or validity.version  # "1" may be the version of many indexes
        self._describer = Describer(
            rechecked=validity.rechecked,
            index_named=validity.rechecked or bool(named),
            watched=validity.watched,
        )
        self._known_settings = KnownSettings()

    def settings(self) -> Settings:
        """Return the settings in force, digested.

        Raises:
            CanonicalError: a part of the engine has no identity; the message names it.
        """
        position = self._position()
        version = self._validity.version
        params: dict[str, object] = {
            "framework": "llama-index",
            "grounding": self._validity.grounding,
            "version": version,
            "name": self._name,
            "engine": self._describer.describe(self._inner.engine, position),
            # an opaque part may hold prompts that only the engine's own listing shows
            "prompts": self._prompts() if version is not None else None,
        }
        llm = self._inner.llm
        model = "" if llm is None else llm.metadata.model_name
        endpoints = [] if llm is None else endpoints_of(llm)
        endpoint = endpoints[0] if endpoints else ""
        keyed = {**params, "model": model, "endpoints": endpoints}
        return self._known_settings.of(keyed, lambda: self._digested(model, endpoint, keyed))

    def _digested(self, model: str, endpoint: str, params: dict[str, object]) -> Settings:
        return Settings(
            model=model,
            endpoint=endpoint,
            params=params,
            stamps=self._validity.stamps.over(self._seen()),
            corpus=self._validity.corpus,
            whole_corpus=self._validity.whole_corpus,
            watched=self._validity.watched,
        )

    def _seen(self) -> Stamps:
        """Return the stamps that the engine shows, of those that nobody gave.

        Its model goes by its name in the settings; its embedder is part of the index here, and as a
        stamp would stand for that of the cache.
        """
        return Stamps(
            prompt="" if self._known.prompt else seen_stamp(self._prompts()),
            index="" if self._known.index else seen_stamp(self._index()),
        )

    def _prompts(self) -> dict[str, object]:
        position = self._position()
        return {
            name: self._describer.describe(prompt, position.inside(name))
            for name, prompt in sorted(self._inner.engine.get_prompts().items())
        }

    def _index(self) -> dict[str, object]:
        """Return what decides about the nodes for a question; nothing where it is not seen."""
        retriever = self._inner.retriever
        if retriever is None:
            return {}
        position = self._position()
        after = list(self._inner.postprocessors)
        return {
            "corpus": self._validity.corpus,
            "retriever": self._describer.describe(retriever, position.inside("retriever")),
            "postprocessors": self._describer.describe(after, position.inside("postprocessors")),
        }

    def _position(self) -> Position:
        opaque_ok = self._validity.version is not None
        return Position(
            where=type(self._inner.engine).__name__, opaque_ok=opaque_ok, functions_ok=opaque_ok
        )
