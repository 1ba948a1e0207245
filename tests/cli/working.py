"""What ``stampcache work`` does, whatever the store: run with one of SQLite, and one of Redis."""

import json
from collections.abc import Callable

import pytest
from typer.testing import Result

from stampcache import Hit
from tests.aging import DOUBT_S
from tests.cli import application
from tests.cli.application import ASKED, FRESH, GONE, LATER_S, URL

Run = Callable[..., Result]
APP = "tests.cli.application:"


class Working:
    """A cache with one answer that is doubted and was asked for since."""

    @pytest.fixture
    def said(self, url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Fill it; return what sets what the judge says."""

        def say(reply: str) -> None:
            monkeypatch.setenv("STAMPCACHE_TEST_SAID", reply)

        monkeypatch.setenv(URL, url)
        say(FRESH)
        with application.cache() as cache:
            cache.update(ASKED, "a sheet", outcome=cache.lookup(ASKED))
        monkeypatch.setenv(LATER_S, str(DOUBT_S + 1.0))
        with application.cache() as cache:
            assert isinstance(cache.lookup(ASKED), Hit), "once more"
            assert not isinstance(cache.lookup(ASKED), Hit)
        return say

    def served(self) -> str | None:
        with application.cache() as cache:
            outcome = cache.lookup(ASKED)
            return outcome.answer.text if isinstance(outcome, Hit) else None

    def test_what_the_judge_finds_fresh_is_served_again(
        self, run: Run, said: Callable[[str], None]
    ) -> None:
        result = run("work", f"{APP}cache")
        assert result.exit_code == 0, result.output
        assert "1 fresh, 0 not, 0 made anew, 0 failed; 0 wait." in result.output
        assert self.served() == "a sheet"
        again = json.loads(run("work", f"{APP}for_tasks", "--json").stdout)
        assert (again["fresh"], again["left"]) == (0, 0)

    def test_what_is_not_fresh_is_made_anew_by_a_function_of_the_application(
        self, run: Run, said: Callable[[str], None]
    ) -> None:
        said(GONE)
        result = run("work", f"{APP}cache", "--refresh", f"{APP}refresh", "--json")
        told = json.loads(result.stdout)
        assert (told["not_fresh"], told["refreshed"], result.exit_code) == (1, 1, 0)
        assert self.served() == "anew"

    def test_without_a_judge_whatever_is_doubted_is_made_anew(
        self, run: Run, said: Callable[[str], None]
    ) -> None:
        told = json.loads(
            run("work", f"{APP}without_judge", "--refresh", f"{APP}refresh", "--json").stdout
        )
        assert told["refreshed"] == 1
        assert self.served() == "anew"

    def test_a_judge_that_is_down_is_told_and_the_rest_waits(
        self, run: Run, said: Callable[[str], None]
    ) -> None:
        said("")
        result = run("work", f"{APP}cache")
        assert result.exit_code == 1
        assert "0 fresh, 0 not, 0 made anew, 1 failed; 1 wait." in result.output
