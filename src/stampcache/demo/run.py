"""Sets the stage: models and application; then plays the story, or lets a person ask."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import stampcache
from stampcache.demo import corpus
from stampcache.demo.endpoint import demo_folder, model_endpoint
from stampcache.demo.examples import example_build
from stampcache.demo.play import play
from stampcache.demo.prompt import Prompt
from stampcache.embed import as_embedder

_PIPED_WIDTH = 180


def run(*, framework: str = "langchain", ask: bool = False) -> int:
    """Run the demo; return 0, or 1 if a step of the story did not do what it says.

    The index is kept for the next run, the cache begins empty.

    Raises:
        ConfigError: something is missing or set wrongly; the sentence says what to do.
        ImportError: a package that the demo needs is not installed.
    """
    console = _console()
    with contextlib.ExitStack() as open_:
        with _step(console, f"Loading {framework}"):
            build = example_build(framework)
        with _step(console, "Loading the language model"):
            endpoint = open_.enter_context(model_endpoint())
        console.print(endpoint.sentence, style="bold")
        with _step(console, "Loading the embedder"):
            embedder = as_embedder("minilm")
        scratch = open_.enter_context(tempfile.TemporaryDirectory(prefix="stampcache-demo-"))
        url = f"sqlite:///{Path(scratch) / 'demo.db'}"
        cache = stampcache.open_cache(url, embedder=embedder, tenants="required")
        open_.enter_context(contextlib.closing(cache))
        folder = demo_folder()
        folder.mkdir(parents=True, exist_ok=True)
        app = build(cache=cache, embedder=embedder, endpoint=endpoint, folder=folder)
        texts = {document.source: document.text for document in corpus.python_reference()}
        if ask:
            return Prompt(app, texts=texts, console=console, read=input).run()
        return play(app, texts=texts, console=console)


def _console() -> Console:
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(markup=False, highlight=False, emoji=False, width=None if fits else _PIPED_WIDTH)


@contextlib.contextmanager
def _step(console: Console, name: str) -> Iterator[None]:
    """Show that something long goes on; how long it will take is not known."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=None)
        yield
        progress.update(task, total=1, completed=1)
