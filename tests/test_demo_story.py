"""The story of the demo against an application of the test: outcomes, figures, exit codes."""

import io
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from rich.console import Console

from stampcache.adapters.reporting import CacheFields
from stampcache.demo.app import Reply
from stampcache.demo.examples import load_example
from stampcache.demo.play import play
from stampcache.demo.prompt import Prompt
from stampcache.demo.story import (
    ACME,
    GLOBEX,
    STORY,
    Edit,
    Expected,
    Played,
    Question,
    fulfils,
    summary,
)
from stampcache.demo.table import printable, story_table, summary_table
from stampcache.errors import ConfigError, EmbedderError
from stampcache.scope import current_scope

SAVED = {"input_tokens": 400, "output_tokens": 20, "cost": 0.0, "latency_s": 2.0}
TEXTS = {step.source: f"It {step.old}." for step in STORY if isinstance(step, Edit)}


def reply(expected: Expected, text: str = "An answer.") -> Reply:
    """Return the reply that fulfils an expectation."""
    hit = expected in (Expected.EXACT, Expected.SEMANTIC)
    reason = {
        Expected.MISS: "not found",
        Expected.TOLD_APART: "guard saw a difference",
        Expected.EXACT: "same tokens",
        Expected.SEMANTIC: "same question",
        Expected.REMADE: "evidence changed",
    }[expected]
    level = {Expected.EXACT: "exact", Expected.SEMANTIC: "semantic"}.get(expected)
    fields = CacheFields(
        hit=hit,
        level=level,
        similarity=0.98 if hit else None,
        reason=reason,
        entry_id="e" if hit else None,
        saved=SAVED if hit else {},
    )
    return Reply(text, fields)


class ScriptedApp:
    """Answers with the given replies in turn; notes who asked, and what was edited."""

    def __init__(self, replies: Sequence[Reply | Exception]) -> None:
        self._replies: Iterator[Reply | Exception] = iter(replies)
        self.asked: list[str] = []
        self.edits: list[tuple[str, str]] = []

    def ask(self, question: str) -> tuple[str, CacheFields]:
        scope = current_scope()
        self.asked.append(f"{scope.tenant if scope else None}: {question}")
        answer = next(self._replies)
        if isinstance(answer, Exception):
            raise answer
        return answer.text, answer.cache

    def explain(self, question: str) -> str:
        return f"Miss: not found\n  no  exact key: {question}"

    def edit(self, source: str, text: str) -> None:
        self.edits.append((source, text))


def as_told() -> list[Reply]:
    return [reply(step.expected) for step in STORY if isinstance(step, Question)]


def screen() -> Console:
    return Console(file=io.StringIO(), width=200)


def seen(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_story_that_goes_as_told_ends_with_0() -> None:
    app, console = ScriptedApp(as_told()), screen()
    assert play(app, texts=TEXTS, console=console) == 0
    assert {line.partition(":")[0] for line in app.asked} == {ACME, GLOBEX}
    assert app.edits == [("break", "It is deleted.")]
    for word in ("hit rate", "33% (3 of 9", "tokens saved", "1,260", "guard saw a difference"):
        assert word in seen(console)


@pytest.mark.parametrize("broken", range(9))
def test_a_story_of_which_one_step_goes_wrong_ends_with_1(broken: int) -> None:
    replies = as_told()
    hit = replies[broken].cache["hit"]
    replies[broken] = reply(Expected.MISS if hit else Expected.EXACT)
    console = screen()
    assert play(ScriptedApp(replies), texts=TEXTS, console=console) == 1
    assert "expected: " in seen(console)


def test_a_document_that_says_something_else_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="does not say"):
        play(ScriptedApp(as_told()), texts={"break": "Other."}, console=screen())


@pytest.mark.parametrize("expected", Expected)
@pytest.mark.parametrize("given", Expected)
def test_only_what_a_step_says_fulfils_it(expected: Expected, given: Expected) -> None:
    any_miss = expected is Expected.MISS and not reply(given).cache["hit"]
    assert fulfils(reply(given), expected) is (given is expected or any_miss)
    assert not fulfils(reply(given, text=" "), expected)


def test_a_near_question_may_be_told_apart_by_a_guard_or_by_the_verifier() -> None:
    told = reply(Expected.TOLD_APART)
    said = {**told.cache, "reason": "verifier said no"}
    other = msgspec.structs.replace(told, cache=said)
    assert fulfils(other, Expected.TOLD_APART)


def test_the_story_asks_for_all_that_it_promises() -> None:
    expected = [step.expected for step in STORY if isinstance(step, Question)]
    assert set(expected) == set(Expected)
    assert expected.count(Expected.TOLD_APART) == 2
    assert expected[-1] is Expected.EXACT


def test_the_figures_of_a_story() -> None:
    steps = [step for step in STORY if isinstance(step, Question)][:3]
    played = [
        Played(step, reply(step.expected), ms)
        for step, ms in zip(steps, (2000, 10, 30), strict=True)
    ]
    figures = summary(played)
    assert (figures.asked, figures.hits, figures.failed) == (3, 2, 0)
    assert (figures.hit_ms, figures.miss_ms) == (20, 2000)
    assert figures.tokens_saved == 840
    assert figures.seconds_saved == pytest.approx(3.96)


def test_a_story_without_hits_has_no_median_of_hits() -> None:
    figures = summary([])
    assert figures.hit_ms is None
    assert figures.miss_ms is None
    assert summary_table(figures).row_count == 5


def test_no_answer_steers_the_terminal() -> None:
    assert printable("a\x1b[31mb\r\nc") == "a [31mb c"
    nasty = Question("why", ACME, "[bold]\x1b[2J", Expected.MISS)
    console = screen()
    console.print(story_table([Played(nasty, reply(Expected.MISS), 1.0)]))
    assert "[bold]" in seen(console)
    assert "\x1b[2J" not in seen(console)


def typed(*lines: str) -> tuple[ScriptedApp, str, int]:
    """Type lines at the prompt; return the application, the screen and the exit code."""
    replies: list[Reply | Exception] = [reply(Expected.MISS)] * 3
    app, console, rest = ScriptedApp(replies), screen(), iter(lines)

    def read(_shown: str) -> str:
        try:
            return next(rest)
        except StopIteration:
            raise EOFError from None

    code = Prompt(app, texts=TEXTS, console=console, read=read).run()
    return app, seen(console), code


def test_a_person_asks_as_any_tenant_and_sees_why() -> None:
    app, shown, code = typed("Why?", ":tenant globex", "Why?", ":quit", "never read")
    assert app.asked == ["acme: Why?", "globex: Why?"]
    assert "An answer." in shown
    assert "no exact key: Why?" in shown
    assert code == 0


def test_a_person_edits_a_document() -> None:
    app, shown, _ = typed(":topics", ":edit break", "New.", ":edit break", "", ":edit nothing")
    assert app.edits == [("break", "New.")]
    assert 'There is no topic "nothing"' in shown


@pytest.mark.parametrize("line", [":tenant", ":edit", ":unknown x"])
def test_a_command_that_is_none_shows_the_help(line: str) -> None:
    assert typed(line)[1].count(":quit ends") == 2


def test_an_error_is_one_sentence_and_the_prompt_goes_on() -> None:
    app, console = ScriptedApp([EmbedderError("It failed."), reply(Expected.MISS)]), screen()
    lines = iter(["One?", "Two?", ":quit"])
    Prompt(app, texts=TEXTS, console=console, read=lambda _: next(lines)).run()
    assert "It failed." in seen(console)
    assert len(app.asked) == 2


def test_a_framework_without_example_is_refused() -> None:
    with pytest.raises(ConfigError, match="FRAMEWORK is 'haystack'"):
        load_example("haystack")
    with pytest.raises(ConfigError, match=r"examples/langchain_rag\.py is not there"):
        load_example("langchain", folders=())
