"""The arguments and options that several commands share, and how their texts are read."""

import json
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from stampcache.errors import ConfigError
from stampcache.model import Scope, Stamps

Url: TypeAlias = Annotated[
    str, typer.Argument(metavar="URL", help="The store, such as sqlite:///rag.db.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Tenant: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help='Tenant of the scope; else "default".')
]
Namespace: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help='Namespace of the scope; else "default".')
]
Audience: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Audience of the scope; else the whole tenant.")
]
StampTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--stamp",
        metavar="NAME=VERSION",
        help="A stamp: model, tokenizer, embedder, prompt or index. May be repeated.",
    ),
]
Secret: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar="STAMPCACHE_SECRET",
        metavar="TEXT",
        show_envvar=True,
        help="The secret= of the application, where it gives one. Better in the environment.",
    ),
]
Question: TypeAlias = Annotated[str, typer.Argument(metavar="QUESTION", help="As it is asked.")]
Model: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="The model that would be run.")]
Params: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="A parameter, VALUE in JSON. May be repeated."
    ),
]
System: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="The system prompt.")]
CorpusName: TypeAlias = Annotated[
    str, typer.Option("--corpus", metavar="NAME", help="The corpus that is asked, if it is named.")
]
ModelEndpoint: TypeAlias = Annotated[
    str, typer.Option(metavar="URL", help="The endpoint of the model.")
]
Prompt: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The rendered prompt, where it is keyed.")
]
EmbedderName: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The embedder, as the application names it.")
]
Threshold: TypeAlias = Annotated[
    float | None, typer.Option(metavar="COSINE", help="The calibration= of the application.")
]


def scope_from(tenant: str | None, namespace: str | None, audience: str | None) -> Scope:
    """Return the scope that is meant; what is left out is what an application would leave out."""
    if tenant == "":
        raise ConfigError("--tenant is empty; name the tenant, or leave it out.")
    return Scope(tenant or "default", "default" if namespace is None else namespace, audience or "")


def stamps_from(texts: Sequence[str] | None) -> Stamps:
    """Return the stamps given as ``name=version``.

    Raises:
        ConfigError: a text has no ``=``, an unknown name or no version.
    """
    given = dict.fromkeys(Stamps.__struct_fields__, "")
    for text in texts or ():
        name, _, version = text.partition("=")
        if name not in given or not version:
            raise ConfigError(
                f"--stamp {text!r} is no stamp; write NAME=VERSION, where NAME is one of "
                f"{', '.join(given)}."
            )
        given[name] = version
    return Stamps(**given)


def params_from(texts: Sequence[str] | None) -> dict[str, object]:
    """Return parameters given as ``name=value``: JSON where the value is JSON, else a text.

    Raises:
        ConfigError: a text has no ``=`` or no name.
    """
    params: dict[str, object] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigError(f"--param {text!r} is no parameter; write NAME=VALUE, VALUE in JSON.")
        try:
            params[name] = json.loads(value)
        except ValueError:
            params[name] = value
    return params
