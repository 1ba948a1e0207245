"""A filled store, and the command line run inside this process."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import typer
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from stampcache import Answer, Evidence, Request, Scope, Stamps, Usage, open_cache
from stampcache.cli.app import build_app
from stampcache.embed import as_embedder

LEAVE = "How many days of leave do I have in 2024?"
OTHER_YEAR = "How many days of leave do I have in 2025?"
Run = Callable[..., Result]


class ToyEmbedder:
    """One component per bucket of words."""

    name = "toy"
    dimension = 16

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.full((len(texts), self.dimension), 0.05, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[sum(map(ord, word)) % self.dimension] += 1
        return rows


@pytest.fixture
def app() -> typer.Typer:
    return build_app()


@pytest.fixture
def run(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in (
        "DEEPSEEK_BASE_URL",
        "DEEPSEEK_API_KEY",
        "STAMPCACHE_ENCRYPTION_KEY",
        "STAMPCACHE_SECRET",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "300")

    def invoke(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=typed)

    return invoke


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyEmbedder]:
    """Make ``--embedder toy`` name the toy."""
    embedder = ToyEmbedder()

    def named(raw: object) -> object:
        return embedder if raw == "toy" else as_embedder(raw)

    monkeypatch.setattr("stampcache.assembly.as_embedder", named)
    yield embedder


def request(tenant: str, question: str = LEAVE) -> Request:
    params = {"temperature": 0.0}
    return Request(
        question=question, model="deepseek-chat", params=params, scope=Scope(tenant=tenant)
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with one entry for each of two tenants, one hit, one guarded miss, one refusal."""
    name = f"sqlite:///{tmp_path}/rag.db"
    with open_cache(
        name, embedder=ToyEmbedder(), calibration=0.9, stamps=Stamps(prompt="p1")
    ) as cache:
        for tenant in ("acme", "globex"):
            outcome = cache.lookup(request(tenant))
            answer = Answer(
                text="[red]30\x1b[31m days[/red]",
                usage=Usage(input_tokens=500, output_tokens=50),
                latency_s=1.5,
            )
            cited = Evidence(corpus="handbook", source=f"{tenant}.md", chunk="c1", text="30 days")
            cache.update(request(tenant), answer, outcome=outcome, evidence=[cited])
        cache.lookup(request("acme"))
        cache.lookup(request("acme", OTHER_YEAR))
        cache.update(request("acme", OTHER_YEAR), "")
    return name
