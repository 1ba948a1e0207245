"""F: time, and documents that change."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite, ask_in_turn, other, saying, ways
from benchmarks.cases.words import QUESTION, Ability, Call, Said
from stampcache import Evidence, Hit, Lifetime, Request, Scope, Stamps, open_cache
from stampcache.testing import FakeClock

SUITE = Suite()
LEAVE = "Annual leave is thirty days."
TRAVEL = "Travel is paid for by train."
ABOUT_TRAVEL = "How is travel paid for?"


@SUITE.case("F1", "a new document that matters is noticed", Ability.DOCUMENTS)
def a_new_document(rig: Rig) -> None:
    """What was answered without it is not served: not to the question, nor to a paraphrase."""
    app = rig.app()
    rig.write("leave.md", LEAVE)
    first = app.ask(Call())
    assert app.ask(Call()).text == first.text
    rig.write("news.md", "Annual leave is thirty-two days from next year on.")
    second = app.ask(Call(question=PARAPHRASE))
    assert second.text != first.text
    for is_async in (False, True):
        assert ask_in_turn(app, Call(), is_async=is_async).text != first.text


@SUITE.case(
    "F2", "a file that is edited takes its answers with it", Ability.DOCUMENTS, Ability.CITES
)
def an_edited_file(rig: Rig) -> None:
    """Answers from other files stay."""
    with_sources = rig.citing()
    app = with_sources.app()
    with_sources.write("leave.md", LEAVE)
    with_sources.write("travel.md", TRAVEL)
    leave, travel = app.ask(Call()), app.ask(Call(question=ABOUT_TRAVEL))
    with_sources.write("leave.md", "Annual leave is thirty-two days.")
    assert app.ask(Call()).text != leave.text
    assert app.ask(Call(question=ABOUT_TRAVEL)).text == travel.text
    with_sources.delete("travel.md")
    assert app.ask(Call(question=ABOUT_TRAVEL)).text != travel.text
    with_sources.close()


@SUITE.case("F3", "what was unknown before a document came is asked again", Ability.DOCUMENTS)
def an_answer_from_nothing(rig: Rig) -> None:
    """ "I don't know" holds as long as nothing is known."""
    app = rig.app()
    app.reply_with(saying(Said(text="I don't know."), Said(text="Thirty days.")))
    rig.write("travel.md", TRAVEL)
    assert app.ask(Call()).text == "I don't know."
    rig.write("leave.md", LEAVE)
    assert app.ask(Call()).text == "Thirty days."


@SUITE.case("F5", "answers are invalidated by what they depend on", Ability.CORE)
def invalidation(rig: Rig) -> None:
    """By source, chunk, entry, stamp and scope; and each time nothing else."""
    cache = rig.cache
    stamps = Stamps(model="weights-1")
    for number in range(3):
        cited = [Evidence(corpus="c", source=f"{number}.md", chunk=f"{number}-1", text=str(number))]
        cache.update(Request(question=f"Number {number}?"), "Yes.", evidence=cited)
    cache.update(Request(question="By a model?", stamps=stamps), "Yes.")
    cache.update(Request(question="Of whom?", scope=Scope(tenant="ann")), "Ann.")

    def served() -> list[bool]:
        asked = [Request(question=f"Number {number}?", scope=Scope()) for number in range(3)]
        asked.append(Request(question="By a model?", stamps=stamps, scope=Scope()))
        asked.append(Request(question="Of whom?", scope=Scope(tenant="ann")))
        return [isinstance(cache.lookup(request), Hit) for request in asked]

    assert served() == [True] * 5
    assert cache.invalidate(source="0.md") == 1 and served() == [False, True, True, True, True]
    assert cache.invalidate(chunk="1-1") == 1 and served() == [False, False, True, True, True]
    found = cache.lookup(Request(question="Number 2?", scope=Scope()))
    assert isinstance(found, Hit) and cache.invalidate(entry=found.entry_id) == 1
    assert served() == [False, False, False, True, True]
    assert cache.invalidate(stamps=stamps) == 1 and served() == [False, False, False, False, True]
    assert cache.invalidate(scope=Scope(tenant="ann")) == 1 and not any(served())


@SUITE.case(
    "F5 (seam)", "an answer can be invalidated at the seam", Ability.STAMPED, Ability.TENANTS
)
def invalidation_at_a_seam(rig: Rig) -> None:
    """All answers of a scope; and, where a hit tells its entry, that one."""
    app = rig.app()
    ann, bob = app.ask(Call(tenant="ann")), app.ask(Call(tenant="bob"))
    assert rig.cache.invalidate(scope=Scope(tenant="ann")) == 1
    assert app.ask(Call(tenant="ann")).text != ann.text
    hit = app.ask(Call(tenant="bob"))
    assert hit.text == bob.text
    if rig.has(Ability.FIELDS):
        assert rig.cache.invalidate(entry=hit.told["entry_id"]) == 1
        assert app.ask(Call(tenant="bob")).text != bob.text


@SUITE.case("F6", "hits do not make an answer live longer", Ability.TIME)
def hits_and_life(rig: Rig) -> None:
    """However often it is served, its time ends."""
    with other(rig, ttl_s=100.0) as mortal:
        app = mortal.app()
        first = app.ask(Call())
        for _ in range(9):
            mortal.spend(10.0)
            assert app.ask(Call()).text == first.text
        mortal.spend(11.0)
        assert app.ask(Call()).text != first.text


@SUITE.case("F6 (sliding)", "a life that slides has an end", Ability.CORE)
def a_sliding_life(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Where hits are to prolong it, a cap is needed, and holds."""
    clock = FakeClock()
    sliding = {"news": Lifetime(ttl_s=100.0, cap_s=300.0)}
    with open_cache("memory://", clock=clock, lifetimes=sliding) as cache:
        asked = Request(question=QUESTION, kind="news")
        cache.update(asked, "Thirty days.")
        served = 0
        while isinstance(cache.lookup(asked), Hit):
            clock.advance(50.0)
            served += 1
        assert 4 <= served <= 7


@SUITE.case("F9", "what is deleted leaves no orphan", Ability.CORE)
def no_orphans(rig: Rig) -> None:
    """Neither an entry, nor a vector, nor anything that the store would complain of."""
    for number in range(5):
        cited = [Evidence(corpus="c", source="leave.md", text=str(number))]
        rig.cache.update(Request(question=f"Number {number}?"), "Yes.", evidence=cited)
    store = rig.cache.core.store
    assert rig.cache.invalidate(corpus="c", source="leave.md") == 5
    assert (store.stats().entries, store.stats().vectors) == (0, 0)
    assert rig.cache.purge() == 5
    assert store.stats().invalidated == 0 and not store.problems()


@SUITE.case("F11", "a hit returns what a miss would", Ability.REPLIES)
def equal_returns(rig: Rig) -> None:
    """The same type with the same content, in each way of asking."""
    app = rig.app()
    if rig.has(Ability.DOCUMENTS):
        rig.write("leave.md", LEAVE)
    app.reply_with(saying(Said(text="Thirty days.", reasoning="It says so.")))
    for number, way in enumerate(ways(rig)):
        call = Call(question=f"How long is annual leave in year {number}?")
        fresh, hit = way(app, call), way(app, call)
        assert hit.essence == fresh.essence
        assert type(hit.raw) is type(fresh.raw)
        assert hit.text == "Thirty days."
        assert app.calls == number + 1
        if rig.has(Ability.MISSES):
            assert hit.told.keys() == fresh.told.keys()


_UNITS = {
    "ttl": "_s", "timeout": "_s", "lifetime": "_s", "age": "_s", "latency": "_s", "cap": "_s",
    "granularity": "_s", "deadline": "_s", "bytes": "_bytes", "tokens": "_tokens",
}  # fmt: skip


@SUITE.case("F12", "units stand in names", Ability.CORE)
def units_in_names(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """A number of seconds, bytes or tokens says so, in every public signature."""
    import stampcache

    for name in stampcache.__all__:
        public = getattr(stampcache, name)
        if not callable(public) or (isinstance(public, type) and issubclass(public, Exception)):
            continue
        for option, parameter in inspect.signature(public).parameters.items():
            if "float" not in str(parameter.annotation) and "int" not in str(parameter.annotation):
                continue
            unit = _UNITS.get(option.split("_")[0])
            assert unit is None or option.endswith(unit), f"{name}({option}=) has no unit"


@SUITE.case("F13", "every way of writing gives a life", Ability.TIME)
def a_life_on_every_path(rig: Rig) -> None:
    """Whichever way an answer was made, its time ends in all ways of asking."""
    for number, way in enumerate(ways(rig)):
        with other(rig, ttl_s=100.0) as mortal:
            app = mortal.app()
            first = way(app, Call(tenant=f"tenant-{number}"))
            mortal.spend(50.0)
            assert way(app, Call(tenant=f"tenant-{number}")).text == first.text
            mortal.spend(51.0)
            assert way(app, Call(tenant=f"tenant-{number}")).text != first.text
            entries: Any = mortal.cache.core.store
            assert all(entry.expires_at is not None for entry in entries_of(entries))


def entries_of(store: Any) -> list[Any]:
    """Return all entries of a store in memory."""
    return [held.entry if hasattr(held, "entry") else held for held in _held(store)]


def _held(store: Any) -> list[Any]:
    return list(getattr(store, "_entries", {}).values())


@SUITE.case(
    "F15/F16", "documents are compared by what they say", Ability.DOCUMENTS, Ability.RECHECKS
)
def contents_not_ids(rig: Rig) -> None:
    """The same text under another id is the same; another text under the same id is not."""
    app = rig.app()
    rig.write("leave.md", LEAVE)
    first = app.ask(Call())
    rig.move("leave.md", "leave-2.md")
    assert app.ask(Call()).text == first.text
    rig.move("leave-2.md", "leave.md")
    rig.write("leave.md", "Annual leave is thirty-two days.")
    assert app.ask(Call()).text != first.text


@SUITE.case("F17", "equal questions at once are answered once", Ability.FLIGHTS)
def equal_questions_of_threads(rig: Rig) -> None:
    """Whoever comes while an answer is made waits for it."""
    app = rig.app()
    together = threading.Barrier(16, timeout=30)

    def ask(_: int) -> str:
        together.wait()
        return app.share(Call())

    with ThreadPoolExecutor(16) as pool:
        texts = set(pool.map(ask, range(16)))
    assert len(texts) == 1 and app.calls == 1
