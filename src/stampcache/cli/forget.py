"""``stampcache forget``: remove every byte of a tenant."""

from typing import Annotated

import typer

from stampcache.cache import Cache
from stampcache.cli.options import Secret, Url
from stampcache.cli.screen import one_line, screen, size
from stampcache.cli.target import existing_store, secret_of
from stampcache.ports import Forgotten


def forget(
    url: Url,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Its name.")],
    *,
    secret: Secret = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove every byte of a tenant from the store, and print how much that was.

    Asks before it begins. The whole file is written anew, so that nothing is left in its gaps either.
    """
    store = existing_store(url)
    try:
        cache = Cache(store, secret=secret_of(url, secret))
        if not yes:
            typer.confirm(
                f"Remove everything of tenant {tenant!r} from {one_line(url)} for good?", abort=True
            )
        forgotten = cache.forget(tenant)
        cache.core.save_counters()
    finally:
        store.close()
    screen().print(_told(forgotten, tenant))


def _told(forgotten: Forgotten, tenant: str) -> str:
    if forgotten == Forgotten():
        return (
            f"Nothing is kept of tenant {tenant!r}; was it spelled so, and is this the application's"
            " secret?"
        )
    counted = f"{forgotten.entries:,} {'entry' if forgotten.entries == 1 else 'entries'}"
    return f"{counted} removed, {size(forgotten.size_bytes)}."
