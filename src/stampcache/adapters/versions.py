"""Which versions an adapter's wrapper runs with: what it sees, what it is given, what contradicts."""

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from stampcache.core import Core
from stampcache.errors import ConfigError
from stampcache.manifest import Manifest, as_manifest, refuse_mixture
from stampcache.model import Stamps

Grounding: TypeAlias = Literal["recheck", "version", "none"]
VersionOf: TypeAlias = Literal["sources", "corpus"]
GROUNDINGS = ("recheck", "version", "none")
_VERSIONS_OF = ("sources", "corpus")


class Validity(Struct, frozen=True, kw_only=True):
    """How a wrapper's answers are kept true, as its user says it.

    ``grounding`` and ``version_of`` are those of ADR 0014; ``kind`` is the kind of data, which says how
    long answers live; with ``allow_stale`` an answer that no longer holds is served, and reported so.
    ``version`` stands for whatever the wrapper cannot see, its index too.
    """

    grounding: Grounding = "recheck"
    version_of: VersionOf = "sources"
    corpus: str = ""
    kind: str = ""
    allow_stale: bool = False
    stamps: Stamps = Stamps()
    version: str | None = None

    @property
    def rechecked(self) -> bool:
        """Whether each question is retrieved for before it is looked up."""
        return self.grounding == "recheck"

    @property
    def whole_corpus(self) -> bool:
        """Whether any write to the corpus makes an answer stale."""
        return self.grounding == "version" and self.version_of == "corpus"


def checked(
    core: Core, given: Validity, *, manifest: Manifest | str | Path | None, has_index: bool
) -> Validity:
    """Return what a wrapper in front of this cache runs with.

    Args:
        core: of the cache.
        given: what the user says.
        manifest: of the index, or the path of its file.
        has_index: whether the wrapper retrieves from one.

    Raises:
        ConfigError: a word is none of ours; versions contradict each other; or nothing at hit time would
            notice another index, and its version is unknown.
    """
    if given.grounding not in GROUNDINGS:
        names = ", ".join(repr(name) for name in GROUNDINGS)
        raise ConfigError(f"grounding= is {given.grounding!r}; there are {names}.")
    if given.version_of not in _VERSIONS_OF:
        raise ConfigError(f'version_of= is {given.version_of!r}; give "sources" or "corpus".')
    if not has_index and given.grounding != "none":
        raise ConfigError(
            f'Without a retriever there is nothing to {_verb(given)}; give grounding="none".'
        )
    core.parts.terms.rules.lifetime(given.kind)
    corpus, stamps = given.corpus, given.stamps
    made = as_manifest(manifest)
    if made is not None:
        refuse_mixture("corpus", made=made.corpus, where="the manifest", runs=corpus)
        corpus, stamps = made.corpus, made.checked(stamps)
    here = core.intake.stamps
    refuse_mixture("tokenizer", made=stamps.tokenizer, where="the index", runs=here.tokenizer)
    known = stamps.index or here.index or given.version
    if has_index and not given.rechecked and not known:
        raise ConfigError(
            f'With grounding="{given.grounding}" nothing at hit time notices another index, so its'
            " version must be known: give stamps=Stamps(index=...), or manifest= with the file that"
            " ingestion wrote (stampcache.Manifest)."
        )
    return Validity(
        grounding=given.grounding,
        version_of=given.version_of,
        corpus=corpus,
        kind=given.kind,
        allow_stale=given.allow_stale,
        stamps=stamps,
        version=given.version,
    )


def _verb(given: Validity) -> str:
    return "recheck" if given.grounding == "recheck" else "compare versions of"
