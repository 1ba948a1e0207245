"""``stampcache doctor``: each thing that may be wrong is found, said and how it is mended."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stampcache import Request, Stamps, open_cache
from stampcache.cli.app import build_app


class Report:
    """What the command said: its exit code and its findings by the name of the check."""

    def __init__(self, code: int, printed: str) -> None:
        told = json.loads(printed)
        self.code = code
        self.stamps: list[dict[str, object]] = told["stamps"]
        self.checks: list[dict[str, str]] = told["checks"]
        assert told["ok"] is (code == 0)

    def of(self, check: str) -> dict[str, str]:
        (only,) = [one for one in self.checks if one["check"] == check]
        return only


Doctor = Callable[..., Report]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEEPSEEK_BASE_URL", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def doctor() -> Doctor:
    def run(*arguments: str) -> Report:
        result = CliRunner().invoke(build_app(), ["doctor", "--json", *arguments])
        return Report(result.exit_code, result.stdout)

    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound store with two entries; one of them has an index stamp."""
    file = tmp_path / "rag.db"
    with open_cache(f"sqlite:///{file}", stamps=Stamps(prompt="p1")) as cache:
        cache.update(Request(question="q1", model="m"), "a1")
        cache.update(Request(question="q2", model="m", stamps=Stamps(index="i1")), "a2")
    return file


# -- the store ------------------------------------------------------------------------------------


def test_a_sound_store(doctor: Doctor, path: Path) -> None:
    report = doctor(f"sqlite:///{path}")
    assert report.code == 0
    assert {one["status"] for one in report.checks} == {"ok", "warn", "skip"}
    assert "2 entries, 0 with a vector, of a capacity of 100,000" in report.of("entries")["found"]
    assert report.of("journal")["status"] == "ok"
    assert report.of("schema")["found"] == "version 7"


def test_which_stamps_are_known(doctor: Doctor, path: Path) -> None:
    report = doctor(f"sqlite:///{path}")
    assert report.of("stamp model")["status"] == "ok"
    assert report.of("stamp index")["status"] == "warn"
    assert "unknown for 1 of 2 entries, 1 version among" in report.of("stamp index")["found"]
    assert "stamps=Stamps(index=...)" in report.of("stamp index")["mend"]
    assert report.of("stamp tokenizer")["status"] == "ok"
    known = {"model": "m", "tokenizer": "", "embedder": "", "prompt": "p1", "entries": 1}
    assert report.stamps == [{**known, "index": ""}, {**known, "index": "i1"}]


def test_a_store_without_entries(doctor: Doctor, tmp_path: Path) -> None:
    open_cache(f"sqlite:///{tmp_path}/new.db").close()
    report = doctor(f"sqlite:///{tmp_path}/new.db")
    assert report.code == 0
    assert report.of("stamps")["found"] == "no entries yet, so no stamps"


def test_nothing_is_created(doctor: Doctor, tmp_path: Path) -> None:
    report = doctor(f"sqlite:///{tmp_path}/nothing.db")
    assert report.code == 1
    assert "there is no file" in report.of("store")["found"]
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_somebody_else_is_left_alone(doctor: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = file.read_bytes()
    report = doctor(f"sqlite:///{file}")
    assert report.of("store")["status"] == "warn"
    assert "holds no cache" in report.of("store")["found"]
    assert file.read_bytes() == before


def test_a_file_that_is_no_database(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(b"junk" * 500)
    report = doctor(f"sqlite:///{tmp_path}/junk.db")
    assert report.code == 1
    assert "is not a database" in report.of("store")["found"]
    assert (tmp_path / "junk.db").read_bytes() == b"junk" * 500


@pytest.mark.parametrize("url", ["nonsense", "redis://x", "http://[", "sqlite://host/x.db"])
def test_a_url_that_names_no_store(doctor: Doctor, url: str) -> None:
    report = doctor(url)
    assert report.code == 1
    assert report.of("store")["status"] == "fail"


def test_a_damaged_entry(doctor: Doctor, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE stampcache_entries SET body = substr(body, 1, 30) WHERE id = 1")
    connection.commit()
    connection.close()
    report = doctor(f"sqlite:///{path}")
    assert report.code == 1
    assert "Damaged entries: 1" in report.of("integrity")["found"]
    assert "dropped when it is asked for" in report.of("integrity")["mend"]


def test_a_file_damaged_in_the_middle(doctor: Doctor, path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4096:] = b"\xa5" * (len(raw) - 4096)
    path.write_bytes(raw)
    report = doctor(f"sqlite:///{path}")
    assert report.code == 1
    assert "malformed" in report.of("store")["found"]


def test_a_part_of_a_cache(doctor: Doctor, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE stampcache_entries")
    connection.close()
    report = doctor(f"sqlite:///{path}")
    assert report.code == 1
    assert "holds only a part of a cache" in report.of("store")["found"]


def test_a_read_only_file(doctor: Doctor, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: object, _mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)
    report = doctor(f"sqlite:///{path}")
    assert report.code == 1
    assert "may not be written" in report.of("store")["found"]
    assert report.of("schema")["status"] == "ok", "what can be read is still told"


@pytest.mark.parametrize(("free", "status"), [(2**20, "fail"), (100 * 2**20, "warn")])
def test_little_space(
    doctor: Doctor, path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    class Usage:
        def __init__(self, _path: object) -> None:
            self.free = free

    monkeypatch.setattr("shutil.disk_usage", Usage)
    assert doctor(f"sqlite:///{path}").of("disk")["status"] == status


def test_more_entries_than_the_capacity_that_is_given(doctor: Doctor, path: Path) -> None:
    assert doctor(f"sqlite:///{path}", "--capacity", "1").of("entries")["status"] == "warn"


def test_counters_that_point_to_trouble(doctor: Doctor, path: Path) -> None:
    with open_cache(f"sqlite:///{path}") as cache:
        cache.core.store.tally({"error.store_error": 2, "miss.unscoped": 1, "error.new": 1})
        cache.core.store.tally({"hit.exact": 5})
    told = [one for one in doctor(f"sqlite:///{path}").checks if one["check"] == "counters"]
    assert [one["found"] for one in told] == [
        "error.new happened once",
        "error.store_error happened 2 times",
        "miss.unscoped happened once",
    ]
    assert all(one["status"] == "warn" and one["mend"] for one in told)


def test_it_says_all_of_it_in_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(build_app(), ["doctor", f"sqlite:///{path}"])
    assert result.exit_code == 0
    assert "warn  stamp index" in result.stdout
    assert "-> give stamps=Stamps(index=...)" in result.stdout
    assert "stamps of the entries" in result.stdout


def test_without_anything_it_says_what_could_be_checked(doctor: Doctor) -> None:
    report = doctor()
    assert report.code == 0
    assert {one["status"] for one in report.checks} == {"skip"}
    assert all(one["mend"] for one in report.checks)
