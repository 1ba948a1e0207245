"""How the demo looks on a screen: one row per step as it happens, then the figures."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from stampcache.demo.story import Edit, Played, Summary

Row = Played | Edit


def printable(text: str) -> str:
    """Return a text as one line that cannot steer a terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def story_table(rows: Sequence[Row], *, asking: str = "") -> Table:
    """Return the story so far; ``asking`` is the step that is under way."""
    table = Table(title="the story", title_justify="left")
    for name in ("step", "tenant", "question", "outcome", "level"):
        table.add_column(name, overflow="fold")
    for name in ("similarity", "reason", "ms", "tokens saved"):
        table.add_column(name, justify="left" if name == "reason" else "right", overflow="fold")
    for row in rows:
        cells = _played(row) if isinstance(row, Played) else _edited(row)
        table.add_row(*cells)
    if asking:
        table.add_row(Text(asking, style="dim"), "", Text("...", style="dim"))
    return table


def _played(row: Played) -> list[Text]:
    cache = row.reply.cache
    outcome = Text("hit" if row.hit else "no hit", style="green" if row.hit else "yellow")
    if not row.kept:
        outcome = Text(
            f"{outcome.plain}, expected: {row.question.expected.value}", style="bold red"
        )
    similarity = cache["similarity"]
    return [
        Text(row.question.why),
        Text(row.question.tenant),
        Text(printable(row.question.text)),
        outcome,
        Text(cache["level"] or "-"),
        Text("-" if similarity is None else f"{similarity:.4f}"),
        Text(printable(cache["reason"])),
        Text(f"{row.elapsed_ms:,.0f}"),
        Text(f"{row.tokens_saved:,}" if row.hit else "-"),
    ]


def _edited(row: Edit) -> list[Text]:
    said = f'in "{row.source}": "{row.old}" is now "{row.new}"'
    return [Text(row.why, style="cyan"), Text("-"), Text(said, style="cyan")]


def answers_table(played: Sequence[Played]) -> Table:
    """Return the answers that the model made, each once."""
    table = Table("question", "answer", title="what the model said", title_justify="left")
    for one in played:
        if not one.hit:
            table.add_row(Text(printable(one.question.text)), Text(printable(one.reply.text)))
    return table


def summary_table(figures: Summary) -> Table:
    """Return the figures of a story."""
    table = Table(title="summary", title_justify="left", show_header=False)
    rate = figures.hits / figures.asked if figures.asked else 0.0
    table.add_row("hit rate", f"{rate:.0%} ({figures.hits} of {figures.asked} questions)")
    table.add_row("tokens saved", f"{figures.tokens_saved:,}")
    table.add_row("time saved", f"{figures.seconds_saved:,.1f} s")
    table.add_row("p50 of hits", _ms(figures.hit_ms))
    table.add_row("p50 of misses", _ms(figures.miss_ms))
    return table


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"


def verdict(figures: Summary) -> Text:
    """Return whether the story went as it says."""
    if not figures.failed:
        return Text("Every step did what it says.", style="bold green")
    steps = "step" if figures.failed == 1 else "steps"
    return Text(f"{figures.failed} {steps} did not do what the story says.", style="bold red")
