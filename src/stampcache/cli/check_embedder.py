"""Does the embedder load, does it fit the store, and from which similarity on does it serve?"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence

from stampcache.calibration import calibration_for
from stampcache.cli.check_result import CheckResult, fail, failed, ok, skip, warn
from stampcache.embed import as_embedder, embed_question
from stampcache.errors import EmbedderError, StampCacheError
from stampcache.ports import Embedder
from stampcache.stores.sqlite_survey import StampCount
from stampcache.verify import SHIPPED

_QUESTIONS = (
    "How many days of leave do I have in my first year?",
    "Which keyword opens a context manager?",
    "What does the yield expression return when the generator is resumed?",
    "How do I reset my password?",
    "Who signs a contract above the limit of a department?",
)


def examine_embedder(
    given: object, *, dimensions: Mapping[str, int], stamps: Sequence[StampCount]
) -> Iterator[CheckResult]:
    """Yield what is found about an embedder, beside what a store knows of those that filled it."""
    if given is None:
        known = ", ".join(sorted(dimensions))
        found = f"not checked; the store was filled with {known}" if known else "not checked"
        yield skip("embedder", found, 'say --embedder as the application has it, such as "minilm"')
        return
    try:
        embedder = as_embedder(given)
        dimension, median_ms = _measured(embedder)
    except StampCacheError as error:
        yield failed("embedder", error)
        return
    yield ok("embedder", f"{embedder.name} embeds a question in {median_ms:.1f} ms (median)")
    yield _fits(embedder.name, dimension, dimensions)
    yield from _others(embedder.name, stamps)
    yield from _calibrated(embedder.name)


def _measured(embedder: Embedder) -> tuple[int, float]:
    """Return the dimension of the vectors and the median time per question in milliseconds."""
    times_ms: list[float] = []
    sizes: set[int] = set()
    for question in _QUESTIONS:
        begun = time.perf_counter()
        sizes.add(len(embed_question(embedder, question).vector))
        times_ms.append((time.perf_counter() - begun) * 1000)
    if len(sizes) > 1:
        raise EmbedderError(f"The embedder {embedder.name} answers vectors of sizes {sizes}.")
    return sizes.pop(), statistics.median(times_ms)


def _fits(name: str, dimension: int, dimensions: Mapping[str, int]) -> CheckResult:
    recorded = dimensions.get(name)
    if recorded is None:
        return ok(
            "dimension", f"{dimension}; no vectors of this embedder are recorded in a store yet"
        )
    if recorded != dimension:
        mend = "give the changed embedder another name, or open another store"
        return fail("dimension", f"{dimension}, but the store holds vectors of {recorded}", mend)
    return ok("dimension", f"{dimension}, as recorded in the store")


def _others(name: str, stamps: Sequence[StampCount]) -> Iterator[CheckResult]:
    others = {one.stamps.embedder for one in stamps} - {name, ""}
    count = sum(one.entries for one in stamps if one.stamps.embedder in others)
    if count:
        made_with = ", ".join(sorted(others))
        found = f"{count:,} entries were made with {made_with} and are invisible to {name}"
        mend = "if that is not meant, open the cache with the embedder that filled it"
        yield warn("embedder", found, mend)


def _calibrated(name: str) -> Iterator[CheckResult]:
    measured = calibration_for(name)
    if measured is None:
        found = f"none was measured for {name}: it serves exact hits only"
        mend = "give calibration= a threshold measured on your questions"
        yield warn("calibration", found, mend)
        return
    on = f", measured on {measured.measured_on}" if measured.measured_on else ""
    for language, threshold in (measured.languages or {"": measured.threshold}).items():
        questions = f"questions in {language}" if language else "questions"
        yield ok(
            "calibration",
            f"{questions} at a cosine of {threshold} or more go on to the other checks{on}",
        )
    known = SHIPPED.get(name)
    judged = known.languages if known is not None else frozenset[str]()
    if known is not None:
        where = " and ".join(sorted(judged)) or "all languages that it reads"
        yield ok(
            "verifier",
            f"{known.name!r} is shipped for it: it decides in {where}, from a cosine of "
            f"{known.floor} on, unless verifier= says otherwise",
        )
    if measured.languages:
        measured_in = " and ".join(sorted({*measured.languages, *judged}))
        found = f"nothing was measured but {measured_in}: other languages get exact hits only"
        mend = "give calibration= a threshold measured on your questions, if they are in others"
        yield warn("calibration", found, mend)
