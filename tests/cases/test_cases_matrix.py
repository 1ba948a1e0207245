"""The matrix in the docs is what the tests run, and no number is missing."""

import re
from pathlib import Path

import pytest

from benchmarks.cases import __main__ as program
from benchmarks.cases import matrix
from benchmarks.cases.known import KNOWN
from benchmarks.cases.rig import Case, Rig
from benchmarks.cases.rigs.peers import PEERS, MemoryRig
from benchmarks.cases.running import Result, run
from benchmarks.cases.seams import SEAMS
from benchmarks.cases.suite import CASES
from benchmarks.cases.words import Verdict

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cases.md"
NUMBERS = {
    "A": "1 2 3 6 9 12 14 16 18 19 20 21 22 25",
    "B": "1 2 3 7 8 9 11 12 13",
    "C": "1 2 3 4 5 8 10 11 13",
    "D": "1 3 4 5 7 8",
    "E": "1 2 3 4 6 7 8 10 11 13 14",
    "F": "1 2 3 5 6 9 11 12 13 15 16 17",
    "G": "2 4 5 8",
    "H": "1 2 3 4 6 7 10 11 12 14 15",
    "I": "1 2 3 4 6 7 8",
    "J": "1 3 4 6 7 8 10 11 13 15",
    "K": "1 2 3 5 6",
    "L": "1 2 6",
    "M": "1 2 4 7 8",
    "N": "1 3 4 5 6",
    "O": "6 7 8",
    "P": "3 4 5 7 9",
}


def test_every_number_has_a_check() -> None:
    written = [one for number in CASES for one in re.findall(r"[A-P]\d+", number)]
    assert set(written) == {
        letter + one for letter, all_ in NUMBERS.items() for one in all_.split()
    }


def test_every_case_runs_at_some_seam() -> None:
    idle = [number for number, case in CASES.items() if all(case.lack(seam) for seam in SEAMS)]
    assert idle == []


def test_the_page_is_what_the_tests_run() -> None:
    assert PAGE.read_text(encoding="utf-8") == matrix.page(SEAMS, KNOWN), (
        "run python -m benchmarks.cases --markdown docs/reference/cases.md"
    )


def test_known_faults_are_of_cells_that_are_asked() -> None:
    names = {seam.name: seam for seam in SEAMS}
    assert all(CASES[number].lack(names[name]) is None for number, name in KNOWN)


def test_reasons_are_sentences() -> None:
    for seam in SEAMS:
        assert all(lack.why and lack.why[-1] not in ".!" for lack in seam.lacks.values())


def test_a_run_tells_whether_ours_does_otherwise_than_the_matrix() -> None:
    held, failed = Result(Verdict.HOLDS), Result(Verdict.FAILS, "it is wrong")
    ran = {"O7": {"Cache": held, "another": failed}}
    assert not program.differs(ran, ["Cache"])
    assert program.differs({"O7": {"Cache": failed}}, ["Cache"])
    assert [row["another"] for row in program.rows(ran)] == ["FAIL: it is wrong"]


# -- the program -----------------------------------------------------------------------------------


def test_unknown_caches_are_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["cases", "--against", "InMemoryCache,NoSuchCache"])
    assert program.main() == 2
    [sentence] = capsys.readouterr().err.splitlines()
    assert sentence.startswith("There is no cache named NoSuchCache here; known are InMemoryCache")


def test_a_cache_whose_package_is_absent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cases.rigs.peers.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="SQLiteCache cannot be used: langchain_community"):
        program.compared("SQLiteCache")
    assert program.compared(None) == [MemoryRig]


def test_names_are_those_of_the_classes() -> None:
    assert list(PEERS)[:2] == ["InMemoryCache", "SQLiteCache"]
    assert [rig.name for rig in program.compared(" InMemoryCache ,")] == ["InMemoryCache"]


def case(check: object) -> Case:
    return Case("Z1", "a title", (), check)  # type: ignore[arg-type]


def never_ends(rig: Rig) -> None:
    import threading

    threading.Event().wait(5)


def crashes(rig: Rig) -> None:
    raise KeyError("somewhere")


def does_not_hold(rig: Rig) -> None:
    assert rig.name == "another name"


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (never_ends, "no end after 0 s"),
        (crashes, "KeyError: 'somewhere'"),
        (does_not_hold, "another name"),
    ],
)
def test_hangs_and_crashes_are_failures(check: object, why: str) -> None:
    result = run(case(check), MemoryRig, MemoryRig, timeout_s=0.2)
    assert (result.verdict, result.cell) == (Verdict.FAILS, "FAIL")
    assert why in result.why


def test_what_holds_passes_and_what_is_lacking_is_not_asked() -> None:
    held = run(CASES["O7"], MemoryRig, MemoryRig, timeout_s=30)
    assert (held.verdict, held.why) == (Verdict.HOLDS, "")
    unasked = run(CASES["P3"], MemoryRig, MemoryRig, timeout_s=30)
    assert (unasked.cell, unasked.why) == ("n/a", "is told nothing for one request")
