"""``stampcache doctor``: is everything that a cache stands on in order, and how is it mended?"""

import os
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stampcache.assembly import CAPACITY
from stampcache.cli.check_corpora import resolve as resolve_corpora
from stampcache.cli.check_embedder import examine_embedder
from stampcache.cli.check_endpoint import Endpoint, examine_endpoint
from stampcache.cli.check_index import index_findings
from stampcache.cli.check_result import CheckResult, Status, skip
from stampcache.cli.check_store import StoreReport, examine_store
from stampcache.cli.options import AsJson, EmbedderName
from stampcache.cli.screen import one_line, screen, write_json
from stampcache.cli.target import existing_store
from stampcache.errors import ConfigError
from stampcache.model import Stamps
from stampcache.stores.sqlite_survey import StampCount

_STYLES = MappingProxyType(
    {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red", Status.SKIP: "dim"}
)
_STAMPS_SHOWN = 20


class Diagnosis(Struct, frozen=True):
    """All findings, and the distinct stamps of the store's entries."""

    findings: Sequence[CheckResult]
    stamps: Sequence[StampCount]

    @property
    def failed(self) -> bool:
        """Whether anything does not work."""
        return any(one.status is Status.FAIL for one in self.findings)


def doctor(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="The store, such as sqlite:///rag.db.")
    ] = None,
    *,
    embedder: EmbedderName = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            envvar="DEEPSEEK_BASE_URL",
            metavar="BASE_URL",
            show_envvar=True,
            help="An OpenAI-compatible endpoint; its key is read from DEEPSEEK_API_KEY.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that the endpoint must have.")
    ] = None,
    capacity: Annotated[
        int, typer.Option(metavar="N", min=1, help="The capacity= that the application gives.")
    ] = CAPACITY,
    index: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A watched index of the application, or a function that returns it: compare it"
            " with what the store knows of it.",
        ),
    ] = None,
    resolve: Annotated[
        bool,
        typer.Option(
            "--resolve",
            help="Serve blocked corpora again; what may have changed in them becomes stale.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Check the store, the embedder, the model endpoint and the stamps, and say how to mend them.

    Creates nothing, and changes nothing but with --resolve. Exits with 1 if something fails.
    """
    if resolve:
        _resolve(url)
    asked = Endpoint(endpoint or "", os.environ.get("DEEPSEEK_API_KEY", ""), model or "")
    with screen(stderr=True).status("Looking ..."):
        diagnosis = _diagnose(url, embedder, asked, capacity, index)
    if json:
        write_json(_as_json(diagnosis))
    else:
        _show(screen(), diagnosis)
    if diagnosis.failed:
        raise typer.Exit(1)


def _resolve(url: str | None) -> None:
    if url is None:
        raise ConfigError("Name the store whose corpora are to be served again.")
    store = existing_store(url)
    try:
        for said in resolve_corpora(store):
            screen(stderr=True).print(one_line(said, limit=None))
    finally:
        store.close()


def _diagnose(
    url: str | None,
    embedder: str | None,
    endpoint: Endpoint,
    capacity: int,
    index: str | None,
) -> Diagnosis:
    if url is None:
        report = StoreReport([skip("store", "not checked", "name one, such as sqlite:///rag.db")])
    else:
        report = examine_store(url, capacity=capacity)
    findings = [
        *report.findings,
        *index_findings(index),
        *examine_embedder(embedder, dimensions=report.dimensions, stamps=report.stamps),
        *examine_endpoint(endpoint),
    ]
    return Diagnosis(findings, report.stamps)


def _as_json(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "ok": not diagnosis.failed,
        "checks": [{**asdict(one), "status": one.status.value} for one in diagnosis.findings],
        "stamps": [{**asdict(one.stamps), "entries": one.entries} for one in diagnosis.stamps],
    }


def _show(console: Console, diagnosis: Diagnosis) -> None:
    lines = Table.grid(padding=(0, 2))
    for one in diagnosis.findings:
        found = one_line(one.found, limit=None)
        mend = f" -> {one_line(one.mend, limit=None)}" if one.mend else ""
        lines.add_row(Text(one.status.value, style=_STYLES[one.status]), one.check, found + mend)
    console.print(lines)
    if diagnosis.stamps:
        console.print(_stamps(diagnosis.stamps))


def _stamps(counts: Sequence[StampCount]) -> Table:
    names = Stamps.__struct_fields__
    more = len(counts) - _STAMPS_SHOWN
    caption = f"and {more:,} more" if more > 0 else None
    table = Table(*names, "entries", title="stamps of the entries", caption=caption)
    table.title_justify = "left"
    for one in counts[:_STAMPS_SHOWN]:
        versions = [one_line(str(getattr(one.stamps, name))) or "unknown" for name in names]
        table.add_row(*versions, f"{one.entries:,}")
    return table
