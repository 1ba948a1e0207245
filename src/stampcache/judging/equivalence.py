"""The judge of pairs: are two questions the same? Whatever fails is "not the same", and says so.

A batch of pairs costs one call. Between them stand two pairs whose verdicts are known, in the form of
all others: a judge that gets one of them wrong (it says "same" to everything, or a question talked it
into that) is believed in nothing. Pairs are named by numbers that nobody can guess, so that a question
cannot hold a verdict on itself.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from stampcache.judging.budget import Budget
from stampcache.judging.judge import Event, told
from stampcache.judging.models import AskModel, Reply
from stampcache.judging.prompt import LANGUAGES, Template, language_of, shipped
from stampcache.judging.reading import Unreadable
from stampcache.judging.sameness import read_sameness
from stampcache.judging.waiting import Waiting
from stampcache.ports import Sameness

MOST_PAIRS = 10
"""So many pairs go into one call."""
LONGEST_QUESTION = 4_000
"""A longer question is not judged: what is cut off might be the difference."""
_LONGEST_FAILURE = 300
_LOWEST, _HIGHEST = 1_000, 9_999
_WORDS = {"en": ("pair", "first", "second", "end"), "zh": ("编号", "第一问", "第二问", "结束")}

Pair: TypeAlias = tuple[str, str]

_SAME: Mapping[str, Sequence[Pair]] = {
    "en": (
        ("How many days does a leap year have?", "What number of days is there in a leap year?"),
        ("Which city is the capital of Portugal?", "What is Portugal's capital city?"),
        ("Who wrote the novel Emma?", "Which author is the novel Emma by?"),
    ),
    "zh": (
        ("闰年有多少天？", "一个闰年一共有几天？"),
        ("葡萄牙的首都是哪座城市？", "葡萄牙的首都在哪里？"),
        ("《红楼梦》的作者是谁？", "《红楼梦》是谁写的？"),
    ),
}
_DIFFERENT: Mapping[str, Sequence[Pair]] = {
    "en": (
        ("How many days does a leap year have?", "How many days does June have?"),
        ("Which city is the capital of Portugal?", "Which city is the capital of Norway?"),
        ("Who wrote the novel Emma?", "When was the novel Emma published?"),
    ),
    "zh": (
        ("闰年有多少天？", "六月有多少天？"),
        ("葡萄牙的首都是哪座城市？", "挪威的首都是哪座城市？"),
        ("《红楼梦》的作者是谁？", "《红楼梦》是什么时候写成的？"),
    ),
}


class PairTemplate(Template):
    """The prompt about pairs: ``{pairs}`` are those asked about, ``{mark}`` begins each line around them.

    Raises:
        ConfigError: a field is missing, or is none of ours.
    """

    fields = frozenset({"mark", "pairs"})
    needed = frozenset({"mark", "pairs"})


class _Sheet(Struct, frozen=True):
    """What one call is about: numbers of the pairs in their order, and the verdicts that are known."""

    prompt: str
    numbers: Sequence[int]
    known: Mapping[int, bool]


class PairJudge:
    """Asks a language model whether questions are the same; safe for threads and tasks.

    ``deadline_s`` is for each call, and a call is about at most `MOST_PAIRS` pairs. ``template`` is the
    path of a prompt of your own. ``event`` counts: ``pairs.same``, ``pairs.different``, ``pairs.failed``,
    ``pairs.unasked`` (pairs), ``pairs.calls``, ``pairs.tokens`` and ``pairs.ms``.

    Raises:
        ConfigError: the template cannot be read, or is none.
    """

    def __init__(
        self,
        model: AskModel,
        *,
        deadline_s: float,
        calls_per_minute: int,
        now: Callable[[], float],
        event: Event,
        template: str | Path | None = None,
    ) -> None:
        self.name = model.name
        self._model = model
        self._templates = _templates(template)
        self._event = event
        self._budget = Budget(calls_per_minute, now)
        self._waiting = Waiting(deadline_s)

    def may_ask(self) -> bool:
        """See `EquivalenceJudge.may_ask`."""
        return self._budget.has()

    def compare(self, pairs: Sequence[Pair]) -> Sequence[Sameness]:
        """See `EquivalenceJudge.compare`."""
        found = [one for batch in _batches(pairs) for one in self._compare(batch)]
        return self._in_order(pairs, found)

    async def acompare(self, pairs: Sequence[Pair]) -> Sequence[Sameness]:
        """See `EquivalenceJudge.compare`."""
        found = [one for batch in _batches(pairs) for one in await self._acompare(batch)]
        return self._in_order(pairs, found)

    def _compare(self, batch: Sequence[Pair]) -> Sequence[Sameness]:
        if not self._budget.take():
            return self._unasked(batch)
        started = time.perf_counter()
        try:
            sheet = self._sheet(batch)
            reply = self._waiting.call(lambda: self._model.ask(sheet.prompt))
            found = self._read(sheet, reply)
        except Exception as error:  # noqa: BLE001 - it becomes a failure of each pair, and is counted
            found = _failed(batch, error)
        return self._counted(found, started)

    async def _acompare(self, batch: Sequence[Pair]) -> Sequence[Sameness]:
        if not self._budget.take():
            return self._unasked(batch)
        started = time.perf_counter()
        try:
            sheet = self._sheet(batch)
            if self._model.awaits:
                reply = await self._waiting.awaited(lambda: self._model.aask(sheet.prompt))
            else:
                reply = await self._waiting.acall(lambda: self._model.ask(sheet.prompt))
            found = self._read(sheet, reply)
        except Exception as error:  # noqa: BLE001 - it becomes a failure of each pair, and is counted
            found = _failed(batch, error)
        return self._counted(found, started)

    def _sheet(self, pairs: Sequence[Pair]) -> _Sheet:
        language = language_of("".join(one for pair in pairs for one in pair))
        return _sheet(self._templates[language], language, pairs)

    def _read(self, sheet: _Sheet, reply: Reply) -> Sequence[Sameness]:
        self._event("pairs.tokens", reply.usage.total)
        numbers = [*sheet.numbers, *sheet.known]
        found = read_sameness(reply.text, numbers, shown=[sheet.prompt])
        for number, same in sheet.known.items():
            _check_known(found[number], same)
        return [found[number] for number in sheet.numbers]

    def _counted(self, found: Sequence[Sameness], started: float) -> Sequence[Sameness]:
        self._event("pairs.calls", 1)
        self._event("pairs.ms", round(1_000 * (time.perf_counter() - started)))
        for one in found:
            how = "failed" if one.failure else "same" if one.same else "different"
            self._event(f"pairs.{how}", 1)
        return found

    def _unasked(self, pairs: Sequence[Pair]) -> Sequence[Sameness]:
        self._event("pairs.unasked", len(pairs))
        return [_none("the budget of this minute is spent") for _ in pairs]

    def _in_order(self, pairs: Sequence[Pair], found: Sequence[Sameness]) -> Sequence[Sameness]:
        """Return one result for each pair, of which nobody was asked about the long ones."""
        of_short = iter(found)
        self._event("pairs.failed", len(pairs) - len(found))
        return [next(of_short) if _is_short(pair) else _TOO_LONG for pair in pairs]


def _templates(given: str | Path | None) -> Mapping[str, Template]:
    if given:
        return dict.fromkeys(LANGUAGES, PairTemplate.read(given))
    return {one: shipped(f"equivalence.{one}.txt", PairTemplate) for one in LANGUAGES}


def _sheet(template: Template, language: str, pairs: Sequence[Pair]) -> _Sheet:
    """Write down pairs among two whose verdicts are known, in an order that nobody can guess."""
    random = secrets.SystemRandom()
    numbers = random.sample(range(_LOWEST, _HIGHEST + 1), len(pairs) + 2)
    known = {numbers[-2]: True, numbers[-1]: False}
    controls = [random.choice(_SAME[language]), random.choice(_DIFFERENT[language])]
    numbered = list(zip(numbers, [*pairs, *controls], strict=True))
    random.shuffle(numbered)
    mark = f"=== {secrets.token_hex(6)}"
    fields = {"mark": mark, "pairs": _written(mark, language, numbered)}
    return _Sheet(template.fill(fields), numbers[:-2], known)


def _written(mark: str, language: str, numbered: Sequence[tuple[int, Pair]]) -> str:
    pair, first, second, end = _WORDS[language]
    lines: list[str] = []
    for number, (asked, stored) in numbered:
        lines += [f"{mark} {pair} {number}, {first}", asked, f"{mark} {pair} {number}, {second}"]
        lines.append(stored)
    return "\n".join([*lines, f"{mark} {end}"])


def _batches(pairs: Sequence[Pair]) -> Sequence[Sequence[Pair]]:
    short = [pair for pair in pairs if _is_short(pair)]
    return [short[at : at + MOST_PAIRS] for at in range(0, len(short), MOST_PAIRS)]


def _is_short(pair: Pair) -> bool:
    return all(len(question) <= LONGEST_QUESTION for question in pair)


def _check_known(found: Sameness, same: bool) -> None:
    """Refuse the whole reply of a judge that is wrong about a pair whose verdict is known."""
    if found.failure:
        raise Unreadable(f"of a pair whose verdict is known: {found.failure}")
    if found.same is not same:
        called, are = ("different", "the same") if same else ("the same", "not")
        raise Unreadable(f"the judge called two questions {called} that are {are}")


def _failed(pairs: Sequence[Pair], error: Exception) -> Sequence[Sameness]:
    failure = str(error) if isinstance(error, Unreadable) else told(error)
    return [_none(failure[:_LONGEST_FAILURE])] * len(pairs)


def _none(failure: str) -> Sameness:
    return Sameness(False, "", failure)


_TOO_LONG = _none("a question is too long to be compared as a whole")
