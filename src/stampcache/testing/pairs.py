"""A judge of pairs that says what is written, for tests of whatever asks one."""

from collections.abc import Mapping, Sequence

from stampcache.ports import Sameness


class ScriptedPairs:
    """Says of each pair (asked, stored) what is given; of another one it fails.

    ``batches`` are the pairs that it was asked about, call by call; ``calls`` is how many it allows.
    """

    name = "scripted-pairs"

    def __init__(self, same: Mapping[tuple[str, str], bool], *, calls: int = 1_000) -> None:
        self._same = same
        self._calls = calls
        self.batches: list[Sequence[tuple[str, str]]] = []

    def may_ask(self) -> bool:
        """See `EquivalenceJudge.may_ask`."""
        return len(self.batches) < self._calls

    def compare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        """See `EquivalenceJudge.compare`."""
        if not self.may_ask():
            return [Sameness(False, "", "the budget of this minute is spent") for _ in pairs]
        self.batches.append(list(pairs))
        return [self._said(pair) for pair in pairs]

    async def acompare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        """See `compare`."""
        return self.compare(pairs)

    def _said(self, pair: tuple[str, str]) -> Sameness:
        same = self._same.get(pair)
        if same is None:
            return Sameness(False, "", "nothing is written of this pair")
        return Sameness(same, "as it is written")
