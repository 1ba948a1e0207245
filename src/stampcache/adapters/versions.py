"""Which versions an adapter's wrapper runs with: what it sees, what it is given, what contradicts."""

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stampcache import canonical
from stampcache.core import Core
from stampcache.errors import ConfigError
from stampcache.identity import refuse_mixture
from stampcache.manifest import Manifest, as_manifest
from stampcache.model import Stamps

Grounding: TypeAlias = Literal["recheck", "watch", "version", "none"]
VersionOf: TypeAlias = Literal["sources", "corpus"]
GROUNDINGS = ("recheck", "watch", "version", "none")
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
    def watched(self) -> bool:
        """Whether the index tells what changed, so that a hit retrieves nothing."""
        return self.grounding == "watch"

    @property
    def swept(self) -> str:
        """The watched corpus, for who sweeps it.

        Raises:
            ConfigError: it is not watched.
        """
        if not self.watched:
            raise ConfigError(
                f'A sweep checks what is watched; this one has grounding="{self.grounding}".'
            )
        return self.corpus

    @property
    def needs_evidence(self) -> bool:
        """Whether an answer is kept only if it is known what it was made from.

        Else no change could be told to concern it. Under ``"none"`` time alone ends it anyway.
        """
        return self.grounding != "none"

    @property
    def whole_corpus(self) -> bool:
        """Whether any write to the corpus makes an answer stale."""
        return self.grounding == "version" and self.version_of == "corpus"


def checked(
    core: Core, given: Validity, *, manifest: Manifest | str | Path | None, has_index: bool
) -> Validity:
    """Return what a wrapper in front of this cache runs with.

    Args:
        core: of the cache, whose own corpus stands for one that nobody names.
        given: what the user says.
        manifest: of the index, or the path of its file.
        has_index: whether the wrapper retrieves from one.

    Raises:
        ConfigError: a word is none of ours; versions contradict each other; or nothing at hit time would
            notice another index, and its version is unknown.
    """
    _check_words(core, given, has_index=has_index)
    here, made = core.intake.stamps, as_manifest(manifest)
    told = given if made is None else _told_by(made, given, here)
    refuse_mixture("tokenizer", made=told.stamps.tokenizer, where="the index", runs=here.tokenizer)
    if not has_index:
        return told
    _check_index_is_known(told, here)
    corpus = told.corpus or core.intake.terms.corpus
    if told.watched and not corpus:
        raise ConfigError(
            'grounding="watch" needs the name of the watched documents: give corpus=, the one that'
            " watch(...) was given."
        )
    return replace(told, corpus=corpus)


def _check_words(core: Core, given: Validity, *, has_index: bool) -> None:
    if given.grounding not in GROUNDINGS:
        names = ", ".join(repr(name) for name in GROUNDINGS)
        raise ConfigError(f"grounding= is {given.grounding!r}; there are {names}.")
    if given.version_of not in _VERSIONS_OF:
        raise ConfigError(f'version_of= is {given.version_of!r}; give "sources" or "corpus".')
    if not has_index and given.needs_evidence:
        what = "recheck" if given.rechecked else "compare versions of"
        raise ConfigError(f'Without a retriever there is nothing to {what}; give grounding="none".')
    core.parts.terms.rules.lifetime(given.kind)


def _told_by(made: Manifest, given: Validity, here: Stamps) -> Validity:
    """Return what is given and what the manifest adds, where they agree, and the cache with them."""
    refuse_mixture("corpus", made=made.corpus, where="the manifest", runs=given.corpus)
    refuse_mixture("index", made=made.index, where="the manifest", runs=here.index)
    return replace(given, corpus=made.corpus, stamps=made.checked(given.stamps))


def _check_index_is_known(told: Validity, here: Stamps) -> None:
    if told.rechecked or told.watched or told.stamps.index or here.index or told.version:
        return
    raise ConfigError(
        f'With grounding="{told.grounding}" nothing at hit time notices another index, so its'
        " version must be known: give stamps=Stamps(index=...), or manifest= with the file that"
        " ingestion wrote (stampcache.Manifest)."
    )


def seen_stamp(described: object) -> str:
    """Return a stamp for what no user gave a version: the digest of what an adapter sees of it.

    Args:
        described: plain data; empty where nothing is seen, whose stamp is unknown, too.

    Raises:
        CanonicalError: it has no canonical form.
    """
    if not described:
        return ""
    digest = canonical.digest([canonical.value(described)], person=b"seen")
    return f"seen:{digest.removeprefix(canonical.FORMAT)}"
