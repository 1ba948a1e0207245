"""K: what a hit is counted as."""

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite, ways
from benchmarks.cases.words import Ability, Call

SUITE = Suite()


@SUITE.case("K1/K2", "tokens are counted once, and a hit costs nothing", Ability.USAGE)
def tokens_are_counted_once(rig: Rig) -> None:
    """Three calls of which one was real: what the framework counts is one."""
    app = rig.app()
    assert app.metered([Call()] * 3) == 18 and app.calls == 1
    for way in ways(rig):
        hit = way(app, Call(question="Another one?"))
        hit = way(app, Call(question="Another one?"))
        assert not hit.usage
        if rig.has(Ability.FIELDS):
            saved = hit.told["saved"]
            assert saved["input_tokens"] + saved["output_tokens"] == 18


@SUITE.case("K3", "the breakdown of tokens survives", Ability.FIELDS, Ability.BREAKDOWN)
def the_breakdown(rig: Rig) -> None:
    """What a provider had cached, and what went into reasoning; of streams, too."""
    app = rig.app()
    for number, way in enumerate(ways(rig)):
        call = Call(question=f"Question {number}?")
        way(app, call)
        saved = way(app, call).told["saved"]
        assert (saved["input_tokens"], saved["output_tokens"]) == (11, 7)
        assert (saved["cached_tokens"], saved["reasoning_tokens"]) == (5, 3)


@SUITE.case("K5/K6", "a hit says that it is one", Ability.FIELDS)
def fields_of_a_hit(rig: Rig) -> None:
    """Hit, level, similarity, entry and reason; a miss says why it is none."""
    app = rig.app()
    made = app.ask(Call())
    if rig.has(Ability.MISSES):
        assert made.told["hit"] is False and made.told["reason"] == "not found"
        assert made.told["entry_id"] is None
    for way in ways(rig)[:2]:
        told = way(app, Call()).told
        assert (told["hit"], told["level"], told["similarity"]) == (True, "exact", 1.0)
        assert told["entry_id"] and told["reason"]
    if rig.has(Ability.MEANING):
        told = app.ask(Call(question=PARAPHRASE)).told
        assert (told["hit"], told["level"]) == (True, "semantic")
        assert 0.9 <= told["similarity"] < 1.0
    assert rig.cache.report_bad(told["entry_id"])
    assert app.ask(Call()).text != made.text
