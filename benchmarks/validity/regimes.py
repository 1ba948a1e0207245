"""GroundedCache's six regimes as sequences of steps: questions asked and documents written.

The regimes are those of arXiv 2605.27494, on other data. Warm questions are asked first and not
counted. Documents are written between requests, never while one is answered.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from benchmarks.validity.app import Change
from benchmarks.validity.edits import Library, batch
from benchmarks.validity.rewording import rewordings
from benchmarks.validity.texts import Document, Question, joined

UNBOUNDED = 100_000
SHARE_REWORDED = 0.3
SHARE_WRITTEN = 0.2


class Ask(Struct, frozen=True):
    """One request; only ``counted`` ones are in the figures."""

    question: Question
    counted: bool = True


Step = Ask | Change


class Regime(Struct, frozen=True):
    """Documents to begin with, how many answers a cache may hold, and what happens then."""

    name: str
    about: str
    documents: Mapping[str, Sequence[str]]
    steps: Sequence[Step]
    capacity: int = UNBOUNDED

    @property
    def counted(self) -> int:
        """How many requests are in the figures."""
        return sum(isinstance(step, Ask) and step.counted for step in self.steps)


class Sizes(Struct, frozen=True):
    """How large a run is; ``requests`` are the counted ones of a regime, about."""

    requests: int
    questions: int
    pages: int
    long_pages: int
    rounds: int


FULL = Sizes(requests=500, questions=150, pages=240, long_pages=12, rounds=3)
QUICK = Sizes(requests=45, questions=20, pages=24, long_pages=2, rounds=3)
PAGE_CHUNKS = 4


def regimes(
    abstracts: Sequence[Document], pages: Sequence[Document], sizes: Sizes, seed: int
) -> Iterator[Regime]:
    """Yield the six regimes; the same arguments give the same steps."""
    drawn = random.Random(seed)
    abstracts = drawn.sample(abstracts, len(abstracts))
    pages = drawn.sample(pages, len(pages))
    half = sizes.questions // 2
    mixed = [*abstracts[:half], *(one.short(PAGE_CHUNKS) for one in pages[:half])]
    yield exact_repeat(mixed, sizes, drawn)
    yield paraphrase(mixed, sizes, drawn)
    yield near_miss([one.short(PAGE_CHUNKS) for one in pages], sizes, drawn)
    yield drift(mixed, sizes, drawn)
    yield long_document(pages, sizes, drawn)
    yield bounded(abstracts, sizes, drawn)


def _chunks(documents: Iterable[Document]) -> dict[str, Sequence[str]]:
    return {one.source: one.chunks for one in documents}


def _questions(documents: Iterable[Document]) -> list[Question]:
    """Return one question of each document."""
    return [one.questions[0] for one in documents]


def _warm(questions: Iterable[Question]) -> list[Step]:
    return [Ask(one, counted=False) for one in questions]


def _perhaps_reworded(question: Question, drawn: random.Random) -> Question:
    others = list(rewordings(question))
    return drawn.choice(others) if others and drawn.random() < SHARE_REWORDED else question


def _asked(questions: Sequence[Question], count: int, drawn: random.Random) -> list[Step]:
    return [Ask(_perhaps_reworded(drawn.choice(questions), drawn)) for _ in range(count)]


def exact_repeat(documents: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Ask stored questions again, word for word."""
    questions = _questions(documents)
    again = [Ask(drawn.choice(questions)) for _ in range(sizes.requests)]
    about = "stored questions are asked again, word for word"
    return Regime("exact repeat", about, _chunks(documents), [*_warm(questions), *again])


def paraphrase(documents: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Ask stored questions in other words."""
    questions = list(chain.from_iterable(one.questions[:2] for one in documents))
    others = list(chain.from_iterable(map(rewordings, questions)))
    drawn.shuffle(others)
    about = "stored questions are asked in other words, made by rule"
    steps = [*_warm(questions), *map(Ask, others[: sizes.requests])]
    return Regime("paraphrase", about, _chunks(documents), steps)


def near_miss(pages: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Ask for another date of what was asked before: each question once, so that any hit is wrong."""
    several = [one for one in pages if len(one.questions) > 1][: sizes.pages]
    others = list(chain.from_iterable(one.questions[1:] for one in several))
    drawn.shuffle(others)
    about = "the same relation is asked for another date, each once: any hit is wrong"
    steps = [*_warm(_questions(several)), *map(Ask, others[: sizes.requests])]
    return Regime("near miss", about, _chunks(several), steps)


def drift(documents: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Change a fifth of the documents at a time, then ask again, a part in other words."""
    questions = _questions(documents)
    library = Library(documents)
    steps = _warm(questions)
    for _ in range(sizes.rounds):
        written = max(1, round(SHARE_WRITTEN * len(documents)))
        steps += batch(library, questions, written, drawn)
        steps += _asked(questions, sizes.requests // sizes.rounds, drawn)
    about = (
        f"{SHARE_WRITTEN:.0%} of the documents are changed, inserted or deleted at a time; "
        f"{SHARE_REWORDED:.0%} of the requests are reworded"
    )
    return Regime("document drift", about, _chunks(documents), steps)


def long_document(pages: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Ask much about one long document of which one paragraph with an answer is edited at times."""
    document = joined("one long document", pages[: sizes.long_pages])
    questions = list(document.questions)
    library = Library([document])
    steps, edits = _warm(questions), 3 * sizes.rounds
    for _ in range(edits):
        steps.append(library.edited(document.source, drawn))
        steps += _asked(questions, sizes.requests // edits, drawn)
    about = (
        f"{sizes.long_pages} pages as one document ({len(document.chunks)} chunks), one paragraph "
        f"with an answer edited at a time; {SHARE_REWORDED:.0%} of the requests are reworded"
    )
    return Regime("long shared document", about, _chunks([document]), steps)


def bounded(documents: Sequence[Document], sizes: Sizes, drawn: random.Random) -> Regime:
    """Ask a few popular questions more often, while documents come and go and space is short."""
    pool = list(documents[: sizes.questions])
    live, away = pool[: len(pool) // 2], pool[len(pool) // 2 :]
    began, questions = _chunks(live), _questions(pool)
    popularity = [1 / rank for rank in range(1, len(questions) + 1)]
    asked = drawn.choices(questions, popularity, k=sizes.requests)
    steps: list[Step] = []
    for at, question in enumerate(asked):
        if at % 10 == 0:
            gone, come = live.pop(drawn.randrange(len(live))), away.pop(drawn.randrange(len(away)))
            steps += [Change(gone.source, None, "delete"), Change(come.source, come.chunks, "add")]
            live.append(come)
            away.append(gone)
        steps.append(Ask(_perhaps_reworded(question, drawn)))
    capacity = len(questions) // 3
    about = (
        f"{len(live)} of {len(pool)} documents at a time, one comes and one goes every 10 requests; "
        f"{len(questions)} questions by popularity, {capacity} entries"
    )
    return Regime("bounded knowledge base", about, began, steps, capacity)
