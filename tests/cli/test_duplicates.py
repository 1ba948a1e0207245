"""``stampcache duplicates``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stampcache.calibration import MULTILINGUAL
from stampcache.cli import duplicates as module
from stampcache.errors import WindowError
from stampcache.testing import AngleEmbedder

Run = Callable[..., Result]
ANGLES = {
    "How do I pay?": 0.0,
    "How can I pay?": 10.0,
    "Who pays?": 40.0,
    "Where is it?": 90.0,
    "Where is that?": 95.0,
}


class Reading(AngleEmbedder):
    """Does not read questions with a snowman."""

    def embed(self, texts):
        if any("☃" in one for one in texts):
            raise WindowError("it reads no snowman")
        return super().embed(texts)


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> Reading:
    made = Reading(ANGLES)
    monkeypatch.setattr(module, "as_embedder", lambda _name: made)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text("\n".join([*ANGLES, "", "Who ☃?", "Who pays?"]) + "\n")
    return path


def test_groups_are_shown(run: Run, embedder: Reading, file: Path) -> None:
    shown = run("duplicates", str(file), "--threshold", "0.95")
    assert shown.exit_code == 0, shown.output
    assert "How can I pay?" in shown.stdout and "from 0.985" in shown.stdout
    assert "6 questions, 3 groups at a cosine of 0.95 or more; 3 questions repeat" in shown.stdout
    assert "1 questions are not read by this embedder" in shown.stdout


def test_groups_as_json(run: Run, embedder: Reading, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"question": "Who pays?", "n": 1}, *ANGLES])))
    found = json.loads(run("duplicates", str(path), "--threshold", "0.9", "--json").stdout)
    assert (found["questions"], found["unread"], found["threshold"]) == (6, 0, 0.9)
    assert [one["questions"] for one in found["groups"]] == [
        ["Who pays?", "Who pays?"],
        ["How do I pay?", "How can I pay?"],
        ["Where is it?", "Where is that?"],
    ]
    assert found["groups"][1]["lowest_similarity"] == 0.9848


def test_an_empty_file_has_none(run: Run, embedder: Reading, tmp_path: Path) -> None:
    (tmp_path / "none.txt").touch()
    shown = run("duplicates", str(tmp_path / "none.txt"), "--threshold", "0.9").stdout
    assert "0 questions, 0 groups" in shown


def test_many_groups_are_cut_off(
    run: Run, embedder: Reading, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SHOWN_GROUPS", 1)
    shown = run("duplicates", str(file), "--threshold", "0.95").stdout
    assert "The 1 largest groups are shown" in shown
    assert "Where" not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.txt"], "cannot be read as text"),
        (["{file}"], "angles has no calibration; say --threshold"),
        (["{file}", "--threshold", "1.5"], "--threshold is 1.5"),
        (["{bad}", "--threshold", "0.9"], 'bad.jsonl:1 is no text and no object with "question"'),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    run: Run, embedder: Reading, file: Path, arguments: list[str], sentence: str
) -> None:
    bad = file.with_name("bad.jsonl")
    bad.write_text('{"text": "x"}\n')
    given = [one.format(file=file, bad=bad) for one in arguments]
    found = run("duplicates", *given)
    assert found.exit_code == 2
    assert sentence in " ".join(found.stderr.split())


def test_a_language_without_a_threshold_needs_one(
    run: Run, embedder: Reading, tmp_path: Path
) -> None:
    embedder.name = MULTILINGUAL
    path = tmp_path / "questions.txt"
    path.write_text("怎么付款？\nHow do I pay?\n", encoding="utf-8")
    found = run("duplicates", str(path))
    assert found.exit_code == 2
    assert "no calibration for Chinese" in " ".join(found.stderr.split())


def test_the_calibrated_threshold_is_the_default(run: Run, embedder: Reading, file: Path) -> None:
    embedder.name = "all-minilm-l6-v2"
    assert "at a cosine of 0.9 or more" in run("duplicates", str(file)).stdout
