"""``stampcache work`` over a file, and what it refuses."""

from pathlib import Path

import pytest

from tests.cli.application import URL
from tests.cli.conftest import Run
from tests.cli.working import APP, Working


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/rag.db"


class TestWorkOverAFile(Working):
    """See `Working`."""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((f"{APP}number",), "is a int; name what open_cache returned"),
        ((f"{APP}nothing",), "There is no tests.cli.application:nothing"),
        (("sqlite",), "give MODULE:NAME"),
        ((f"{APP}in_memory",), "which this process has just begun"),
        ((f"{APP}without_judge",), "has no judge="),
        ((f"{APP}cache", "--refresh", f"{APP}number"), "is no plain function"),
        ((f"{APP}cache", "--refresh", f"{APP}arefresh"), "is no plain function"),
        ((f"{APP}cache", "--refresh", f"{APP}refresher"), "is no plain function"),
    ],
)
def test_what_is_no_cache_to_work_for_is_refused(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv(URL, url)
    result = run("work", *words)
    assert result.exit_code == 2
    assert said in result.output.replace("\n", " ")
