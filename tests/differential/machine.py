"""What may happen in the world, and what must be true of every answer. Random or by hypothesis."""

from collections import Counter, defaultdict
from pathlib import Path
from random import Random

from msgspec.structs import replace

from tests.differential.apps import Mode
from tests.differential.index import DEATHS_OF_WRITES
from tests.differential.process import Ask, Command, Invalidate, OtherProcess, Told, Write
from tests.differential.side import WATCHED, Side
from tests.differential.world import (
    MARK,
    POLITE,
    SEARCHES,
    SOURCES,
    TENANTS,
    TTL_S,
    WORDS,
    State,
    question_of,
)

MODES = {
    "recheck": Mode("recheck"),
    "version/corpus": Mode("version", "corpus"),
    "version/sources": Mode("version", "sources"),
    "watch": Mode("watch"),
}
FRAMEWORKS = ("langchain", "llama-index")
CASES = [
    (framework, mode)
    for framework in FRAMEWORKS
    for mode in MODES
    if mode != "watch" or framework in WATCHED
]
DEATHS = ("retrieve", "model", "end")
WAYS = ("replace", "upsert", "anew", "index")


class Machine:
    """One world: documents, two processes on one file (the second one optional), and a clock."""

    def __init__(
        self, framework: str, mode: str, url: str, other: OtherProcess | None = None
    ) -> None:
        self.mode = mode
        self.state = State()
        self.seen: Counter[str] = Counter()
        self._born: defaultdict[str, set[float]] = defaultdict(set)  # when each text was made
        self._side = Side(framework, MODES[mode], url)
        self._other = other
        if other is not None:
            other.open(url)

    # -- what may happen ---------------------------------------------------------------------------

    def ask(self, words: tuple[str, ...], tenant: str, *, polite: bool, elsewhere: bool) -> None:
        """Ask either process, and compare with the application without a cache."""
        question = f"{POLITE if polite else ''}What about {' and '.join(words)}?"
        asked = Ask(self.state, question, tenant)
        told = self._do(asked, elsewhere=elsewhere)
        assert not told.died, "the other process died unasked: see what it wrote to stderr"
        self._check(asked, told)

    def die(self, words: tuple[str, ...], tenant: str, where: str) -> None:
        """Ask the other process, which is killed while it retrieves, answers, or has answered."""
        if self._other is None:
            return
        question = f"What about {' and '.join(words)}?"
        told = self._other.do(Ask(self.state, question, tenant, where))
        asked = Ask(self.state, question, tenant)
        if told.died:  # it may have stored an answer before
            self._born[_made(asked, self._side.uncached(asked).text)].add(self.state.now)
        else:  # a hit retrieves nothing, and asks no model
            self._check(asked, told)
        self.seen["died" if told.died else "lived"] += 1

    def write(
        self,
        source: str,
        text: str | None,
        *,
        elsewhere: bool,
        way: str = "replace",
        spaced: bool = False,
        die_at: str = "",
    ) -> None:
        """Insert, edit or delete a document, then tell the cache, if its grounding needs that.

        A watched index is written by one of several ways, and a process may die of it.
        """
        self.state = self.state.write(source, text)
        if self.mode != "watch":
            self._invalidate(source, elsewhere=elsewhere)
            return
        if die_at and self._other is None:
            return
        chunks = self.state.chunks_of(source)
        asked = Write(self.state, source, chunks, way, spaced, die_at)
        told = self._do(asked, elsewhere=elsewhere or bool(die_at))
        assert die_at or not told.died
        self.seen["died writing" if told.died else "written"] += 1

    def write_again(self, source: str, *, elsewhere: bool, way: str, spaced: bool) -> None:
        """Ingest a document as it is."""
        text = self.state.documents.get(source)
        if text is not None:
            self.write(source, text, elsewhere=elsewhere, way=way, spaced=spaced)

    def rechunk(self, sentences: int, *, elsewhere: bool) -> None:
        """Cut all documents into other chunks, then tell the cache, if its grounding needs that."""
        self.state = replace(self.state, sentences_per_chunk=sentences)
        if self.mode != "watch":
            self._invalidate(None, elsewhere=elsewhere)
            return
        for source, text in self.state.documents.items():
            self.write(source, text, elsewhere=elsewhere)

    def run_with(
        self, *, model: str | None = None, prompt: str | None = None, search: str | None = None
    ) -> None:
        """Change the model, the prompt, or the way of retrieving from a watched index."""
        self.state = replace(
            self.state,
            model=model or self.state.model,
            prompt=prompt or self.state.prompt,
            search=search or self.state.search,
        )

    def embed_with(self, turn: int) -> None:
        """Change the embedder under its name."""
        self.state = replace(self.state, embedder=turn)

    def jump(self, seconds: float) -> None:
        """Let the clock jump, forwards or backwards."""
        self.state = replace(self.state, now=self.state.now + seconds)

    def close(self) -> None:
        self._side.close()

    # -- what must be true -------------------------------------------------------------------------

    def _do(self, command: Command, *, elsewhere: bool) -> Told:
        if elsewhere and self._other is not None:
            return self._other.do(command)
        return self._side.do(command)

    def _invalidate(self, source: str | None, *, elsewhere: bool) -> None:
        if self.mode != "recheck":  # which needs to be told nothing
            self._do(Invalidate(source), elsewhere=elsewhere)

    def _check(self, asked: Ask, told: Told) -> None:
        self.seen[told.level or "miss"] += 1
        self.seen[f"reason: {told.reason}"] += 1
        own = question_of(told.text) if MARK in told.text else asked.question
        if told.level != "semantic":
            assert own == asked.question, (asked, told)
        else:
            assert own.removeprefix(POLITE) == asked.question.removeprefix(POLITE), (asked, told)
        if self.mode == "version/sources" and told.level:
            self._check_cited(told)
        else:
            truth = self._side.uncached(Ask(asked.state, own, asked.tenant))
            assert (told.text, told.cited) == (truth.text, truth.cited), (asked, told, truth)
        self._check_age(asked, told)

    def _check_cited(self, told: Told) -> None:
        """Under version of sources: what was cited is still there, word by word."""
        current = {chunk.text for chunk in self.state.chunks()}
        assert set(told.cited) <= current, told

    def _check_age(self, asked: Ask, told: Told) -> None:
        made = _made(asked, told.text)
        if not told.level:
            self._born[made].add(asked.state.now)
            return
        ages = [asked.state.now - born for born in self._born[made]]
        assert any(-60.0 <= age < TTL_S for age in ages), (asked, told, ages)


def _made(asked: Ask, text: str) -> str:
    """Return what tells apart two makings of one text: tenant and embedder are not in it."""
    return f"{asked.tenant} {asked.state.embedder} {text}"


def text(rng: Random) -> str:
    count = rng.randint(1, 3)
    return ". ".join(" ".join(rng.choices(WORDS, k=rng.randint(1, 2))) for _ in range(count))


def words(rng: Random) -> tuple[str, ...]:
    return tuple(rng.sample(WORDS, 2 if rng.random() < 0.3 else 1))


def step(rng: Random, machine: Machine) -> None:
    """Let one thing happen; most things are questions."""
    elsewhere = rng.random() < 0.3
    what = rng.random()
    if machine.mode == "watch" and rng.random() < 0.1:
        step_of_watched(rng, machine, elsewhere=elsewhere)
    elif what < 0.86:
        machine.ask(words(rng), rng.choice(TENANTS), polite=rng.random() < 0.3, elsewhere=elsewhere)
    elif what < 0.91:
        way = rng.choice(WAYS)
        machine.write(rng.choice(SOURCES), text(rng), elsewhere=elsewhere, way=way)
    elif what < 0.93:
        machine.write(rng.choice(SOURCES), None, elsewhere=elsewhere, way=rng.choice(WAYS))
    elif what < 0.94:
        machine.rechunk(rng.randint(1, 3), elsewhere=elsewhere)
    elif what < 0.95:
        machine.run_with(model=rng.choice(("m1", "m2")))
    elif what < 0.96:
        machine.run_with(prompt=rng.choice(("p1", "p2")))
    elif what < 0.965:
        machine.embed_with(rng.randint(0, 2))
    elif what < 0.985:
        machine.jump(rng.choice((1.0, 100.0, TTL_S / 2, TTL_S * 1.1, -30.0, -200.0)))
    else:
        machine.die(words(rng), rng.choice(TENANTS), rng.choice(DEATHS))


def step_of_watched(rng: Random, machine: Machine, *, elsewhere: bool) -> None:
    """Let one thing happen that only a watched index knows."""
    way, source, what = rng.choice(WAYS), rng.choice(SOURCES), rng.random()
    if what < 0.4:
        machine.write_again(source, elsewhere=elsewhere, way=way, spaced=rng.random() < 0.5)
    elif what < 0.7:
        machine.run_with(search=rng.choice(SEARCHES))
    else:
        said = text(rng) if rng.random() < 0.8 else None
        died = rng.choice((*DEATHS_OF_WRITES, "end"))
        machine.write(source, said, elsewhere=True, way=way, die_at=died)


def run(machine: Machine, *, steps: int, seed: int) -> Counter[str]:
    """Let so many things happen; return what was seen."""
    rng = Random(seed)
    for _ in range(steps):
        step(rng, machine)
    return machine.seen


def url_in(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}.db"
