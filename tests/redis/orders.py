"""Seeded interleavings of makings and changes on caches of one store: none may leave an old answer.

    python -m tests.redis.orders URL SEED COUNT

A making is cut into the single effects of its flows, so that a change may come between any two of them.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from stampcache import Cache, Hit, Refused
from tests.redis.apps import opened
from tests.test_race import Play


class _Watched(Play):
    """A `Play` whose looks count instead of failing, as there are very many."""

    def old(self, cache: Cache) -> bool:
        """Tell whether the cache serves what was announced to be old."""
        outcome = cache.lookup(self.request())
        if not isinstance(outcome, Hit):
            return False
        return int(outcome.answer.text.rpartition(" ")[2]) < self.announced


def play(makers: Sequence[Cache], changer: Cache, reader: Cache, seed: int) -> Counter[str]:
    """Play one order of two makings, a change or two, and looks of one who is never behind."""
    chance = random.Random(seed)
    grounding = chance.choice(["sources", "corpus"])
    plays = [_Watched(maker, changer, grounding=grounding, source=f"{seed}.md") for maker in makers]
    first = plays[0]
    for other in plays[1:]:
        other.__dict__.update(version=first.version)
    seen: Counter[str] = Counter(played=1)
    under_way: list[Iterator[object]] = [one.making() for one in plays]
    under_way += [_changing(plays) for _ in range(chance.randint(1, 2))]
    while under_way:
        one = chance.choice(under_way)
        if next(one, None) is None:
            under_way.remove(one)
        if chance.random() < 0.1:
            seen["old"] += first.old(reader)
    seen["old"] += first.old(reader)
    done = [each for one in plays for each in one.stored]
    seen["refused"] += sum(isinstance(each, Refused) for each in done)
    seen["stored"] += sum(not isinstance(each, Refused) for each in done)
    return seen


def _changing(plays: Sequence[_Watched]) -> Iterator[object]:
    for one in plays:
        one.version += 1
    version = plays[0].version
    yield "document written"
    plays[0].changer.invalidate(corpus="handbook", source=plays[0].source)
    for one in plays:
        one.announced = max(one.announced, version)
    yield "told"


def main() -> None:
    """Play so many orders from a seed on, and print what was seen."""
    url, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(played(url, seed, count)))


def played(url: str, seed: int, count: int) -> Counter[str]:
    """Play so many orders with caches of their own."""
    total: Counter[str] = Counter()
    with ExitStack() as stack:
        plain = [stack.enter_context(opened(url)) for _ in range(3)]
        exact = [stack.enter_context(opened(url, strict=True)) for _ in range(2)]
        for at in range(seed, seed + count):
            makers = exact if at % 2 else plain[:2]  # plain ones begin a little in the past
            total += play(makers, plain[2], exact[0], at)
    return total


if __name__ == "__main__":
    main()
