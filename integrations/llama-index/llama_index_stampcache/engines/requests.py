"""From a query to the request that is looked up."""

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore, QueryBundle
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.engines.fingerprint import Fingerprint
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.evidence import evidence_of
from stampcache import Evidence, Request
from stampcache.adapters import CanonicalError, Validity


class Inputs(Struct, frozen=True):
    """What a bundle asks, noted before a retriever writes its vector into it.

    ``prompt`` is set where more than the question decides what is retrieved; then there is no
    question to compare by meaning. ``history`` is what the model is shown of a conversation.
    """

    question: str
    prompt: object = None
    image: bool = False
    history: Sequence[object] = ()


def inputs_of(bundle: QueryBundle) -> Inputs:
    """Return what a bundle asks."""
    if bundle.custom_embedding_strs is None and bundle.embedding is None:
        return Inputs(bundle.query_str, image=bundle.image_path is not None)
    prompt = {
        "question": bundle.query_str,
        "embedding_strs": bundle.custom_embedding_strs,
        "embedding": bundle.embedding,
    }
    return Inputs("", prompt, image=bundle.image_path is not None)


class Requests:
    """Makes the requests of one engine, whose settings are read anew for each."""

    def __init__(
        self,
        inner: Inner,
        fingerprint: Fingerprint,
        validity: Validity,
        volatile: frozenset[str] | None = None,
    ) -> None:
        """``volatile`` is metadata that does not count in a watched index."""
        self._inner = inner
        self._fingerprint = fingerprint
        self._validity = validity
        self._volatile = volatile

    def of(self, inputs: Inputs, nodes: Sequence[NodeWithScore] | None) -> Request:
        """Return the request for what was asked and retrieved.

        Raises:
            CanonicalError: the query, a node or a part of the engine has no identity.
        """
        if inputs.image:
            raise CanonicalError("The query has an image, whose content may change; ask without.")
        return Request(
            question=inputs.question,
            prompt=inputs.prompt,
            history=inputs.history,
            settings=self._fingerprint.settings(),
            kind=self._validity.kind,
            evidence=None if nodes is None else self.evidence(nodes),
        )

    def settings(self) -> str:
        """Return the digest of what is run for a question alone.

        Raises:
            CanonicalError: a part of the engine has no identity.
        """
        return Request(settings=self._fingerprint.settings()).runs.digest

    def from_nodes(
        self, inputs: Inputs, nodes: Sequence[NodeWithScore], more: Sequence[NodeWithScore]
    ) -> Request:
        """Return the request for an answer from nodes that the caller chose: exactly these.

        Raises:
            CanonicalError: see `of`.
        """
        chosen = {
            "query": inputs.prompt,
            "nodes": [one.digest for one in self.evidence(nodes)],
            "cited": [[one.chunk, one.digest] for one in self.evidence(more)],
        }
        return self.of(replace(inputs, prompt=chosen), nodes)

    def evidence(self, nodes: Sequence[NodeWithScore]) -> tuple[Evidence, ...]:
        """Return nodes as evidence.

        Raises:
            CanonicalError: a node carries media.
        """
        return evidence_of(
            nodes,
            corpus=self._validity.corpus,
            mode=self._inner.metadata_mode,
            volatile=self._volatile,
        )
