"""Where a request lives: Partition and ExactKey (pure; ADR 0003, ADR 0004).

The Partition is the hard boundary. It is a digest, keyed with the tenant's secret, of everything that
must be equal before an entry may even be seen: scope, settings, and the stamps that the cache itself
knows. The ExactKey, keyed likewise, stands for the canonical token sequence of the request. Since the
secret differs per tenant, nobody can tell from a store whether two tenants asked the same thing.
"""

import hashlib

from msgspec import Struct

from stampcache import canonical
from stampcache.errors import CanonicalError, ConfigError
from stampcache.model import Identity, Scope, Stamps, stamp_values
from stampcache.ports import Tokenizer
from stampcache.request import Request, Settings

MAX_TEXT_CHARS = 4 * 2**20
_NOTHING = b""


class Realm(Struct, frozen=True):
    """The digests that all requests of one scope and one set of settings share."""

    partition: str
    scope: str
    tenant: str
    secret: bytes


def tenant_secret(master: bytes, tenant: str) -> bytes:
    """Return the 32-byte secret of a tenant, derived from the store's (RFC 7693 keyed BLAKE2b)."""
    name = canonical.encode(tenant)
    key = master if len(master) <= 64 else hashlib.blake2b(master).digest()  # cut off nothing of it
    return hashlib.blake2b(name, key=key, digest_size=32, person=b"tenant").digest()


def realm(master: bytes, scope: Scope, settings: Settings, stamps: Stamps) -> Realm:
    """Digest scope, settings and the cache's own stamps; worth keeping, as they rarely change.

    Raises:
        CanonicalError: the settings have no canonical form.
        ConfigError: they name another tokenizer than the cache has.
    """
    if settings.problem:
        raise CanonicalError(settings.problem)
    refuse_mixture(
        "tokenizer", made=settings.stamps.tokenizer, where="the request", runs=stamps.tokenizer
    )
    secret = tenant_secret(master, scope.tenant)
    scope_parts = [canonical.encode(scope.tenant), canonical.encode(scope.namespace)]
    scope_parts.append(canonical.encode(scope.audience))
    stamp_parts = [canonical.encode(stamp) for stamp in stamp_values(stamps)]
    everything = [*scope_parts, settings.digest.encode(), *stamp_parts]
    return Realm(
        partition=canonical.digest(everything, key=secret, person=b"partition"),
        scope=canonical.digest(scope_parts, key=secret, person=b"scope"),
        tenant=canonical.digest(scope_parts[:1], key=secret, person=b"tenant"),
        secret=secret,
    )


def tenant_digest(master: bytes, tenant: str) -> str:
    """Return the digest under which a store knows a tenant (`Identity.tenant`)."""
    key = tenant_secret(master, tenant)
    return canonical.digest([canonical.encode(tenant)], key=key, person=b"tenant")


def identify(request: Request, where: Realm, tokenizer: Tokenizer | None) -> Identity:
    """Return the address of a request inside its realm.

    Raises:
        CanonicalError: nothing is asked, a text is too long, or a part has no canonical form.
    """
    question = question_tokens(request.question, tokenizer)
    if request.prompt is None and not request.history:  # most requests; hashed in one piece
        parts, person = [question], b"question"
    else:
        parts, person = [question, _prompt(request.prompt), _history(request)], b"prompt"
    if not question and request.prompt in (None, ""):
        raise CanonicalError("The question is empty; give a question or a prompt.")
    key = canonical.digest(parts, key=where.secret, person=person)
    return Identity(where.partition, key, where.scope, where.tenant)


def of_variety(address: Identity, slot: int, where: Realm) -> Identity:
    """Return where the answer number ``slot`` of a variety lives; number 0 is the one of everybody."""
    if slot == 0:
        return address
    parts = [address.partition.encode(), b"%d" % slot]
    partition = canonical.digest(parts, key=where.secret, person=b"variety")
    return Identity(partition, address.key, address.scope, address.tenant)


def question_tokens(question: str, tokenizer: Tokenizer | None) -> bytes:
    """Return the canonical token sequence of a question as bytes: UTF-8 text, or a tokenizer's ids."""
    if type(question) is not str:  # None is not "None", and no repr is a question
        raise CanonicalError(f"The question is a {type(question).__qualname__}; give it as text.")
    _refuse_long(len(question), "question")
    text = canonical.text(question)
    try:
        plain = text.encode()
    except UnicodeEncodeError as error:
        raise CanonicalError(f"The question is no valid Unicode text ({error.reason}).") from error
    return plain if tokenizer is None else tokenizer.tokens(text)


def _prompt(prompt: object) -> bytes:
    if prompt is None:
        return _NOTHING
    if isinstance(prompt, str):
        _refuse_long(len(prompt), "prompt")
        return b"text:" + canonical.encode(prompt)
    rendered = canonical.value(prompt)
    _refuse_long(len(rendered), "prompt")
    return b"json:" + rendered


def _history(request: Request) -> bytes:
    return canonical.value(request.history) if request.history else _NOTHING


def _refuse_long(length: int, what: str) -> None:
    if length > MAX_TEXT_CHARS:
        raise CanonicalError(
            f"The {what} has {length:,} characters; at most {MAX_TEXT_CHARS:,} are keyed. "
            "Ask the model without the cache, or shorten it."
        )


def refuse_mixture(what: str, *, made: str, where: str, runs: str) -> None:
    """Refuse two versions of one thing, in words that name both; an unknown one is no mixture.

    Raises:
        ConfigError: both are known, and they differ.
    """
    if made and runs and made != runs:
        raise ConfigError(
            f"A mixture of {what} versions: {where} has {made!r}, but here {runs!r} is given."
            " Ingest the documents anew, or run with the version that they were made with."
        )
