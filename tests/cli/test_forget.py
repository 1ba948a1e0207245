"""``stampcache forget``, and every command on an encrypted file."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stampcache import Request, Scope, open_cache

pytest.importorskip("cryptography")
Run = Callable[..., Result]
KEY = bytes(range(32))
TEXT = base64.urlsafe_b64encode(KEY).decode()


def entries(url: str) -> int:
    with open_cache(url) as cache:
        return cache.core.store.stats().entries


@pytest.mark.parametrize(("typed", "left"), [("n\n", 2), ("", 2), ("y\n", 1)])
def test_forget_asks_first(run: Run, url: str, typed: str, left: int) -> None:
    result = run("forget", url, "acme", typed=typed)
    assert "Remove everything of tenant 'acme'" in result.stdout
    assert result.exit_code == (0 if left == 1 else 1)
    assert entries(url) == left


def test_forget_says_how_much_it_was(run: Run, url: str) -> None:
    result = run("forget", url, "acme", "--yes")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 entry removed, ")
    assert "B.\n" in result.stdout
    assert run("forget", url, "globex", "--yes").stdout.startswith("1 entry removed")
    assert entries(url) == 0


def test_forget_says_when_there_was_nothing(run: Run, url: str) -> None:
    result = run("forget", url, "acmee", "--yes")
    assert result.exit_code == 0
    assert "Nothing is kept of tenant 'acmee'; was it spelled so" in result.stdout
    result = run("forget", url, "acme", "--yes", "--secret", "another secret of an app")
    assert "is this the application's secret?" in result.stdout
    assert entries(url) == 2


def test_forget_needs_a_name_and_a_store(run: Run, url: str, tmp_path: Path) -> None:
    result = run("forget", url, "", "--yes")
    assert result.exit_code == 2
    assert "give its name" in result.stderr
    assert "no file" in run("forget", f"sqlite:///{tmp_path}/none.db", "acme", "--yes").stderr


@pytest.fixture
def hidden(tmp_path: Path) -> str:
    """An encrypted store with one entry of a tenant."""
    url = f"sqlite:///{tmp_path}/hidden.db"
    with open_cache(url, encryption_key=KEY) as cache:
        cache.update(Request(question="Who signs?", scope=Scope(tenant="acme")), "The chief.")
    return url


@pytest.mark.parametrize("keys", [TEXT, f"{base64.b64encode(bytes(32)).decode()}, {TEXT}"])
def test_commands_read_the_keys_of_an_encrypted_store(
    run: Run, hidden: str, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAMPCACHE_ENCRYPTION_KEY", keys)
    assert run("stats", hidden).exit_code == 0
    assert run("doctor", hidden).exit_code == 0
    assert "every entry can be read" in run("doctor", hidden).stdout
    explained = run("explain", hidden, "Who signs?", "--tenant", "acme", "--model", "other")
    assert "other settings" in explained.stdout
    assert run("forget", hidden, "acme", "--yes").stdout.startswith("1 entry removed")


@pytest.mark.parametrize("command", [("stats",), ("explain", "Who?"), ("forget", "acme", "--yes")])
def test_without_the_key_a_command_says_that_it_needs_one(
    run: Run, hidden: str, command: tuple[str, ...]
) -> None:
    name, *rest = command
    result = run(name, hidden, *rest)
    assert result.exit_code == 2
    assert "is encrypted: give the key" in result.stderr
    assert run("doctor", hidden).exit_code == 1
