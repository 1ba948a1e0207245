"""``stampcache stats``: what a store holds, and what it served so far."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from stampcache.cli.options import AsJson, Url
from stampcache.cli.screen import bar, one_line, screen, size, write_json
from stampcache.cli.target import existing_file, existing_store
from stampcache.model import Reason
from stampcache.ports import StoreStats
from stampcache.stores.sqlite_survey import survey
from stampcache.stores.urls import is_redis
from stampcache.telemetry import JudgeStats, Stats, summarize

_SAVED_EVERY = "Each process adds what it counted about every 30 seconds, and when it closes."


class Figures(Struct, frozen=True):
    """Everything that the command shows."""

    url: str
    file_bytes: int | None
    sizes: StoreStats
    served: Stats

    def group(self, prefix: str) -> dict[str, int]:
        """Return the counters of one group (``miss``, ``stale``, ...), largest first."""
        start = f"{prefix}."
        found = {
            name.removeprefix(start): count
            for name, count in self.served.counters.items()
            if name.startswith(start)
        }
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def stats(url: Url, *, json: AsJson = False) -> None:
    """Show what a store holds, what it served, and why it did not serve the rest."""
    figures = _read(url)
    if json:
        write_json(_as_json(figures))
        return
    console = screen()
    _show_sizes(console, figures)
    _show_outcomes(console, figures)
    unserved = {**figures.group("miss"), **figures.group("stale")}
    _show_group(console, "not served, by reason", _phrased(unserved))
    _show_group(console, "not stored, by reason", _phrased(figures.group("refused")))
    _show_group(console, "watched corpora", figures.group("watch"))
    _show_judge(console, served=figures.served)
    _show_group(console, "failures", figures.group("error"))
    console.print(_SAVED_EVERY, style="dim")


def _read(url: str) -> Figures:
    store = existing_store(url)
    try:
        sizes = store.stats()
        served = summarize(store.tallies(), sizes.entries)
    finally:
        store.close()
    if is_redis(url):
        return Figures(url, None, sizes, served)
    with survey(existing_file(url)) as seen:
        return Figures(url, seen.size_bytes, sizes, served)


def _as_json(figures: Figures) -> dict[str, object]:
    served = figures.served
    return {
        "store": {"url": figures.url, "file_bytes": figures.file_bytes, **asdict(figures.sizes)},
        "requests": served.requests,
        "hit_rate": served.hit_rate,
        "hits": {"exact": served.exact_hits, "semantic": served.semantic_hits},
        "misses": figures.group("miss"),
        "stale": figures.group("stale"),
        "refused": figures.group("refused"),
        "watched": figures.group("watch"),
        "errors": figures.group("error"),
        "saved": {"tokens": served.saved_tokens, "seconds": served.saved_s},
        "made": {
            "tokens": served.made_tokens,
            "provider_cached_tokens": served.provider_cached_tokens,
        },
        "judge": _judge_as_json(served.judge),
        "counters": dict(served.counters),
    }


def _judge_as_json(judge: JudgeStats) -> dict[str, object]:
    return {
        "calls": judge.calls,
        "calls_per_1000_requests": judge.calls_per_1000,
        "fresh": judge.fresh,
        "not_fresh": judge.not_fresh,
        "failed": judge.failed,
        "refusals": judge.refusals,
        "unasked": judge.unasked,
        "saved_answers": judge.saved,
        "tokens": judge.tokens,
        "seconds": judge.seconds,
    }


def _show_judge(console: Console, *, served: Stats) -> None:
    """Show whether the judge earns its keep, where there was one."""
    judge = served.judge
    if not (judge.calls or judge.unasked or judge.saved):
        return
    rows = {
        "calls": f"{judge.calls:,}, {judge.calls_per_1000:.1f} per 1,000 requests",
        "fresh": f"{judge.fresh:,}",
        "not fresh": f"{judge.not_fresh:,}",
        "failed, so not fresh": f"{judge.failed:,}",
        "not asked, budget spent": f"{judge.unasked:,}",
        "answers saved": f"{judge.saved:,}",
        "tokens spent": f"{judge.tokens:,}",
        "seconds spent": f"{judge.seconds:,.1f}",
    }
    table = Table("", "", title="judge of freshness", show_header=False, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)


def _show_sizes(console: Console, figures: Figures) -> None:
    table = Table("", "", title=one_line(figures.url), show_header=False, title_justify="left")
    sizes, served = figures.sizes, figures.served
    rows = {
        "entries": f"{sizes.entries:,}",
        "with a vector": f"{sizes.vectors:,}",
        "invalidated besides": f"{sizes.invalidated:,}",
        "hits of these entries": f"{sizes.hits:,}",
        "answers": size(sizes.answer_bytes),
        "file": "in a server" if figures.file_bytes is None else size(figures.file_bytes),
        "tokens saved": f"{served.saved_tokens:,}",
        "seconds saved": f"{served.saved_s:,.1f}",
        "tokens made": f"{served.made_tokens:,}",
        "provider's own cache": _told(served.provider_cached_tokens),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)


def _told(cached: int | None) -> str:
    """Say how many of the tokens of answers made were in the provider's prefix cache."""
    return "not told" if cached is None else f"{cached:,} of these tokens"


def _show_outcomes(console: Console, figures: Figures) -> None:
    served = figures.served
    title = f"{served.requests:,} requests, hit rate {served.hit_rate:.1%}"
    rows = {
        "hit, exact": served.exact_hits,
        "hit, semantic": served.semantic_hits,
        "stale": served.stale,
        "miss": served.misses,
    }
    _show_group(console, title, rows)


def _show_group(console: Console, title: str, rows: Mapping[str, int]) -> None:
    total = sum(rows.values())
    if not total:
        return
    table = Table("", "count", "share", "", title=title, title_justify="left")
    table.columns[1].justify = table.columns[2].justify = "right"
    for name, count in rows.items():
        share = count / total
        table.add_row(one_line(name), f"{count:,}", f"{share:.1%}", bar(share, console))
    console.print(table)


def _phrased(rows: Mapping[str, int]) -> dict[str, int]:
    return {_phrase(name): count for name, count in rows.items()}


def _phrase(name: str) -> str:
    """Return a reason as it is printed everywhere; a name that we do not know as it is."""
    return Reason.__members__[name.upper()].value if name.upper() in Reason.__members__ else name
