"""C: what counts as the same question."""

import warnings
from pathlib import Path

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.meaning import NEAR_MISSES, OPPOSITES, SAME, WatchedEmbedder
from benchmarks.cases.rig import Rig, Suite, ask_in_turn, other
from benchmarks.cases.words import QUESTION, Ability, Call
from stampcache import (
    Calibration,
    ConfigError,
    Hit,
    Level,
    Miss,
    Reason,
    Request,
    open_cache,
    scope,
)
from stampcache.calibration import StampCacheWarning
from stampcache.testing import ScriptedVerifier

SUITE = Suite()
DOCS = Path(__file__).parents[3] / "docs"


def refused(**options: object) -> str:
    """Return why a cache with these options is refused.

    Raises:
        AssertionError: it is not.
    """
    try:
        open_cache("memory://", **options).close()  # type: ignore[arg-type]  # wrong on purpose
    except ConfigError as error:
        return str(error)
    raise AssertionError(f"{options} is accepted")


@SUITE.case("C1", "a loose threshold is refused or warned of, in one unit", Ability.CORE)
def loose_thresholds(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Distances, percentages and what is no number are refused; what is doubtful warns."""
    for wrong in (0.1, 0.49, -0.9, 1.01, 90, float("nan"), True, "0.9", {"threshold": 0.2},
                  {"threshold": 0.9, "namespaces": {"shop": 0.3}}, {"distance": 0.1}):  # fmt: skip
        assert refused(embedder=WatchedEmbedder(), calibration=wrong)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        open_cache("memory://", embedder=WatchedEmbedder(), calibration=0.6).close()
    assert any(issubclass(one.category, StampCacheWarning) for one in told)


@SUITE.case("C2", "nothing but questions is embedded", Ability.MEANING)
def only_questions_are_embedded(rig: Rig) -> None:
    """No system prompt, no history, no chunk, no JSON of a whole call."""
    app = rig.app()
    rig.embedder.forget()
    app.ask(Call())
    if rig.has(Ability.SYSTEM):
        app.ask(Call(system="You are a helpful assistant. Answer in one sentence."))
    if rig.has(Ability.HISTORY):
        app.ask(Call(history=[("human", "Hello"), ("ai", "Hello.")]))
    if rig.has(Ability.PROMPTS):
        rig.prompted("template", grounding="none").ask(Call(parts=["A chunk."]))
    if rig.has(Ability.CORE):
        rig.cache.lookup(Request(prompt={"messages": ["a rendered prompt"]}))
    assert set(rig.embedder.texts) <= {QUESTION}, rig.embedder.texts


@SUITE.case("C3", "an embedder that nobody measured matches nothing", Ability.MEANING)
def an_embedder_that_is_not_calibrated(rig: Rig) -> None:
    """Its cache serves exact hits, and says why there are no others."""
    with other(rig, calibration=None) as uncalibrated:
        app = uncalibrated.app()
        first = app.ask(Call())
        near = app.ask(Call(question=PARAPHRASE))
        assert near.text != first.text
        assert near.told["reason"] == Reason.UNCALIBRATED.value
        assert app.ask(Call()).text == first.text


def _never_shared(rig: Rig, pairs: tuple[tuple[str, str], ...]) -> None:
    app = rig.app()
    for question, trap in [*pairs, *((two, one) for one, two in pairs)]:
        with other(rig) as fresh:
            app = fresh.app()
            first = app.ask(Call(question=question))
            for is_async in (False, True):
                second = ask_in_turn(app, Call(question=trap), is_async=is_async)
                assert second.text != first.text, f"{question!r} answers {trap!r}"


@SUITE.case("C4", "a question and its opposite never share", Ability.MEANING)
def opposites(rig: Rig) -> None:
    """Negated, switched off, or the other way round, though they embed alike."""
    _never_shared(rig, OPPOSITES)


@SUITE.case("C5", "a verifier that fails means no hit, and the next is tried", Ability.CORE)
def a_verifier_that_fails(rig: Rig) -> None:
    """It has no score for the nearest entry; the one behind that is served."""
    asked, nearest, next_best = QUESTION, PARAPHRASE, "How long, please, is annual leave?"
    embedder = WatchedEmbedder([(asked, nearest, next_best)])
    for scores, is_hit in (({(asked, next_best): 0.9}, True), ({}, False)):
        verifier = ScriptedVerifier(scores)
        with other(rig, embedder=embedder, verifier=verifier) as verified:
            for question in (nearest, next_best):
                verified.cache.update(Request(question=question), f"to {question}")
            found = verified.cache.lookup(Request(question=asked))
            assert isinstance(found, Hit) is is_hit
            assert not isinstance(found, Hit) or found.answer.text == f"to {next_best}"


@SUITE.case("C8", "a threshold is documented the right way round", Ability.CORE)
def the_direction_of_a_threshold(rig: Rig) -> None:
    """Higher is stricter, in the words of the docs and in deed."""
    assert "higher is closer" in refused(embedder=WatchedEmbedder(), calibration=0.1)
    pages = [page.read_text(encoding="utf-8") for page in DOCS.glob("*/*.md")]
    assert any("higher is closer" in page for page in pages)
    assert "cosine at or above which" in str(open_cache.__doc__)
    for calibration, is_hit in ((0.9, True), (0.9999, False)):
        with other(rig, calibration=calibration) as strict:
            strict.cache.update(Request(question=QUESTION), "Thirty days.")
            assert isinstance(strict.cache.lookup(Request(question=PARAPHRASE)), Hit) is is_hit


@SUITE.case("C10", "a hit that was reported is gone, and that pair never again", Ability.MEANING)
def a_wrong_hit(rig: Rig) -> None:
    """The questions are not taken for each other again, though the entry is made anew."""
    app = rig.app()
    wrong = app.ask(Call())
    hit = app.ask(Call(question=PARAPHRASE))
    assert hit.text == wrong.text
    assert rig.cache.report_bad(hit.told["entry_id"])
    assert app.ask(Call()).told["hit"] is False
    mended = app.ask(Call(question=PARAPHRASE))
    assert mended.told["hit"] is False
    assert app.ask(Call(question=PARAPHRASE)).text == mended.text


@SUITE.case("C11", "one number, unit, date, version or name apart: never shared", Ability.MEANING)
def near_misses(rig: Rig) -> None:
    """Though the questions embed alike."""
    _never_shared(rig, NEAR_MISSES)


@SUITE.case("C13", "a namespace may have a threshold of its own", Ability.CORE)
def thresholds_of_namespaces(rig: Rig) -> None:
    """A strict one beside a common one."""
    calibration = Calibration(0.9, namespaces={"law": 0.9999})
    with other(rig, calibration=calibration) as strict:
        for namespace, level in (("shop", Level.SEMANTIC), ("law", None)):
            with scope(tenant="ann", namespace=namespace):
                strict.cache.update(Request(question=QUESTION), "Thirty days.")
                found = strict.cache.lookup(Request(question=next(iter(SAME.values()))))
            assert (found.level if isinstance(found, Hit) else None) is level
            assert level or (isinstance(found, Miss) and found.reason is Reason.BELOW_THRESHOLD)
