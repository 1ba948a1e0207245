"""``stampcache bench`` and ``stampcache demo``."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import Result

import stampcache

Run = Callable[..., Result]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "deep").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "stampcache"\n')
    (folder / "benchmarks/__init__.py").touch()
    (folder / "benchmarks/shared.py").write_text('"""No benchmark."""\n')
    (folder / "benchmarks/speed.py").write_text(
        '"""How fast.\n\nMore."""\nimport sys\nfrom pathlib import Path\n'
        'if __name__ == "__main__":\n    Path("ran").write_text(" ".join(sys.argv[1:]))\n'
        "    sys.exit(3)\n"
    )
    monkeypatch.chdir(folder / "deep")
    return folder


def test_bench_lists_what_there_is(run: Run, checkout: Path) -> None:
    assert checkout.is_dir()
    shown = run("bench").stdout
    assert "speed" in shown
    assert "How fast." in shown
    assert "shared" not in shown


def test_bench_runs_the_module_and_hands_its_exit_code_on(run: Run, checkout: Path) -> None:
    result = run("bench", "speed", "--quick", "--json", "rows.json")
    assert result.exit_code == 3
    ran = (checkout / "ran").read_text()
    assert ran == f"--quick --json {checkout}/deep/rows.json"


def test_bench_names_those_that_there_are(run: Run, checkout: Path) -> None:
    result = run("bench", "../../evil")
    assert result.exit_code == 2
    assert f"There is no benchmark '../../evil' in {checkout}; there are: speed." in result.stderr


def test_bench_without_a_checkout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stampcache, "__file__", str(tmp_path / "stampcache/__init__.py"))
    result = run("bench")
    assert result.exit_code == 2
    assert "here is none" in result.stderr


class Stage(ModuleType):
    """Stands for the module of the demo."""

    def __init__(self, outcome: int | None) -> None:
        super().__init__("stampcache.demo")
        self.outcome = outcome
        self.calls: list[tuple[str, bool]] = []

    def run(self, *, framework: str, ask: bool) -> int | None:
        self.calls.append((framework, ask))
        return self.outcome


@pytest.mark.parametrize(("outcome", "code"), [(None, 0), (0, 0), (1, 1)])
def test_demo_runs_the_story(
    run: Run, monkeypatch: pytest.MonkeyPatch, outcome: int | None, code: int
) -> None:
    stage = Stage(outcome)
    monkeypatch.setitem(sys.modules, "stampcache.demo", stage)
    assert run("demo").exit_code == code
    assert run("demo", "--framework", "llama-index", "--ask").exit_code == code
    assert stage.calls == [("langchain", False), ("llama-index", True)]


def test_demo_without_its_packages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stampcache.demo", None)
    result = run("demo")
    assert result.exit_code == 2
    assert "The demo needs packages that cannot be imported" in result.stderr


def test_demo_refuses_another_framework(run: Run) -> None:
    assert run("demo", "--framework", "haystack").exit_code == 2
