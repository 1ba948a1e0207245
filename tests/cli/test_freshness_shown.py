"""``stampcache stats`` and ``explain`` show what a judge cost, what it saved, and what it said."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stampcache import Freshness, Request, open_cache
from stampcache.testing import FakeClock

Run = Callable[..., Result]
QUESTION = "What is a map?"
DAY_S = 86_400.0


class Message:
    usage_metadata = {"input_tokens": 300, "output_tokens": 20}  # noqa: RUF012 - as messages of the framework have it

    def __init__(self, content: str) -> None:
        self.content = content


def reply(fresh: str, reason: str) -> Callable[[str], Message]:
    def judge(_prompt: str) -> Message:
        return Message(f'{{"fresh": {fresh}, "reason": "{reason}"}}')

    return judge


def judged(path: Path, judge: object) -> str:
    """Fill a store, let the one answer be doubted and judged, and ask for it again; return its URL."""
    clock = FakeClock(time.time() - DAY_S)
    url = f"sqlite:///{path}"
    fresh = Freshness(limit=0.2, beta=0.0)
    with open_cache(url, judge=judge, freshness=fresh, ttl_s=20 * DAY_S, clock=clock) as cache:
        request = Request(question=QUESTION)
        cache.update(request, "a", outcome=cache.lookup(request))
        clock.advance(0.2232 * 20 * DAY_S)
        cache.lookup(request)
        cache.work()
        cache.lookup(request)
    return url


def test_stats_in_json(run: Run, tmp_path: Path) -> None:
    url = judged(tmp_path / "c.db", reply("true", "it names no date"))
    told = json.loads(run("stats", url, "--json").stdout)["judge"]
    assert told.pop("seconds") >= 0.0
    assert told == {
        "calls": 1,
        "calls_per_1000_requests": pytest.approx(1_000 / 3),
        "fresh": 1,
        "not_fresh": 0,
        "failed": 0,
        "refusals": 0,
        "unasked": 0,
        "saved_answers": 1,
        "tokens": 320,
    }


def test_stats_in_a_table(run: Run, tmp_path: Path) -> None:
    url = judged(tmp_path / "c.db", reply("false", "prices change"))
    shown = run("stats", url).stdout
    for words in ("judge of freshness", "1, 333.3 per 1,000 requests", "not fresh", "320"):
        assert words in shown
    assert "judge said no" in shown, "among the reasons not to serve"


def test_without_a_judge_no_table_of_one(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'c.db'}"
    open_cache(url).close()
    assert "judge of freshness" not in run("stats", url).stdout
    assert json.loads(run("stats", url, "--json").stdout)["judge"]["calls"] == 0


def test_explain_tells_the_verdict_and_the_doubt(run: Run, tmp_path: Path) -> None:
    url = judged(tmp_path / "fresh.db", reply("true", "it names no date"))
    shown = run("explain", url, QUESTION).stdout
    assert "fresh: it names no date" in shown and "320 tokens" in shown
    assert "may have changed from: 20" in shown and "confirmed: 20" in shown
    url = judged(tmp_path / "stale.db", reply("false", "prices change"))
    shown = run("explain", url, QUESTION).stdout
    assert "Stale: judge said no" in shown
    assert "not fresh: prices change" in shown


def test_explain_tells_that_an_answer_is_doubted_now(run: Run, tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path / 'c.db'}", FakeClock(time.time() - DAY_S)
    with open_cache(url, freshness=Freshness(), ttl_s=2 * DAY_S, clock=clock) as cache:
        cache.update(Request(question=QUESTION), "a")
    assert "Stale: may have changed since" in run("explain", url, QUESTION).stdout


def test_a_verdict_cannot_write_on_the_terminal(run: Run, tmp_path: Path) -> None:
    url = judged(tmp_path / "c.db", reply("false", "\\u001b[31mred\\u001b[0m\\nnew line"))
    shown = run("explain", url, QUESTION).stdout
    assert "\x1b[31mred" not in shown
    assert "new line" in shown
