"""``stampcache demo``: a real RAG application that answers through the cache."""

import enum
import importlib
from typing import Annotated, Protocol, cast

import typer

from stampcache.errors import ConfigError

_MODULE = "stampcache.demo"


class Framework(enum.Enum):
    """The framework that the demo's application is written in."""

    LANGCHAIN = "langchain"
    LLAMA_INDEX = "llama-index"


class _Demo(Protocol):
    def run(self, *, framework: str, ask: bool) -> object: ...


def demo(
    *,
    framework: Annotated[
        Framework,
        typer.Option(
            metavar="NAME",
            envvar="FRAMEWORK",
            help='The framework of the application: "langchain" or "llama-index".',
        ),
    ] = Framework.LANGCHAIN,
    ask: Annotated[
        bool, typer.Option("--ask", help="Type questions as any tenant, each explained.")
    ] = False,
) -> None:
    """Run a real RAG application through the cache and show what was served, and why.

    Exits with 1 if a step did not do what it says.
    """
    try:
        story = cast(_Demo, importlib.import_module(_MODULE))
        outcome = story.run(framework=framework.value, ask=ask)
    except ImportError as error:
        raise ConfigError(
            f"The demo needs packages that cannot be imported ({error}); run `make demo` in a "
            "checkout of stampcache, which installs them."
        ) from error
    if isinstance(outcome, int) and outcome:
        raise typer.Exit(int(outcome))
