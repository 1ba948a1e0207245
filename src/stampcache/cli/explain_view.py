"""An explanation on the screen: a tree of the checks, then what else is near the question."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from stampcache.cli.screen import one_line
from stampcache.explain import Explanation
from stampcache.journal import Verdict
from stampcache.model import Candidate, Entry, Scope, Stamps
from stampcache.outcome import Hit, Outcome, Stale
from stampcache.stores.sqlite_survey import StampCount

_CHUNKS_SHOWN = 8
_AS_THE_APPLICATION = (
    "Give --model, --param, --system, --endpoint, --stamp and --embedder as the application does."
)


class Neighbour(Struct, frozen=True):
    """A stored question that is close, and the differences that the guard sees."""

    candidate: Candidate
    guard: tuple[str, ...]


class Twin(Struct, frozen=True):
    """An entry with the very same question at another address."""

    entry: Entry
    same_settings: bool


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the store holds near a question; ``stamps`` are those of its scope."""

    partition: str = ""
    same_settings: int = 0
    all_entries: int = 0
    stamps: Sequence[StampCount] = ()
    neighbours: Sequence[Neighbour] = ()
    compared: bool = False
    problem: str = ""
    twins: Sequence[Twin] = ()


def show(console: Console, explanation: Explanation, around: Surroundings) -> None:
    """Print everything."""
    console.print(_tree(explanation))
    if not around.partition:
        return
    for sentence in _where(explanation.request.scope or Scope(), around):
        console.print(sentence)
    if around.stamps and not around.same_settings:
        console.print(_stamps(around.stamps))
    if around.twins:
        console.print(_twins(around.twins))
    if around.neighbours:
        console.print(_neighbours(explanation.outcome, around.neighbours))


def _tree(explanation: Explanation) -> Tree:
    outcome = explanation.outcome
    tree = Tree(Text(one_line(_headline(outcome), limit=None), style="bold"))
    checks = tree.add("checks")
    for check in explanation.checks:
        mark = Text("ok  " if check.passed else "no  ", style="green" if check.passed else "red")
        at = f" [entry {check.entry_id}]" if check.entry_id else ""
        said = one_line(f"{check.step}{at}: {check.detail}", limit=None)
        checks.add(mark.append(said, style="none"))
    if isinstance(outcome, Hit | Stale):
        entry = tree.add(f"entry {outcome.entry.id}")
        for name, value in _facts(outcome.entry):
            entry.add(f"{name}: {one_line(value)}")
        if explanation.verdict is not None:
            entry.add(f"judged: {one_line(_judged(explanation.verdict), limit=None)}")
        moved = ", ".join(part.value for part in explanation.moved)
        entry.add(f"moved in its signature: {moved or 'nothing that was compared'}")
    return tree


def _headline(outcome: Outcome) -> str:
    kind = type(outcome).__name__
    if isinstance(outcome, Hit):
        return f"{kind} ({outcome.level.value}, {outcome.similarity:.4f}): {outcome.reason.value}"
    detail = f" ({outcome.detail})" if outcome.detail else ""
    return f"{kind}: {outcome.reason.value}{detail}"


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "question", entry.question
    yield "answer", entry.answer.text
    yield "signature", str(entry.signature)
    yield "made", _instant(entry.created_at)
    if entry.kind:
        yield "kind of data", entry.kind
    if entry.answer.revision:
        yield "served by", entry.answer.revision
    if entry.invalidated:
        yield "invalidated", entry.invalidated
    yield "expires", "never" if entry.expires_at is None else _instant(entry.expires_at)
    if entry.doubtful_at is not None:
        yield "may have changed from", _instant(entry.doubtful_at)
    if entry.confirmed_at is not None:
        yield "confirmed", _instant(entry.confirmed_at)
    yield "stamps", _versions(entry.stamps)
    if entry.evidence is None:
        yield "evidence", "unknown"
        return
    yield "evidence", f"{len(entry.evidence)} chunks"
    for chunk in entry.evidence[:_CHUNKS_SHOWN]:
        cited = (chunk.corpus or "-", chunk.source or "-", chunk.chunk or "-", chunk.digest)
        yield "chunk", " ".join(cited)


def _judged(verdict: Verdict) -> str:
    by = f" by {verdict.judge}" if verdict.judge else ""
    spent = f" ({verdict.seconds:.1f} s, {verdict.usage.total:,} tokens)"
    return f"{_instant(verdict.at)}{by}, {verdict}{spent}"


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _versions(stamps: Stamps) -> str:
    known = [f"{n}={v}" for n in Stamps.__struct_fields__ if (v := getattr(stamps, n))]
    return ", ".join(known) or "none known"


def _where(scope: Scope, around: Surroundings) -> Iterator[str]:
    """Yield sentences that say whether this question can see any entry at all."""
    who = one_line(
        f"tenant {scope.tenant!r}, namespace {scope.namespace!r}, audience {scope.audience!r}"
    )
    in_scope = sum(one.entries for one in around.stamps)
    if around.same_settings:
        yield f"{around.same_settings:,} of the {in_scope:,} entries of {who} have these settings."
    elif in_scope:
        yield (
            f"None of the {in_scope:,} entries of {who} has these settings, so none is visible to "
            f"this question. {_AS_THE_APPLICATION}"
        )
    else:
        yield (
            f"There is no entry of {who}; the store has {around.all_entries:,} of other scopes."
            if around.all_entries
            else "The store is empty."
        )
    if around.problem:
        yield f"Close questions were not looked for: {one_line(around.problem, limit=None)}"
    elif not around.compared:
        yield "Close questions were not looked for: say --embedder as the application has it."
    elif around.same_settings and not around.neighbours:
        yield "No entry with these settings has a vector of this embedder."


def _stamps(counts: Sequence[StampCount]) -> Table:
    table = Table("entries", "stamps", title="what the entries of this scope were made with")
    table.title_justify = "left"
    for one in counts:
        table.add_row(f"{one.entries:,}", one_line(_versions(one.stamps)))
    return table


def _twins(twins: Sequence[Twin]) -> Table:
    table = Table("entry", "why it is not the same", "stamps", "signature", title_justify="left")
    table.title = "the very same question, stored at another address"
    for twin in twins:
        why = "another prompt, history or tokenizer" if twin.same_settings else "other settings"
        entry = twin.entry
        table.add_row(entry.id, why, one_line(_versions(entry.stamps)), str(entry.signature))
    return table


def _neighbours(outcome: Outcome, neighbours: Sequence[Neighbour]) -> Table:
    served = outcome.entry_id if isinstance(outcome, Hit) else ""
    table = Table("cosine", "stored question", "the guard saw", "entry", "signature")
    table.title, table.title_justify = "stored questions by closeness", "left"
    for one in neighbours:
        entry = one.candidate.entry
        seen = "; ".join(one.guard) or "nothing"
        if one.candidate.reported_bad:
            seen += " (pair reported as a wrong hit)"
        name = f"{entry.id} (served)" if entry.id == served else entry.id
        cells = (f"{one.candidate.similarity:.4f}", one_line(entry.question), one_line(seen))
        table.add_row(*cells, name, str(entry.signature))
    return table
