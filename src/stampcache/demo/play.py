"""Plays the story against an application, with a table that grows as it goes."""

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.live import Live

import stampcache
from stampcache.demo.app import RagApp, Reply
from stampcache.demo.story import STORY, Edit, Played, Question, Step, summary
from stampcache.demo.table import Row, answers_table, story_table, summary_table, verdict
from stampcache.errors import ConfigError


def play(
    app: RagApp,
    *,
    texts: Mapping[str, str],
    console: Console,
    story: Sequence[Step] = STORY,
) -> int:
    """Play a story and print what happened; return 0, or 1 if a step did not do what it says.

    Args:
        app: what is asked.
        texts: the documents by source, as they are in the index now.
        console: where the tables go.
        story: the steps.

    Raises:
        ConfigError: a document to be edited does not say what the story would change.
    """
    rows: list[Row] = []
    with Live(console=console, auto_refresh=False) as live:
        for step in story:
            live.update(story_table(rows, asking=step.why), refresh=True)
            rows.append(_edited(app, step, texts) if isinstance(step, Edit) else _asked(app, step))
            live.update(story_table(rows), refresh=True)
    played = [row for row in rows if isinstance(row, Played)]
    figures = summary(played)
    console.print("", answers_table(played), summary_table(figures), verdict(figures))
    return 1 if figures.failed else 0


def _asked(app: RagApp, question: Question) -> Played:
    with stampcache.scope(tenant=question.tenant):
        started = time.perf_counter()
        text, cache = app.ask(question.text)
        elapsed_ms = (time.perf_counter() - started) * 1000
    return Played(question, Reply(text, cache), elapsed_ms)


def _edited(app: RagApp, edit: Edit, texts: Mapping[str, str]) -> Edit:
    text = texts.get(edit.source, "")
    if edit.old not in text:
        raise ConfigError(
            f'The document "{edit.source}" does not say "{edit.old}" in this Python; the story '
            "cannot be played."
        )
    app.edit(edit.source, text.replace(edit.old, edit.new))
    return edit
