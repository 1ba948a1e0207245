"""``stampcache stats`` and ``stampcache invalidate``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stampcache import Answer, Request, Usage, open_cache

Run = Callable[..., Result]


def test_stats_in_json(run: Run, url: str) -> None:
    result = run("stats", url, "--json")
    figures = json.loads(result.stdout)
    assert figures["store"]["entries"] == 2
    assert figures["requests"] == 4
    assert figures["hit_rate"] == 0.25
    assert figures["hits"] == {"exact": 1, "semantic": 0}
    assert figures["misses"] == {"guard": 1, "not_found": 2}
    assert figures["refused"] == {"empty": 1}
    assert figures["saved"] == {"tokens": 550, "seconds": 1.5}
    assert figures["made"] == {"tokens": 1100, "provider_cached_tokens": None}


def test_stats_in_tables(run: Run, url: str) -> None:
    shown = run("stats", url).stdout
    for words in ("4 requests, hit rate 25.0%", "guard saw a difference", "answer is empty", "550"):
        assert words in shown


@pytest.mark.parametrize("cached", [0, 384])
def test_stats_tell_what_a_providers_own_cache_gave(run: Run, url: str, cached: int) -> None:
    assert "provider's own cache  │ not told" in run("stats", url).stdout
    usage = Usage(input_tokens=400, cached_tokens=cached)
    with open_cache(url) as cache:
        cache.update(Request(question="Another question?"), Answer(text="Yes.", usage=usage))
    shown = run("stats", url).stdout
    assert "tokens made           │ 1,500" in shown
    assert f"provider's own cache  │ {cached} of these tokens" in shown
    made = json.loads(run("stats", url, "--json").stdout)["made"]
    assert made == {"tokens": 1500, "provider_cached_tokens": cached}


def test_stats_of_a_new_store_are_zero(run: Run, tmp_path: Path) -> None:
    open_cache(f"sqlite:///{tmp_path}/new.db").close()
    result = run("stats", f"sqlite:///{tmp_path}/new.db")
    assert result.exit_code == 0
    assert "0 requests" not in result.stdout


def entries(url: str) -> int:
    with open_cache(url) as cache:
        return cache.core.store.stats().entries


@pytest.mark.parametrize(
    ("selectors", "gone"),
    [
        (["--corpus", "handbook"], 2),
        (["--source", "acme.md"], 1),
        (["--source", "acme.md", "--corpus", "other"], 0),
        (["--chunk", "c1"], 2),
        (["--entry", "nothing"], 0),
        (["--tenant", "acme"], 1),
        (["--namespace", "other"], 0),
        (["--stamp", "prompt=p1"], 2),
        (["--stamp", "prompt=p1", "--stamp", "model=other"], 0),
    ],
)
def test_invalidate_makes_stale_what_matches(
    run: Run, url: str, selectors: list[str], gone: int
) -> None:
    result = run("invalidate", url, *selectors, "--yes")
    assert result.exit_code == 0
    assert result.stdout == f"{gone} {'entry' if gone == 1 else 'entries'} made stale.\n"
    assert entries(url) == 2 - gone


def test_invalidate_needs_a_selector(run: Run, url: str) -> None:
    result = run("invalidate", url, "--yes")
    assert result.exit_code == 2
    assert "Say what changed" in result.stderr
    assert entries(url) == 2


@pytest.mark.parametrize(("typed", "left"), [("n\n", 2), ("", 2), ("y\n", 1)])
def test_invalidate_asks_first(run: Run, url: str, typed: str, left: int) -> None:
    result = run("invalidate", url, "--source", "acme.md", typed=typed)
    assert "source 'acme.md'?" in result.stdout
    assert result.exit_code == (0 if left == 1 else 1)
    assert entries(url) == left


def test_what_is_invalidated_is_shown_until_it_is_purged(run: Run, url: str) -> None:
    run("invalidate", url, "--source", "acme.md", "--yes")
    assert "invalidated besides   │ 1" in run("stats", url).stdout
    assert json.loads(run("stats", url, "--json").stdout)["store"]["invalidated"] == 1
    assert "1 invalidated besides, first to be evicted" in " ".join(
        run("doctor", url).stdout.split()
    )
    result = run("invalidate", url, "--corpus", "handbook", "--yes", "--purge")
    assert result.stdout == "1 entry made stale.\n2 entries deleted.\n"
    assert json.loads(run("stats", url, "--json").stdout)["store"]["invalidated"] == 0
