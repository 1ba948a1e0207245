"""The command line as a program, and what all its commands have in common."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import stampcache
from stampcache.cli.reference import reference

ROOT = Path(__file__).parents[2]
Run = Callable[..., Result]


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_importing_the_library_imports_no_command_line(tmp_path: Path) -> None:
    done = python(
        "-c",
        "import sys, stampcache, stampcache.cli; print({'typer', 'rich'} & set(sys.modules))",
        cwd=tmp_path,
    )
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_packages_it_names_the_extra(package: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import stampcache.cli as c; c.main()"
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"The command line needs {package}: run pip install 'stampcache[cli]'.\n"
    )


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = python("-m", "stampcache.cli", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"stampcache {stampcache.__version__}\n")


def test_an_error_is_one_sentence_without_traceback(tmp_path: Path) -> None:
    done = python("-m", "stampcache.cli", "stats", "sqlite:///nothing.db", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "There is no file nothing.db, so no cache to look at; check the path.\n"
    assert list(tmp_path.iterdir()) == []


def test_letters_that_a_terminal_lacks_do_not_stop_it(url: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.stdout.reconfigure(encoding='ascii'); import stampcache.cli as c; c.main()"
    )
    done = python("-c", code, "explain", url, "哪天放假？", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [["stats"], ["explain", "q"], ["invalidate", "--entry", "x"]])
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("nonsense", "is no URL"),
        ("memory://", "lives inside the process"),
        ("postgres://host", "unknown"),
        ("sqlite:///TMP/junk.db", "is not a database"),
        ("sqlite:///TMP/empty.db", "holds no cache"),
        ("sqlite:///TMP/rag.db?mode=ro", "carries options"),
        ("sqlite:///TMP", "is a folder"),
        ("sqlite:///TMP/nothing.db", "There is no file"),
    ],
)
def test_a_wrong_store_is_one_sentence(
    run: Run, tmp_path: Path, command: list[str], kind: str, says: str
) -> None:
    (tmp_path / "junk.db").write_text("this is no database, although it is a file" * 30)
    (tmp_path / "empty.db").touch()
    before = sorted(tmp_path.iterdir())
    name, *rest = command
    result = run(name, kind.replace("TMP", str(tmp_path)), *rest)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_reading_leaves_the_folder_as_it_was(run: Run, url: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    for arguments in (["stats", url], ["explain", url, "q"], ["doctor", url]):
        assert run(*arguments).exit_code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_the_committed_reference_is_the_generated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    committed = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert committed == reference(), "run: python -m stampcache.cli.reference docs/reference/cli.md"
    assert "\x1b" not in committed
