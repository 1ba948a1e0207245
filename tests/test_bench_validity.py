"""The benchmark `validity` on a few made-up documents, with an embedder that counts words."""

import json
import random
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.validity import __main__ as validity
from benchmarks.validity import tally, texts
from benchmarks.validity.app import App, Change, Vectors
from benchmarks.validity.edits import Library, another_number, another_sentence, another_year
from benchmarks.validity.generation import Generation
from benchmarks.validity.regimes import Regime, Sizes, regimes
from benchmarks.validity.rewording import rewordings
from benchmarks.validity.texts import Question
from stampcache.calibration import MINILM
from stampcache.model import Vector

TINY = Sizes(requests=24, questions=8, pages=6, long_pages=2, rounds=2)
TOWNS = ("Aberdeen", "Bergen", "Cadiz", "Dresden", "Esbjerg", "Florence")
MADE = Generation(1.0, "a generation of 1 s, made up")


class CountedWords:
    """Stands in for MiniLM: the same words are the same direction."""

    name = MINILM

    def embed(self, texts: Sequence[str]) -> Vector:
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace("?", " ").split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Made-up files in the form of TimeQA and PubMedQA."""
    pages = [
        {
            "index": f"/wiki/{town}#P6",
            "link": f"/wiki/{town}",
            "paras": [town] + [_served(town, at) for at in range(4)],
            "questions": [
                [
                    f"Who was the mayor of {town} from {1950 + 10 * at} to {1960 + 10 * at}?",
                    [{"para": at + 1, "from": 0, "end": 5, "answer": f"{town} mayor {at}"}],
                ]
                for at in range(4)
            ],
        }
        for town in TOWNS
    ]
    papers = {
        str(at): {
            "QUESTION": f"Does remedy {at} help against the common cold of {town}?",
            "CONTEXTS": [
                f"In 19{60 + at} some {70 + at} patients of {town} were given remedy {at}. "
                "They were asked each week how they felt, and a half of them felt better."
            ],
        }
        for at, town in enumerate(TOWNS * 2)
    }
    for folder, name, content in (
        ("timeqa", "human_annotated_test.json", pages),
        ("pubmedqa", "ori_pqal.json", papers),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(json.dumps(content))
    return tmp_path


def _served(town: str, at: int) -> str:
    begun = 1950 + 10 * at
    return f"{town} mayor {at} governed the town of {town} from {begun} to {begun + 10} ."


def played(data: Path) -> dict[str, tuple[Regime, list[tally.Tally]]]:
    vectors = Vectors(CountedWords())
    found = {}
    for regime in regimes(texts.pubmedqa(data), texts.timeqa(data), TINY, seed=1):
        app = App(regime.documents, vectors)
        found[regime.name] = (regime, tally.played(app, regime, lambda: None))
    return found


def test_what_is_promised_never_serves_a_stale_answer(data: Path) -> None:
    found = played(data)
    assert len(found) == 6
    for regime, tallies in found.values():
        by_name = {one.system: one for one in tallies}
        assert all(one.requests == regime.counted for one in tallies)
        for mode in ("recheck", "version/corpus"):
            for kind in ("exact", "with MiniLM"):
                assert by_name[f"stampcache {mode}, {kind}"].stale == 0
            assert by_name[f"stampcache {mode}, exact"].wrong == 0
    _, drift = found["document drift"]
    assert sum(one.stale for one in drift if one.system == "exact") > 0
    _, repeats = found["exact repeat"]
    assert all(one.hits == one.requests for one in repeats if one.system != "no cache")
    _, near = found["near miss"]
    assert all(one.hits == 0 for one in near if one.system.endswith("exact"))


def test_the_same_seed_gives_the_same_steps(data: Path) -> None:
    abstracts, pages = texts.pubmedqa(data), texts.timeqa(data)
    first, again, other = (list(regimes(abstracts, pages, TINY, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_rows_say_which_generation_they_are_compared_with(data: Path) -> None:
    regime, tallies = played(data)["exact repeat"]
    rows = tally.rows(regime, tallies, MADE)
    assert rows[0]["system"] == "no cache"
    assert rows[0]["generation"] == MADE.source
    assert rows[1]["hit rate"] == "100.0% (86.2% to 100.0%)"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who led Bergen from 1950 to 1960?", "From 1950 to 1960, who led Bergen?"),
        ("In 1950, who led Bergen?", "Who led Bergen in 1950?"),
        ("Does it affect sleep?", "Does it influence sleep?"),
        ("Where is Bergen?", "Where's Bergen?"),
    ],
)
def test_rewordings_keep_what_is_asked(question: str, expected: str) -> None:
    made = list(rewordings(Question(question, "meaning", "source")))
    assert expected in [one.text for one in made]
    assert {one.meaning for one in made} == {"meaning"}
    assert all(one.how for one in made)


def test_edits_change_what_they_are_named_after() -> None:
    text = "In 1987 the town had 120 schools . It was the year of the great flood in the valley ."
    assert another_year(text, "") == text.replace("1987", "1984")
    assert another_number(text, "") == text.replace("120", "121")
    other = "A wholly different sentence that stands elsewhere . And more ."
    assert another_sentence(text, other).startswith("A wholly different sentence")


def test_an_inserted_document_is_retrieved(data: Path) -> None:
    abstracts = texts.pubmedqa(data)
    app = App({one.source: one.chunks for one in abstracts}, Vectors(CountedWords()))
    question = abstracts[0].questions[0]
    before = app.answer(question)
    app.write(Library(abstracts).inserted(question, random.Random(1)))
    assert app.answer(question) != before
    app.write(Change("inserted-1", None, "delete"))
    assert app.answer(question) == before


def test_without_data_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["validity", "--quick"])
    assert validity.main() == 0
    assert "no measuring data" in capsys.readouterr().out
