"""Threads and tasks that ask under hostile names of tenants, and look at whose answer they are given.

    python -m tests.redis.probing URL SEED PROBES

Every answer says for whom and what it was made, so that one from a wrong partition betrays itself.
"""

import asyncio
import json
import random
import sys
import threading
from collections import Counter

from stampcache import AsyncCache, Cache, Hit, Request, Scope, Settings
from tests.redis.apps import opened

HOSTILE = (
    "acme", "acme2", "acm", "acme:b", "acme*", "acm?", "[ab]", "a", "b", "ab", "a,b", "a/b", "a\nb",
    "a\r\n$4\r\nPING\r\n", "{acme}", "{a", "a}", "{}", "}{", "*", "?", "[^a]", "\\", "';FLUSHALL",
    "ACME", "acme\u0301", "acm\u00e9", "\u202eemca", "default", "default:acme", "%", "_", " ", "a b",
    "\u79df\u6237", "acme\x00", "\x00", "stampcache", "stampcache:", "stampcache:*",
)  # fmt: skip
"""Names that are prefixes, patterns, hash tags, protocol or look-alikes of each other."""

_THREADS = 2
_TASKS = 4
_MODELS = tuple(Settings(model=model) for model in ("m", "m:n"))
_QUESTIONS = ("q", "q:*", "{acme}", "Who may take leave?")


class Tally(Counter[str]):
    """What was seen: ``probe``, ``hit``, ``wrong``, ``error``."""


def scopes() -> list[Scope]:
    """Return every hostile name as tenant, as namespace and as audience of an innocent one."""
    named = [Scope(tenant=name) for name in HOSTILE]
    named += [Scope(tenant="acme", namespace=name) for name in HOSTILE]
    return named + [Scope(tenant="acme", audience=name) for name in HOSTILE]


def drawn(chance: random.Random, among: list[Scope]) -> Request:
    """Return a request that somebody among these may make."""
    return Request(
        question=chance.choice(_QUESTIONS),
        settings=chance.choice(_MODELS),
        scope=chance.choice(among),
    )


def wanted(request: Request) -> str:
    """Return the only answer that may be given to a request."""
    asked = request.scope
    assert asked is not None
    parts = (asked.tenant, asked.namespace, asked.audience, request.runs.model, request.question)
    return json.dumps(parts)


def probe(cache: Cache, seed: int, probes: int, tally: Tally) -> None:
    """Ask so often, and store what is missing."""
    chance, among = random.Random(seed), scopes()
    for _ in range(probes):
        request = drawn(chance, among)
        outcome = cache.lookup(request)
        tally["probe"] += 1
        if isinstance(outcome, Hit):
            tally["hit"] += 1
            tally["wrong"] += outcome.answer.text != wanted(request)
        else:
            cache.update(request, wanted(request), outcome=outcome)


async def aprobe(cache: AsyncCache, seed: int, probes: int, tally: Tally) -> None:
    """See `probe`, in a task."""
    chance, among = random.Random(seed), scopes()
    for _ in range(probes):
        request = drawn(chance, among)
        outcome = await cache.lookup(request)
        tally["probe"] += 1
        if isinstance(outcome, Hit):
            tally["hit"] += 1
            tally["wrong"] += outcome.answer.text != wanted(request)
        else:
            await cache.update(request, wanted(request), outcome=outcome)


def probe_together(cache: Cache, seed: int, probes: int) -> Tally:
    """Ask so often altogether, from threads and tasks at once."""
    each = probes // (_THREADS + _TASKS)
    tallies = [Tally() for _ in range(_THREADS + _TASKS)]
    work = [(seed * 100 + at, each, tally) for at, tally in enumerate(tallies)]
    threads = [threading.Thread(target=probe, args=(cache, *one)) for one in work[:_THREADS]]
    for thread in threads:
        thread.start()

    async def tasks() -> None:
        await asyncio.gather(*(aprobe(cache.aio, *one) for one in work[_THREADS:]))

    asyncio.run(tasks())
    for thread in threads:
        thread.join()
    total = Tally()
    for tally in tallies:
        total.update(tally)
    counters = cache.stats(everything=True).counters
    total["error"] = sum(n for name, n in counters.items() if name.startswith("error."))
    return total


def main() -> None:
    """Probe, and print the tally as JSON."""
    url, seed, probes = sys.argv[1:]
    with opened(url) as cache:
        print(json.dumps(probe_together(cache, int(seed), int(probes))))


if __name__ == "__main__":
    main()
