"""``stampcache duplicates``: questions of a file that are nearly the same."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from msgspec import Struct
from rich.table import Table

from stampcache.calibration import calibration_for
from stampcache.cli.options import AsJson
from stampcache.cli.screen import one_line, screen, write_json
from stampcache.embed import as_embedder, embed_texts
from stampcache.errors import ConfigError, WindowError
from stampcache.model import Vector
from stampcache.ports import Embedder
from stampcache.semantic_hash import Group
from stampcache.semantic_hash import duplicates as grouped

_AT_ONCE = 64
_SHOWN_GROUPS = 50


class _Read(Struct, frozen=True):
    """The questions that an embedder reads, their vectors, and how many it does not."""

    questions: Sequence[str]
    vectors: Vector
    unread: int


class _Line(Struct, frozen=True):
    question: str


def duplicates(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One question a line, or JSONL.")],
    *,
    embedder: Annotated[str, typer.Option(metavar="NAME", help="The embedder.")] = "minilm",
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE", help="From where on two are near; else as it is calibrated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Group the questions of a file that are nearly the same, each near the first of its group.

    A line of JSONL is a text or an object with "question". Near is not same: read a group before you
    merge it.
    """
    questions = list(_questions(file))
    model = as_embedder(embedder)
    cosine = _cosine(model.name, threshold, questions)
    read = _read(model, questions)
    groups = grouped(read.questions, read.vectors, cosine=cosine) if read.questions else []
    groups = sorted(groups, key=lambda one: -len(one.members))
    if as_json:
        write_json(_json(read, groups, cosine))
    else:
        _show(read, groups, cosine)


def _questions(file: Path) -> Iterator[str]:
    """Yield the questions of a file, line by line.

    Raises:
        ConfigError: the file cannot be read, or a line of JSONL holds no question.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as text ({error}); check the path.") from error
    is_jsonl = file.suffix == ".jsonl"
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _from_json(line, f"{file}:{number}") if is_jsonl else line.strip()


def _from_json(line: str, where: str) -> str:
    try:
        found = msgspec.json.decode(line, type=str | _Line)
    except ValueError as error:
        raise ConfigError(f'{where} is no text and no object with "question" ({error}).') from error
    return found if isinstance(found, str) else found.question


def _cosine(name: str, given: float | None, questions: Sequence[str]) -> float:
    if given is not None:
        if not 0 < given <= 1:
            raise ConfigError(f"--threshold is {given}; give a cosine such as 0.95.")
        return given
    known = calibration_for(name)
    if known is None:
        raise ConfigError(f"{name} has no calibration; say --threshold, such as 0.95.")
    lacking = next(filter(None, map(known.lacks, questions)), "")
    if lacking:
        raise ConfigError(
            f"{name} has no calibration for {lacking}, in which some questions are; say "
            "--threshold, such as 0.95."
        )
    return known.threshold


def _read(embedder: Embedder, questions: Sequence[str]) -> _Read:
    """Embed many at once, and one by one where one of them is not read."""
    kept: list[str] = []
    rows: list[Vector] = []
    for at in range(0, len(questions), _AT_ONCE):
        some = questions[at : at + _AT_ONCE]
        try:
            rows += [one.vector for one in embed_texts(embedder, some)]
            kept += some
        except WindowError:
            for question in some:
                try:
                    rows += [one.vector for one in embed_texts(embedder, [question])]
                    kept.append(question)
                except WindowError:
                    continue  # counted below
    vectors = np.stack(rows) if rows else np.empty((0, 1), np.float32)
    return _Read(kept, vectors, len(questions) - len(kept))


def _json(read: _Read, groups: Sequence[Group], cosine: float) -> object:
    return {
        "questions": len(read.questions) + read.unread,
        "unread": read.unread,
        "threshold": cosine,
        "groups": [
            {
                "questions": [read.questions[at] for at in one.members],
                "lowest_similarity": round(one.lowest, 4),
            }
            for one in groups
        ],
    }


def _show(read: _Read, groups: Sequence[Group], cosine: float) -> None:
    table = Table("group", "similarity", "question")
    for number, group in enumerate(groups[:_SHOWN_GROUPS], 1):
        for at in group.members:
            first = at == group.members[0]
            cells = (str(number), f"from {group.lowest:.3f}") if first else ("", "")
            table.add_row(*cells, one_line(read.questions[at]))
    if groups:
        screen().print(table)
    spare = sum(len(one.members) - 1 for one in groups)
    told = (
        f"{len(read.questions):,} questions, {len(groups):,} groups at a cosine of {cosine} or more"
    )
    screen().print(f"{told}; {spare:,} questions repeat another.")
    if len(groups) > _SHOWN_GROUPS:
        screen().print(f"The {_SHOWN_GROUPS} largest groups are shown; --json prints all.")
    if read.unread:
        screen().print(f"{read.unread:,} questions are not read by this embedder, so not compared.")
