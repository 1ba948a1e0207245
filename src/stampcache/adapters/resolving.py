"""Finding out what an index holds: after a write that did not end, and when writes went around.

What is found out is told under an intent like any write, so that whoever writes meanwhile is noticed.
"""

from collections.abc import Sequence

from stampcache.adapters.index_view import IndexView, with_vector
from stampcache.adapters.ledger import Ledger
from stampcache.corpora import Change, Chunk, Committed, Intent, Standing
from stampcache.effects import Block, Flow, KnownChunks, StandingOf, Step
from stampcache.errors import StoreError

_UNSEEN = Change(unknown=True, beyond=True)


class Resolving:
    """Looks into the index of one corpus, and writes into its ledger what is there."""

    def __init__(self, ledger: Ledger, view: IndexView) -> None:
        self._ledger = ledger
        self._view = view

    def clear_up(self, standing: Standing) -> Flow[None]:
        """Resolve the writes that nobody will end.

        Where the index cannot be looked into just now they stay, and block hits until the next time.

        Raises:
            StoreError: the store failed.
        """
        for intent in self._ledger.left_behind(standing):
            self._ledger.warn("a write did not end")
            try:
                yield from self._replace(intent)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - counted; the intent stays, and blocks all hits
                self._ledger.core.counters.note("watch.unresolved", error)

    def _replace(self, left: Intent) -> Flow[None]:
        """Find out what a write has done whose writer is gone; others may be about to do the same."""
        ledger = self._ledger
        mine = yield from ledger.begin(left.chunks if left.all_known else None, beyond=left.beyond)

        def replacing() -> Flow[None]:
            standing = yield from StandingOf(ledger.corpus)
            if standing is None or left.id not in {one.id for one in standing.intents}:
                yield from ledger.withdraw(mine)  # another one was first
                return
            yield from self.find_out(mine, ())
            yield from ledger.withdraw(left)

        yield from ledger.under(mine, replacing())

    def find_out(self, intent: Intent, planned: Sequence[Chunk]) -> Flow[None]:
        """Look at what a write has done, and tell that.

        Args:
            intent: of the write; or of who looks, if it names the same chunks.
            planned: chunks that were being added.
        """
        if intent.beyond:
            yield from self._ledger.commit(intent, _UNSEEN)
        elif intent.all_known and self._view.look is not None:
            seen = yield from self._view.look(intent.chunks)
            yield from self._ledger.commit(intent, (yield from self._seen(intent, seen, planned)))
        elif self._view.listing is not None:
            yield from self.take_over(intent, self._view.listing)
        else:
            gone = Change(unknown=True, removed=intent.chunks)
            yield from self._ledger.commit(intent, gone)

    def _seen(
        self, intent: Intent, seen: Sequence[Chunk], planned: Sequence[Chunk]
    ) -> Flow[Change]:
        found = {chunk.id: chunk for chunk in seen}
        known = yield from KnownChunks(self._ledger.corpus, intent.chunks)
        new = {chunk.id: chunk for chunk in planned}
        there = (with_vector(chunk, (known.get(one), new.get(one))) for one, chunk in found.items())
        gone = tuple(one for one in intent.chunks if one not in found)
        return Change(added=tuple(there), removed=gone)

    def take_over(self, intent: Intent, listing: Step[Sequence[Chunk]]) -> Flow[Committed]:
        """Take over all that the index holds; what stopped its hits before does so no more.

        What stops them from now on, while the index is listed, does.
        """
        corpus = self._ledger.corpus
        problem = yield from self._problem()
        if problem:
            yield from Block(corpus, "")  # the intent blocks hits until its commit
        try:
            found = yield from listing
        except Exception:
            if problem:
                yield from Block(corpus, problem)
            raise
        known = yield from KnownChunks(corpus, None)
        added = tuple(with_vector(chunk, (known.get(chunk.id),)) for chunk in found)
        return (yield from self._ledger.commit(intent, Change(added=added, emptied=True)))

    def renew(self) -> Flow[Committed]:
        """Take over what the index holds, or where it cannot be listed, make all answers stale."""
        intent = yield from self._ledger.begin(None)
        listing = self._view.listing
        work = self._doubt(intent) if listing is None else self.take_over(intent, listing)
        return (yield from self._ledger.under(intent, work))

    def _doubt(self, intent: Intent) -> Flow[Committed]:
        if (yield from self._problem()):
            yield from Block(self._ledger.corpus, "")
        return (yield from self._ledger.commit(intent, Change(unknown=True)))

    def let_go(self, intents: Sequence[Intent]) -> Flow[None]:
        """Resolve writes of which all that the index holds was taken over since they ended."""
        for intent in intents:
            if intent.beyond:
                yield from self._ledger.commit(intent, _UNSEEN)
            else:
                yield from self._ledger.withdraw(intent)

    def _problem(self) -> Flow[str]:
        standing = yield from StandingOf(self._ledger.corpus)
        return "" if standing is None else standing.problem
