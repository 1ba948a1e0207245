"""How a cached chain is put together, of parts or around a chain that has them all."""

import secrets
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable
from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache.chains.opaque import Form, OpaqueTurn
from langchain_stampcache.chains.parted import PartedTurn
from langchain_stampcache.chains.requests import Requests
from langchain_stampcache.chains.retrieving import Retriever, Retrieving
from langchain_stampcache.chains.serving import ChainParts, Serving
from langchain_stampcache.fingerprint import Fingerprint
from langchain_stampcache.pieces import flowing
from langchain_stampcache.retrieval.settings import WholeChain
from langchain_stampcache.retrieval.watched import found_in, of_source
from stampcache import ConfigError, Manifest
from stampcache.adapters import CanonicalError, Core, Validity, checked

AnyRunnable: TypeAlias = Runnable[Any, Any]
PARTED = "langchain.chain"
OPAQUE = "langchain.around"


class Setup(Struct, frozen=True):
    """What both ways have in common: the cache, what its user says, and what makes a question whole."""

    core: Core
    validity: Validity
    manifest: Manifest | str | Path | None
    condense: AnyRunnable | None


def in_parts(setup: Setup, retriever: Retriever | None, answer: AnyRunnable) -> Serving:
    """Return what serves a retriever and an answer chain.

    Raises:
        ConfigError: see `CachedChain`.
    """
    core = setup.core
    has_index = retriever is not None
    retrieving = Retrieving(
        retriever, watched=setup.validity.watched, version=setup.validity.version
    )
    given = of_source(setup.validity, retrieving.source)
    validity = checked(core, given, manifest=setup.manifest, has_index=has_index)
    requests = Requests(
        answer,
        retrieving,
        validity,
        core.intake.stamps,
        framework=PARTED,
        fingerprint=Fingerprint(version=validity.version),
    )
    requests.check()
    parts = ChainParts(
        begin=partial(PartedTurn, condenses=setup.condense is not None),
        runnable=answer,
        retrieving=retrieving,
        requests=requests,
        validity=validity,
        flow=flowing(answer),
        retrieves_first=True,
        condense=setup.condense,
    )
    return Serving(core, parts, kind=PARTED)


def around(setup: Setup, chain: AnyRunnable, form: Form, retriever: Retriever | None) -> Serving:
    """Return what serves a chain that is not looked into.

    Raises:
        ConfigError: see `CachedChain`.
    """
    if setup.validity.rechecked and retriever is None:
        raise ConfigError(
            'A chain that is not looked into cannot be retrieved for; with grounding="recheck" give'
            ' the retriever that it uses, as retriever=, or take grounding="version".'
        )
    core = setup.core
    fingerprint = WholeChain(version=setup.validity.version)
    has_index = _has_index(setup.validity, chain, fingerprint) or retriever is not None
    retrieving = Retrieving(
        retriever, watched=setup.validity.watched, version=setup.validity.version
    )
    given = _of_this_index(setup) if has_index else setup.validity
    if given.watched:
        given = of_source(given, retrieving.source)
        given = of_source(given, found_in(chain, where="chain"))
    validity = checked(core, given, manifest=setup.manifest, has_index=has_index)
    requests = Requests(
        chain,
        retrieving,
        validity,
        core.intake.stamps,
        framework=OPAQUE,
        fingerprint=fingerprint,
    )
    requests.check()
    parts = ChainParts(
        begin=partial(OpaqueTurn, form=form),
        runnable=chain,
        retrieving=retrieving,
        requests=requests,
        validity=validity,
        flow=flowing(chain),
        retrieves_first=False,
        condense=setup.condense,
        forms=form.alone(),
    )
    return Serving(core, parts, kind=OPAQUE)


def _of_this_index(setup: Setup) -> Validity:
    """Return the validity with a stamp of its own for an index of which no version is known.

    Nothing can be seen of it then, so its answers are found by this very chain only, and not after a
    restart: no other index is ever taken for it.
    """
    given, here = setup.validity, setup.core.intake.stamps
    known = given.stamps.index or given.version or here.index or setup.manifest
    if given.rechecked or given.watched or known:  # of a watched corpus there is but one index
        return given
    own = f"of one object: {secrets.token_hex(8)}"
    return replace(given, stamps=replace(given.stamps, index=own))


def _has_index(given: Validity, chain: AnyRunnable, fingerprint: WholeChain) -> bool:
    """Tell whether a chain asks an index, as far as can be seen; with a grounding it must."""
    if given.needs_evidence or given.corpus:
        return True
    try:
        fingerprint.read(chain, None)
    except CanonicalError:
        return False  # and `Requests.check` says which part cannot be identified
    return fingerprint.has_retriever
