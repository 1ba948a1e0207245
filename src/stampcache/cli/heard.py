"""``stampcache heard``: the watch of a corpus is alive, for jobs that found nothing to write."""

import time
from typing import Annotated

import typer

from stampcache.cli.options import Url
from stampcache.cli.screen import one_line, screen
from stampcache.cli.target import existing_store
from stampcache.errors import ConfigError


def heard(
    url: Url,
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="The watched corpus.")],
) -> None:
    """Tell that the watch of a corpus is alive, where silence would stop its hits (silence_s=).

    A job that ingests documents calls it when there was nothing to write.
    """
    store = existing_store(url)
    try:
        if store.corpora.standing(corpus) is None:
            known = ", ".join(repr(one.corpus) for one in store.corpora.standings()) or "none"
            raise ConfigError(f"Nobody watches corpus {corpus!r} in {url}; watched are {known}.")
        store.corpora.heard(corpus, now=time.time())
    finally:
        store.close()
    screen().print(f"Corpus {one_line(repr(corpus))} was heard of.")
