"""The judge: within a budget and a deadline, and never an error; whatever fails is "not fresh"."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from stampcache.freshness import Freshness
from stampcache.journal import Verdict
from stampcache.judging.budget import Budget
from stampcache.judging.models import AskModel, Reply, as_model
from stampcache.judging.prompt import language_of, templates
from stampcache.judging.replies import Said, Unreadable, read_reply
from stampcache.judging.waiting import Waiting
from stampcache.model import Usage
from stampcache.ports import Facts

Event: TypeAlias = Callable[[str, int], None]
_LONGEST_FAILURE = 300


class ModelJudge:
    """Asks a language model whether an entry is still fresh; safe for threads and tasks."""

    def __init__(
        self,
        model: AskModel,
        settings: Freshness,
        *,
        kinds: Sequence[str],
        now: Callable[[], float],
        event: Event,
    ) -> None:
        """``kinds`` may be said by the model where nobody has said one; ``event`` counts."""
        self.name = model.name
        self._model = model
        self._templates = templates(settings)
        self._kinds = kinds
        self._now = now
        self._event = event
        self._budget = Budget(settings.calls_per_minute, now)
        self._waiting = Waiting(settings.deadline_s)

    def may_ask(self) -> bool:
        """See `Judge.may_ask`."""
        return self._budget.has()

    def judge(self, facts: Facts) -> Verdict:
        """See `Judge.judge`."""
        refusal = self._refusal(facts)
        if refusal:
            return self._unasked(facts, refusal)
        started = time.perf_counter()
        try:
            prompt = self._prompt(facts)
            reply = self._waiting.call(lambda: self._model.ask(prompt))
        except Exception as error:  # noqa: BLE001 - it becomes a verdict, and is counted
            return self._failed(facts, told(error), time.perf_counter() - started)
        return self._read(facts, reply, time.perf_counter() - started)

    async def ajudge(self, facts: Facts) -> Verdict:
        """See `Judge.ajudge`."""
        refusal = self._refusal(facts)
        if refusal:
            return self._unasked(facts, refusal)
        started = time.perf_counter()
        try:
            prompt = self._prompt(facts)
            if self._model.awaits:
                reply = await self._waiting.awaited(lambda: self._model.aask(prompt))
            else:
                reply = await self._waiting.acall(lambda: self._model.ask(prompt))
        except Exception as error:  # noqa: BLE001 - it becomes a verdict, and is counted
            return self._failed(facts, told(error), time.perf_counter() - started)
        return self._read(facts, reply, time.perf_counter() - started)

    def _refusal(self, facts: Facts) -> str:
        """Say why nobody is asked; empty where a call has been spent for it."""
        entry = facts.entry
        if not entry.question.strip() or not entry.answer.text.strip():
            return "there is no text to judge"
        return "" if self._budget.take() else "the budget of this minute is spent"

    def _prompt(self, facts: Facts) -> str:
        template = self._templates[language_of(facts.entry.question)]
        return template.render(facts, kinds=self._kinds)

    def _read(self, facts: Facts, reply: Reply, seconds: float) -> Verdict:
        self._event("judge.tokens", reply.usage.total)
        entry = facts.entry
        kinds = () if entry.kind else self._kinds
        try:
            said = read_reply(reply.text, kinds=kinds, shown=(entry.question, entry.answer.text))
        except Unreadable as error:
            return self._failed(facts, str(error), seconds, reply.usage)
        self._counted("fresh" if said.fresh else "not_fresh", seconds)
        return self._verdict(facts, said, seconds=seconds, usage=reply.usage)

    def _unasked(self, facts: Facts, failure: str) -> Verdict:
        self._event("judge.unasked", 1)
        return replace(self._verdict(facts, _NOTHING, failure=failure), asked=False)

    def _failed(
        self, facts: Facts, failure: str, seconds: float, usage: Usage | None = None
    ) -> Verdict:
        self._counted("failed", seconds)
        short = failure[:_LONGEST_FAILURE]
        return self._verdict(facts, _NOTHING, failure=short, seconds=seconds, usage=usage)

    def _verdict(
        self,
        facts: Facts,
        said: Said,
        *,
        failure: str = "",
        seconds: float = 0.0,
        usage: Usage | None = None,
    ) -> Verdict:
        return Verdict(
            entry_id=facts.entry.id,
            question=facts.entry.question,
            fresh=said.fresh,
            reason=said.reason.strip(),
            at=self._now(),
            judge=self.name,
            seconds=seconds,
            usage=usage or Usage(),
            failure=failure,
            kind=said.kind,
        )

    def _counted(self, how: str, seconds: float) -> None:
        self._event(f"judge.{how}", 1)
        self._event("judge.ms", round(1_000 * seconds))


_NOTHING = Said(fresh=False, reason="")


def as_judge(
    given: object,
    settings: Freshness,
    *,
    kinds: Sequence[str],
    now: Callable[[], float],
    event: Event,
) -> ModelJudge:
    """Return what a user passes as a judge.

    Raises:
        ConfigError: it is no model, or the template is none.
    """
    model = as_model(given, json_mode=settings.json_mode)
    return ModelJudge(model, settings, kinds=kinds, now=now, event=event)


def told(error: Exception) -> str:
    """Return what failed, in words."""
    if isinstance(error, TimeoutError):
        return "the deadline passed"
    return f"{type(error).__name__}: {error}"
