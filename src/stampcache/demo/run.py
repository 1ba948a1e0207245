"""Sets the stage: models and application; then plays the story, or lets a person ask."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, track

import stampcache
from stampcache.cache import Cache
from stampcache.demo import corpus
from stampcache.demo.app import Encode, Example, IndexedRag
from stampcache.demo.endpoint import Endpoint, demo_folder, model_endpoint
from stampcache.demo.examples import load_example
from stampcache.demo.play import play
from stampcache.demo.prompt import Prompt
from stampcache.embed import as_embedder
from stampcache.model import Vector
from stampcache.ports import Embedder

_PIPED_WIDTH = 180
_BATCH = 32


def run(*, framework: str = "langchain", ask: bool = False) -> int:
    """Run the demo; return 0, or 1 if a step of the story did not do what it says.

    The index is kept for the next run, the cache begins empty.

    Raises:
        ConfigError: something is missing or set wrongly; the sentence says what to do.
        ImportError: a package that the demo needs is not installed.
    """
    console = _console()
    texts = {document.source: document.text for document in corpus.python_reference()}
    with contextlib.ExitStack() as open_:
        with _step(console, f"Loading {framework}"):
            example = load_example(framework)
        with _step(console, "Loading the language model"):
            endpoint = open_.enter_context(model_endpoint())
        console.print(endpoint.sentence, style="bold")
        with _step(console, "Loading the embedder"):
            embedder = as_embedder("minilm")
        cache = open_.enter_context(_empty_cache(embedder))
        app = _application(example, endpoint, _tracked(embedder, console), cache)
        app.index(texts)
        if ask:
            return Prompt(app, texts=texts, console=console, read=input).run()
        return play(app, texts=texts, console=console)


@contextlib.contextmanager
def _empty_cache(embedder: Embedder) -> Iterator[Cache]:
    with tempfile.TemporaryDirectory(prefix="stampcache-demo-") as scratch:
        url = f"sqlite:///{Path(scratch) / 'demo.db'}"
        with stampcache.open_cache(url, embedder=embedder, tenants="required") as cache:
            yield cache


def _tracked(embedder: Embedder, console: Console) -> Encode:
    """Return what embeds the documents, too, and shows how far it is when there are many."""

    def encode(texts: Sequence[str]) -> Vector:
        if len(texts) <= _BATCH:
            return embedder.embed(texts)
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        shown = track(batches, "Embedding the documents", console=console)
        return np.concatenate([embedder.embed(batch) for batch in shown])

    return encode


def _application(example: Example, endpoint: Endpoint, encode: Encode, cache: Cache) -> IndexedRag:
    """Build an example's application from the parts of the demo."""
    folder = demo_folder()
    folder.mkdir(parents=True, exist_ok=True)
    llm = example.language_model(endpoint.environment(), endpoint.max_tokens)
    return example.Rag(llm, example.MiniLM(encode), corpus.split, cache, folder)


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
