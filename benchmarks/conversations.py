"""What a cache serves in conversations: by the last message, with the history, or condensed.

    python -m benchmarks.conversations [--data DIR] [--quick] [--json FILE]

``fow-cache, conversations``: 180 pairs of conversations, of which the second must, or must not, be given
the answer to the first one. ``mtRAG``: real conversations in four domains; each turn has a rewrite by a
person that stands alone, which is what a perfect condenser gives. Every conversation is asked twice, as
by two users of one tenant. A hit counts as wrong if the rewrite of the turn that was answered is another
text, so this is an upper bound: some rewrites differ in words only.

``last message`` is what a cache sees whose application hands it no history; it is the fault, not an
offer. Exact and semantic hits together, MiniLM at its shipped threshold.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda
from msgspec import Struct
from rich.progress import track

from benchmarks.report import Row, arguments, show, write
from langchain_stampcache import CachedChain
from stampcache import open_cache
from stampcache.embed import as_embedder
from stampcache.ports import Embedder

POLICIES = ("last message", "with history", "condensed")
DOMAINS = ("clapnq", "cloud", "fiqa", "govt")


class Turn(Struct, frozen=True):
    """One question after others; ``alone`` is what it asks by itself."""

    history: Sequence[str]
    asked: str
    alone: str


class Hits(Struct):
    """What was served: rightly, wrongly, and out of how many."""

    served: int = 0
    wrong: int = 0
    asked: int = 0

    def row(self, data: str, policy: str) -> Row:
        """Return the row of one policy."""
        return {
            "data": data,
            "policy": policy,
            "turns": self.asked,
            "served": self.served,
            "served %": round(100 * self.served / self.asked, 1),
            "of them wrong": self.wrong,
        }


class Talk:
    """A cached chain under one policy, whose answer to a turn tells what the turn asks by itself."""

    def __init__(self, policy: str, embedder: Embedder) -> None:
        self._policy = policy
        self._cache = open_cache("memory://", embedder=embedder)
        self._alone = ""
        condense: Any = None
        if policy == "condensed":
            condense = RunnableLambda(lambda _: self._alone)
        self._chain: Any = CachedChain(
            retriever=None,
            answer=lambda _: f"the answer to: {self._alone}",
            cache=self._cache,
            grounding="none",
            version="1",
            condense=condense,
        )

    def ask(self, turn: Turn) -> str | None:
        """Return which question's answer is served; ``None`` where one is made."""
        self._alone = turn.alone
        inputs: dict[str, Any] = {"input": turn.asked}
        if self._policy != "last message" and turn.history:
            inputs["chat_history"] = list(turn.history)
        given = self._chain.invoke(inputs)
        return given["answer"].removeprefix("the answer to: ") if given["cache"]["hit"] else None

    def close(self) -> None:
        """Let go of the cache."""
        self._cache.close()


def pairs(data: Path, *, same: bool) -> Iterator[tuple[Turn, Turn]]:
    """Yield the pairs of conversations that ask the same, or that do not."""
    for path in sorted((data / "fow_cache" / "conv-parts").glob("*.jsonl")):
        for pair in map(json.loads, path.open()):
            if pair["same_answer"] == same:
                yield _spoken(pair, "a"), _spoken(pair, "b")


def _spoken(pair: Mapping[str, Any], side: str) -> Turn:
    texts = [turn["content"] for turn in pair[side]]
    name = pair["id"] if pair["same_answer"] else f"{pair['id']}{side}"
    return Turn(texts[:-1], texts[-1], name)


def paired(data: Path, policy: str, embedder: Embedder, *, same: bool) -> Row:
    """Ask the second conversation of each pair after the first one, in a cache of their own."""
    hits = Hits()
    for first, second in track(list(pairs(data, same=same)), f"pairs, {policy}", transient=True):
        talk = Talk(policy, embedder)
        talk.ask(first)
        served = talk.ask(second)
        hits.asked += 1
        hits.served += served is not None
        hits.wrong += served is not None and served != second.alone
        talk.close()
    what = "must share" if same else "must not share"
    return hits.row(f"fow-cache conversations, {what}", policy)


def conversations(data: Path, domain: str) -> list[Turn]:
    """Return the turns of real conversations with what each of them asks by itself."""
    folder = data / "mtrag"
    whole = _texts(folder / f"{domain}_questions.jsonl")
    alone = _texts(folder / f"{domain}_rewrite.jsonl")
    turns = []
    for name, said in whole.items():
        *history, asked = said
        turns.append(Turn(history, asked, _folded(alone[name][-1])))
    return turns


def _texts(path: Path) -> dict[str, list[str]]:
    lines = map(json.loads, path.open())
    return {
        line["_id"]: [part.strip() for part in line["text"].split("|user|:") if part.strip()]
        for line in lines
    }


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def replayed(data: Path, policy: str, embedder: Embedder, *, quick: bool) -> Row:
    """Ask all turns of all conversations, twice."""
    hits = Hits()
    for domain in DOMAINS[:1] if quick else DOMAINS:
        turns = conversations(data, domain)
        talk = Talk(policy, embedder)
        for turn in track([*turns, *turns], f"{domain}, {policy}", transient=True):
            served = talk.ask(turn)
            hits.asked += 1
            hits.served += served is not None
            hits.wrong += served is not None and served != turn.alone
        talk.close()
    return hits.row("mtRAG, each conversation twice", policy)


def main() -> None:
    options = arguments(__doc__ or "")
    data = options.data or Path("../shared/data")
    embedder = as_embedder("minilm")  # loaded once for all caches
    rows = [
        paired(data, policy, embedder, same=same)
        for same in (True, False)
        for policy in POLICIES[:2]
    ]
    rows += [replayed(data, policy, embedder, quick=options.quick) for policy in POLICIES]
    show("Conversations: what is served, by what the cache is told", rows)
    write(options.json, rows)


if __name__ == "__main__":
    main()
