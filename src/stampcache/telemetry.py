"""What happened, as counters: outcomes by reason, updates, and every failure that was swallowed.

Counters are kept per scope (the latest 1,024) and in total. A tenant's view holds that tenant's
numbers only, so that nobody can tell from it what others ask.
"""

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Set
from os import getpid

from msgspec import Struct

from stampcache.model import Entry, Level, Usage
from stampcache.outcome import Hit, Outcome, Stale, Stored, Update
from stampcache.ports import Lag

LOGGER = logging.getLogger("stampcache")
_SCOPES_KEPT = 1_024
_CONFIRMED_KEPT = 10_000


class JudgeStats(Struct, frozen=True, kw_only=True):
    """Whether a judge earns its keep.

    ``fresh``, ``not_fresh`` and ``failed`` are what its calls came to; ``unasked`` were refused by the
    budget. ``tokens`` and ``seconds`` were spent on it. ``saved`` are answers that it confirmed and that
    were asked for after that, once for each time: at most so many would have been made anew without it.
    """

    fresh: int = 0
    not_fresh: int = 0
    failed: int = 0
    unasked: int = 0
    tokens: int = 0
    seconds: float = 0.0
    saved: int = 0
    requests: int = 0

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return self.fresh + self.not_fresh + self.failed

    @property
    def refusals(self) -> int:
        """How often that kept an answer from being served again: failures are refusals."""
        return self.not_fresh + self.failed

    @property
    def calls_per_1000(self) -> float:
        """Calls per 1,000 requests; 0 before the first request."""
        return 1_000 * self.calls / self.requests if self.requests else 0.0


class Stats(Struct, frozen=True, kw_only=True):
    """Figures of one scope, or of everything. Tokens and seconds are those that hits saved.

    ``shared`` are requests that got what an equal one, which was under way, was given.
    ``made_tokens`` are those of the answers that were made, stored or not: input and output, as far as
    providers told. ``provider_cached_tokens`` are those among their input that a provider had in its own
    prefix cache; ``None`` where no provider told of any answer. ``judge`` is what was spent on a judge,
    which is asked for all scopes together: of one scope only what it saved there is known. ``lag`` is how
    old what this process served was, where a store is shared by processes that follow it; for all
    scopes together only. ``entries`` is 0 where the store is away (``error.stats`` counts that).
    """

    entries: int
    requests: int
    exact_hits: int
    semantic_hits: int
    stale: int
    misses: int
    shared: int
    saved_tokens: int
    saved_s: float
    made_tokens: int
    provider_cached_tokens: int | None
    counters: Mapping[str, int]
    judge: JudgeStats = JudgeStats()
    lag: Lag | None = None

    @property
    def hits(self) -> int:
        """Hits at both levels."""
        return self.exact_hits + self.semantic_hits

    @property
    def hit_rate(self) -> float:
        """Hits over requests; 0 before the first request."""
        return self.hits / self.requests if self.requests else 0.0


class Counters:
    """Thread-safe counts by name. Names of outcomes are ``hit.exact``, ``miss.not_found``, ..."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a stream may be forgotten, and so counted, at any point
        self._scopes: OrderedDict[str, Counter[str]] = OrderedDict()
        self._latest: str | None = None  # the scope at the end of the order
        self._retired: Counter[str] = Counter()
        self._saved: Counter[str] = Counter()
        self._confirmed: OrderedDict[str, float | None] = OrderedDict()
        self._pid = getpid()

    def outcome(self, outcome: Outcome, scope: str) -> None:
        """Count one lookup."""
        if isinstance(outcome, Hit):
            made = outcome.entry.answer
            usage, milliseconds = made.usage, int(made.latency_s * 1000)
            tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            with self._lock:
                latest = scope == self._latest
                counts = self._scopes[scope] if latest else self._counts(scope)
                counts["hit.exact" if outcome.level is Level.EXACT else "hit.semantic"] += 1
                if tokens:
                    counts["saved.tokens"] += tokens
                if milliseconds:
                    counts["saved.ms"] += milliseconds
                if outcome.entry.confirmed_at is not None and self._is_saved(outcome.entry):
                    counts["judge.saved"] += 1
        elif isinstance(outcome, Stale):
            self._add(f"stale.{outcome.reason.name.lower()}", scope)
        else:
            self._add(f"miss.{outcome.reason.name.lower()}", scope)

    def _is_saved(self, entry: Entry) -> bool:
        """Tell whether an answer is asked for the first time since a judge confirmed it.

        Without the judge it would have been made anew then, once: later hits would be hits all the same.
        """
        counted_at = self._confirmed.get(entry.id)
        self._confirmed[entry.id] = entry.confirmed_at
        if len(self._confirmed) > _CONFIRMED_KEPT:
            self._confirmed.popitem(last=False)
        return counted_at != entry.confirmed_at

    def followed(self, scope: str) -> None:
        """Count a request that got what an equal one was given."""
        self._add("shared", scope)

    def update(self, update: Update, scope: str) -> None:
        """Count one update."""
        if isinstance(update, Stored):
            self._add("stored", scope)
            if update.evicted:
                self._add("evicted", "", update.evicted)
        else:
            self._add(f"refused.{update.reason.name.lower()}", scope)

    def made(self, usage: Usage, scope: str) -> None:
        """Count what making an answer took, as far as its provider told: unknown is not zero."""
        told = (
            ("made.input_tokens", usage.input_tokens),
            ("made.output_tokens", usage.output_tokens),
            ("made.cached_tokens", usage.cached_tokens),
        )
        for name, tokens in told:
            if tokens is not None:
                self._add(name, scope, tokens)

    def note(self, what: str, error: Exception) -> None:
        """Count and log a failure that the application does not see."""
        self._add(f"error.{what}", "")
        LOGGER.warning("stampcache went on without the cache (%s): %s", what, error)

    def event(self, name: str, count: int = 1) -> None:
        """Count something else that happened, in total only."""
        if count:
            self._add(name, "", count)

    def of(self, scope: str | None) -> Mapping[str, int]:
        """Return the counts of one scope digest, or of everything."""
        with self._lock:
            return self._total() if scope is None else dict(self._scopes.get(scope, {}))

    def forget(self, others: Set[str]) -> None:
        """Keep the counts of these scope digests apart; of all other scopes only a sum is kept."""
        with self._lock:
            for scope in [one for one in self._scopes if one and one not in others]:
                self._retired.update(self._scopes.pop(scope))
            self._latest = None

    def take_unsaved(self) -> Mapping[str, int]:
        """Return what was counted since the last call, for a store's lasting counters."""
        if getpid() != self._pid:
            self._begin_anew()
        with self._lock:
            total, before = self._total(), self._saved
            self._saved = Counter(total)
            return {
                name: count - before[name]
                for name, count in total.items()
                if name not in before or count != before[name]  # a zero that was told is kept, too
            }

    def give_back(self, unsaved: Mapping[str, int]) -> None:
        """Count again as unsaved what could not be saved."""
        with self._lock:
            self._saved.subtract(unsaved)
            for name in [name for name in unsaved if not self._saved[name]]:
                del self._saved[name]

    def _begin_anew(self) -> None:
        """Start in a forked child: what its parent counted, the parent saves.

        A hit does not look for it, as asking for the process costs a quarter of counting.
        """
        self._lock, self._saved, self._pid = threading.RLock(), self._total(), getpid()

    def _add(self, name: str, scope: str, count: int = 1) -> None:
        if getpid() != self._pid:
            self._begin_anew()
        with self._lock:
            self._counts(scope)[name] += count

    def _total(self) -> Counter[str]:
        total = Counter(self._retired)
        for counts in list(self._scopes.values()):
            total.update(counts)
        return total

    def _counts(self, scope: str) -> Counter[str]:
        """Return the counts of a scope; of those over the bound, longest not counted, a sum is kept."""
        if scope == self._latest:
            return self._scopes[scope]
        counts = self._scopes.setdefault(scope, Counter())
        self._scopes.move_to_end(scope)
        self._latest = scope
        if len(self._scopes) > _SCOPES_KEPT:
            self._retired.update(self._scopes.popitem(last=False)[1])
        return counts


def summarize(counts: Mapping[str, int], entries: int) -> Stats:
    """Return counts as figures."""
    stale = sum(count for name, count in counts.items() if name.startswith("stale."))
    misses = sum(count for name, count in counts.items() if name.startswith("miss."))
    shared = counts.get("shared", 0)
    exact, semantic = counts.get("hit.exact", 0), counts.get("hit.semantic", 0)
    requests = exact + semantic + stale + misses + shared
    return Stats(
        entries=entries,
        requests=requests,
        exact_hits=exact,
        semantic_hits=semantic,
        stale=stale,
        misses=misses,
        shared=shared,
        saved_tokens=counts.get("saved.tokens", 0),
        saved_s=counts.get("saved.ms", 0) / 1000,
        made_tokens=counts.get("made.input_tokens", 0) + counts.get("made.output_tokens", 0),
        provider_cached_tokens=counts.get("made.cached_tokens"),
        counters=dict(sorted(counts.items())),
        judge=_judged(counts, requests),
    )


def _judged(counts: Mapping[str, int], requests: int) -> JudgeStats:
    named = ("fresh", "not_fresh", "failed", "unasked", "tokens", "saved")
    spent = {name: counts.get(f"judge.{name}", 0) for name in named}
    return JudgeStats(**spent, seconds=counts.get("judge.ms", 0) / 1000, requests=requests)
