"""``stampcache work``: look after answers that may have changed, for a cron job."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Annotated

import typer
from msgspec.structs import asdict

from stampcache.cache import AsyncCache, Cache
from stampcache.cli.loading import load
from stampcache.cli.options import AsJson
from stampcache.cli.screen import screen, write_json
from stampcache.due import DueEntry
from stampcache.errors import ConfigError
from stampcache.working import Work


def work(
    cache: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME", help="The cache of the application, or a function that opens it."
        ),
    ],
    *,
    refresh: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME", help="The function that makes an answer anew (refresh= of work)."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Look after so many at most.")
    ] = 100,
    json: AsJson = False,
) -> None:
    """Look after answers that were asked for and may have changed, and have pairs of questions labelled.

    The cache is the application's own object, since its judge and its settings say what is fresh. Exits
    with 1 if a verdict said nothing or a refresh failed; what that was about waits for the next time.
    """
    made = None if refresh is None else _refresher(refresh)
    opened = _opened(cache)
    try:
        opened.core.store.stats()  # where the store is away, it says so
        if made is None and opened.core.judge is None and opened.core.learning.judge is None:
            raise ConfigError(
                f"{cache} has no judge=, so nobody says what is fresh; open it with one, or name a"
                " --refresh."
            )
        done = opened.work(limit=limit, refresh=made)
    finally:
        opened.close()
    if json:
        write_json(asdict(done))
    else:
        screen().print(_told(done))
    if done.failed or done.unlabelled:
        raise typer.Exit(1)


def _refresher(place: str) -> Callable[[DueEntry], object]:
    """Return a function whose call does the work, instead of returning what would do it."""
    found = load(place, option="--refresh")
    if not callable(found) or any(map(iscoroutinefunction, (found, type(found).__call__))):
        raise ConfigError(f"{place} is no plain function; name one that is given a DueEntry.")
    return found


def _opened(place: str) -> Cache:
    found = load(place, option="MODULE:NAME")
    if callable(found):
        found = found()
    if isinstance(found, AsyncCache):
        found = found.sync
    if not isinstance(found, Cache):
        raise ConfigError(f"{place} is a {type(found).__name__}; name what open_cache returned.")
    url = found.core.store.url
    if url.startswith("memory:"):
        raise ConfigError(
            f"{place} is a cache in {url}, which this process has just begun; open it over a store"
            " that the application shares."
        )
    return found


def _told(done: Work) -> str:
    told = [
        f"{done.fresh:,} fresh, {done.not_fresh:,} not, {done.refreshed:,} made anew,"
        f" {done.failed:,} failed; {done.left:,} wait."
    ]
    if done.same or done.not_same or done.unlabelled:
        told.append(
            f"Pairs of questions: {done.same:,} same, {done.not_same:,} not, {done.unlabelled:,}"
            f" without a verdict; {done.withdrawn:,} promises withdrawn."
        )
    return "\n".join(told)
