"""``stampcache invalidate``: mark what a change made stale."""

from typing import Annotated, TypeAlias

import typer

from stampcache.cache import Cache
from stampcache.cli.options import (
    Audience,
    Namespace,
    Secret,
    StampTexts,
    Tenant,
    Url,
    scope_from,
    stamps_from,
)
from stampcache.cli.screen import one_line, screen
from stampcache.cli.target import existing_store, secret_of
from stampcache.errors import ConfigError
from stampcache.model import Scope, Stamps

_UNUSED_SECRET = b"no scope is given, so nothing is derived from this"
Text: TypeAlias = str | None


def invalidate(
    url: Url,
    *,
    corpus: Annotated[Text, typer.Option(metavar="NAME", help="Citing this corpus.")] = None,
    source: Annotated[Text, typer.Option(metavar="ID", help="Citing this document.")] = None,
    chunk: Annotated[Text, typer.Option(metavar="ID", help="Citing this chunk.")] = None,
    entry: Annotated[Text, typer.Option(metavar="ID", help="This one entry.")] = None,
    tenant: Tenant = None,
    namespace: Namespace = None,
    audience: Audience = None,
    stamp: StampTexts = None,
    secret: Secret = None,
    purge: Annotated[bool, typer.Option("--purge", help="Delete what is stale.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Make all entries stale that match everything given, and print how many.

    Tenant, namespace and audience name one scope together. Asks before it begins. With --purge all
    invalidated and expired entries of the store are deleted, too.
    """
    stamps = stamps_from(stamp)
    scoped = (tenant, namespace, audience) != (None, None, None)
    scope = scope_from(tenant, namespace, audience) if scoped else None
    cited = {"corpus": corpus, "source": source, "chunk": chunk, "entry": entry}
    told = _told(cited, scope, stamps)
    store = existing_store(url)
    try:
        key = _UNUSED_SECRET if scope is None else secret_of(url, secret)
        cache = Cache(store, secret=key)
        if not yes:
            typer.confirm(f"Make all entries of {one_line(url)} stale with {told}?", abort=True)
        stale = cache.invalidate(
            corpus=corpus, source=source, chunk=chunk, entry=entry, stamps=stamps, scope=scope
        )
        gone = cache.purge() if purge else None
    finally:
        store.close()
    screen().print(f"{_counted(stale)} made stale.")
    if gone is not None:
        screen().print(f"{_counted(gone)} deleted.")


def _counted(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _told(cited: dict[str, str | None], scope: Scope | None, stamps: Stamps) -> str:
    """Return the selectors as a phrase.

    Raises:
        ConfigError: there is none.
    """
    parts = [f"{name} {value!r}" for name, value in cited.items() if value is not None]
    if scope is not None:
        parts.append(
            f"tenant {scope.tenant!r}, namespace {scope.namespace!r}, audience {scope.audience!r}"
        )
    for name in Stamps.__struct_fields__:
        version = getattr(stamps, name)
        parts += [f"{name} stamp {version!r}"] if version else []
    if not parts:
        raise ConfigError(
            "Say what changed: --corpus, --source, --chunk, --entry, --stamp, or a scope by "
            "--tenant, --namespace, --audience."
        )
    return " and ".join(parts)
