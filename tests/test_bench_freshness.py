"""The benchmark `freshness` on made-up pages, and its judge over real HTTP from a scripted server."""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.freshness import __main__ as freshness
from benchmarks.freshness import facts, judges, path, play, systems, year
from benchmarks.freshness.facts import DAY_S, DAYS, Page
from benchmarks.freshness.play import Tally
from benchmarks.freshness.systems import System
from benchmarks.freshness.year import Asked, Changed, Size, Tick
from stampcache import Freshness

TOWNS = ("Aberdeen", "Bergen", "Cadiz", "Dresden", "Esbjerg", "Florence")
TINY = Size(years=1, requests=300)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A made-up file in the form of TimeQA: mayors that change every ten years from 1950 on."""
    rows = [
        {
            "index": f"/wiki/{town}#P6",
            "questions": [
                [
                    f"Who was the mayor of {town} from {1950 + 10 * at} to {1960 + 10 * at}?",
                    [{"answer": f"{town} mayor {at}"}],
                ]
                for at in range(4)
            ],
        }
        for town in TOWNS
    ]
    (tmp_path / "timeqa").mkdir()
    (tmp_path / "timeqa" / "human_annotated_test.json").write_text(json.dumps(rows))
    return tmp_path


@pytest.fixture
def daily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is done once a day, for tests that play many years."""
    monkeypatch.setattr(year, "WORK_EVERY_S", DAY_S)


@pytest.fixture
def few_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The serving path is looked at, and not measured."""
    monkeypatch.setattr(path, "ENTRIES", 20)
    monkeypatch.setattr(path, "TURN", 20)


def page(*begins: float) -> Page:
    """Return a page whose answer is another one from each of these days on."""
    answers = tuple(f"answer {number}" for number in range(len(begins)))
    return Page("page", "Who is it?", answers, tuple(day * DAY_S for day in begins))


def once_a_day(one: Page, days: int) -> list[year.Step]:
    """Return a request each noon, the changes, and work each midnight."""
    steps: list[year.Step] = [Asked((day + 0.5) * DAY_S, one) for day in range(days)]
    steps += [Changed(at, one) for at in one.changes]
    steps += [Tick(day * DAY_S) for day in range(1, days)]
    return sorted(steps, key=lambda step: step.at)


def played(system: System, one: Page, days: int = 100) -> Tally:
    return play.played(system, [one], once_a_day(one, days), seed=1)


# -- facts -----------------------------------------------------------------------------------------


def test_a_page_is_one_question_whose_answer_changes_at_known_dates(data: Path) -> None:
    halves = facts.timeqa(data)
    assert [len(half) for half in (halves.choosing, halves.reported)] == [3, 3]
    assert not set(halves.choosing) & set(halves.reported)
    first = halves.choosing[0]
    assert first.question == "Who was the mayor of Aberdeen?"
    assert len(first.changes) == 3
    assert first.true_at(0) == "Aberdeen mayor 0"
    assert first.true_at(DAYS * DAY_S) == "Aberdeen mayor 3"
    third = first.begins[2]
    assert [first.true_at(third - 1), first.true_at(third)] == [
        "Aberdeen mayor 1",
        "Aberdeen mayor 2",
    ]
    assert 0.40 < third / (DAYS * DAY_S) - 0.1 < 0.42  # 1970 of 1920 to 2020 is the half


@pytest.mark.parametrize(
    ("question", "undated"),
    [
        ("Where did he work from 2004 to 2005?", "Where did he work?"),
        ("From 2006 to May 2009, who led Bergen?", "Who led Bergen?"),
        ("Who led Bergen in Sep 1942 ?", "Who led Bergen?"),
    ],
)
def test_a_question_loses_its_dates(tmp_path: Path, question: str, undated: str) -> None:
    asked = [[question, [{"answer": "one"}]], ["Who from 1990 to 1991?", [{"answer": "two"}]]]
    (tmp_path / "timeqa").mkdir()
    file = tmp_path / "timeqa" / "human_annotated_test.json"
    for order in (asked, [*asked, ["Who was it in 1999?", [{"answer": ""}]]]):
        file.write_text(json.dumps([{"index": "page", "questions": order}]))
        (found,) = facts.timeqa(tmp_path).choosing
        assert found.question == undated
        assert len(found.answers) == 2


def test_pages_with_one_fact_are_left_out(tmp_path: Path) -> None:
    asked = [[f"Who from {at} to {at + 1}?", [{"answer": "the same"}]] for at in (1990, 1995)]
    (tmp_path / "timeqa").mkdir()
    file = tmp_path / "timeqa" / "human_annotated_test.json"
    file.write_text(json.dumps([{"index": "page", "questions": asked}]))
    assert facts.timeqa(tmp_path).choosing == ()


def test_the_same_seed_gives_the_same_year(data: Path) -> None:
    pages = facts.timeqa(data).reported
    first, again, other = (year.year(pages, 50, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert [step.at for step in first] == sorted(step.at for step in first)


# -- systems ---------------------------------------------------------------------------------------


def test_the_oracle_makes_an_answer_once_per_fact() -> None:
    system = System(name="oracle", ttl_s=None, told=True)
    found = played(system, page(-10, 20, 60))
    assert (found.requests, found.hits, found.stale, found.made) == (100, 97, 0, 3)


def test_a_fixed_lifetime_serves_what_has_changed_until_it_ends() -> None:
    found = played(systems.fixed(30), page(-10, 20))
    assert 0 < found.stale <= 30
    assert found.made in (4, 5)  # each of 30 days, less a share that is drawn per entry
    assert found.hits == found.requests - found.made


def test_a_judge_that_knows_and_is_always_asked_lets_nothing_stale_through() -> None:
    always = Freshness(limit=1e-9, on_path=True, floor_s=DAYS * DAY_S, cap_s=DAYS * DAY_S)
    system = System(name="always", ttl_s=DAYS * DAY_S, freshness=always, judge=systems.right(1.0))
    found = played(system, page(-10, 20, 60))
    assert (found.stale, found.made, found.failed) == (0, 3, 0)
    assert found.asked == 99  # there is nothing to ask about before the first answer


@pytest.mark.parametrize(
    ("judge", "stale"), [(judges.constant(True), True), (judges.constant(False), False)]
)
def test_a_useless_judge_serves_all_or_nothing(judge: systems.Judge, stale: bool) -> None:
    always = Freshness(limit=1e-9, on_path=True, floor_s=DAYS * DAY_S, cap_s=DAYS * DAY_S)
    system = System(name="useless", ttl_s=DAYS * DAY_S, freshness=always, judge=lambda *_: judge)
    found = played(system, page(-10, 20))
    assert (found.stale, found.hits) == ((80, 99) if stale else (0, 0))


def test_refreshed_answers_are_made_off_the_path() -> None:
    patient = Freshness(grace_s=DAY_S, floor_s=30 * DAY_S)
    never = System(
        name="refresh",
        freshness=patient,
        judge=lambda *_: judges.constant(False),
        refreshes=True,
    )
    found = played(never, page(-10, 1_000), days=30)
    assert found.hits == 29
    assert found.made > 1


@pytest.mark.usefixtures("daily")
def test_every_system_plays(data: Path) -> None:
    pages = facts.timeqa(data).reported
    steps = year.year(pages, TINY.requests, seed=1)
    tallies = {one.name: play.played(one, pages, steps, 1) for one in systems.compared()}
    assert {one.requests for one in tallies.values()} == {TINY.requests}
    assert tallies["no cache"].made == TINY.requests
    assert tallies["oracle"].stale == 0
    for name, one in tallies.items():
        row = play.row("stated", System(name=name), [one])
        assert row["system"] == name
        assert one.failed == 0
        if "refresh" not in name:
            assert one.hits + one.made == one.requests


# -- judges ----------------------------------------------------------------------------------------


def prompts_of(one: Page, days: int) -> list[str]:
    """Return the prompts that a judge is given who is asked each day."""
    found: list[str] = []

    def judge(prompt: str) -> str:
        found.append(prompt)
        return judges.said(fresh=True)

    always = Freshness(limit=1e-9, on_path=True)
    played(System(name="kept", freshness=always, judge=lambda *_: judge), one, days)
    return found


def test_a_simulated_judge_reads_its_prompt() -> None:
    first, *_ = prompts_of(page(-10, 1_000), 3)
    case = judges.shown(first)
    assert (case.question, case.answer) == ("Who is it?", "answer 0")
    assert case.age_s == DAY_S
    assert case.per_hour is None


def test_how_often_a_knowing_judge_is_wrong_is_what_is_stated() -> None:
    prompt = prompts_of(page(-10, 1_000), 2)[0]
    judge = judges.Knowing(0.8, lambda *_: True, seed=1)
    right = sum('"fresh": true' in judge(prompt) for _ in range(1_000))
    assert 750 < right < 850  # the draws are those of a seed


def test_a_reckoning_judge_knows_the_figures_alone() -> None:
    prompt = prompts_of(page(-10, 1_000), 2)[0]
    unknown = "unknown: nothing was observed yet"
    assert unknown in prompt
    for told, fresh in (
        (unknown, False),
        ("0.01 per hour: once", True),
        ("1 per hour: ...", False),
    ):
        assert judges.reckoning(prompt.replace(unknown, told)) == judges.said(fresh)


# -- choosing and reporting ------------------------------------------------------------------------


def tallies(*given: tuple[int, int]) -> Sequence[Sequence[Tally]]:
    return [[Tally(requests=100, hits=hits, stale=stale)] for hits, stale in given]


def test_of_those_that_serve_few_stale_answers_the_one_with_most_hits_is_chosen() -> None:
    family = [systems.fixed(days) for days in (1, 7, 30)]
    assert freshness.chosen(family, tallies((40, 0), (60, 3), (90, 9))) is family[1]
    assert freshness.chosen(family, tallies((40, 8), (60, 20), (90, 70))) is family[0]


@pytest.mark.usefixtures("daily")
def test_what_is_chosen_is_reported_on_other_pages(data: Path) -> None:
    rows = freshness.simulated(facts.timeqa(data), TINY, lambda: None)
    groups = [row["group"] for row in rows]
    assert groups.count("stated") == len(systems.compared())
    assert groups.count("chosen") == len(systems.grids())


@pytest.mark.usefixtures("few_hits")
def test_the_serving_path_is_compared_with_itself() -> None:
    rows = path.added(turns=1)
    assert [row["what"] for row in rows] == [
        "exact hit, without",
        "exact hit, without (again)",
        "exact hit, freshness=",
        "exact hit, judge=",
        "exact hit, judge=, on the list",
    ]
    assert rows[0]["of without"] == 1.0


@pytest.mark.usefixtures("few_hits")
def test_without_data_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["freshness", "--quick"])
    assert freshness.main() == 0
    assert "no measuring data" in capsys.readouterr().out


@pytest.mark.usefixtures("daily", "few_hits")
def test_the_file_holds_the_rows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "QUICK", TINY)
    file = tmp_path / "rows.json"
    given = ["freshness", "--quick", "--data", str(data), "--json", str(file)]
    monkeypatch.setattr("sys.argv", given)
    assert freshness.main() == 0
    rows = json.loads(file.read_text())["rows"]
    assert {row["group"] for row in rows} == {"serving path", "stated", "chosen"}


# -- a model behind a server -----------------------------------------------------------------------

SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "schema": {
            "type": "object",
            "properties": {"fresh": {"type": "boolean"}, "reason": {"type": "string"}},
        },
    },
}


def test_a_chat_model_judges_over_http() -> None:
    pytest.importorskip("langchain_openai")
    from benchmarks.freshness import real
    from stampcache.demo.endpoint import Endpoint

    server_of = importlib.import_module("integrations.langchain.tests.scripted_openai")

    changed, same = real.cases([page(-10, 100), page(-10, 1_000)], 2)
    assert [changed.fresh, same.fresh] == [False, True]
    with server_of.scripted_openai() as server:
        endpoint = Endpoint(base_url=server.url, model="scripted")
        judge = real.model(endpoint, real.Form("schema", {"response_format": SCHEMA}))
        said = real.verdict(judge, same, json_mode=False)
        assert (said.fresh, said.reason, said.failure) == (True, "a text", "")
        assert said.judge == "scripted"
        assert said.usage.total > 0
        assert "Who is it?" in server.calls[0]["messages"][0]["content"]

        echoing = real.model(endpoint, real.Form("free text", {}))
        said = real.verdict(echoing, same, json_mode=False)  # it repeats its prompt
        assert (said.fresh, bool(said.failure)) == (False, True)

        row = real.row("scripted", real.forms(local=False)[0], judge, [changed, same], lambda: None)
        assert row['"fresh" of fresh'] == "1 of 1"
        assert row['"fresh" of changed'] == "1 of 1"  # it says so of everything

        server.fail_with = 500
        said = real.verdict(judge, same, json_mode=False)
        assert "500" in said.failure
        assert not said.fresh
        assert len(server.calls) == 5


def test_each_form_is_told_to_the_model() -> None:
    pytest.importorskip("langchain_openai")
    from benchmarks.freshness import real

    assert [form.json_mode for form in real.forms(local=False)] == [False, True]
    assert ["grammar" in form.body for form in real.forms(local=True)] == [True, False, True]
