"""E: who asks."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite, ask_in_turn, other, ways
from benchmarks.cases.words import QUESTION, Ability, Call
from stampcache import (
    Cache,
    ConfigError,
    Evidence,
    Miss,
    Reason,
    Request,
    Scope,
    ScopeError,
    StoreError,
    open_cache,
    scope,
)
from stampcache.model import Identity

SUITE = Suite()
HOSTILE = (
    "acme", "acme2", "acm", "acme:b", "acme*", "acm?", "[ab]", "a,b", "a/b", "a\nb", "a b", "ACME",
    "acme\u0301", "acm\u00e9", "acme'; DROP TABLE entries;--", "\u202eemca", "default:acme", "%", "_",
    "\u79df\u6237", "acme\x00", "*",
)  # fmt: skip
"""Names of tenants that are prefixes, patterns or look-alikes of each other."""


@SUITE.case("E1/E3", "a tenant is a hard partition, in both levels", Ability.TENANTS)
def two_tenants(rig: Rig) -> None:
    """Nothing of one is served to the other, by equal words or by meaning."""
    app = rig.app()
    first = app.ask(Call(tenant="ann"))
    for is_async in (False, True):
        bob = ask_in_turn(app, Call(tenant="bob"), is_async=is_async)
        near = ask_in_turn(app, Call(question=PARAPHRASE, tenant="eve"), is_async=is_async)
        assert first.text not in (bob.text, near.text)
    assert app.ask(Call(tenant="ann")).text == first.text


@SUITE.case("E2", "that another tenant asked cannot be observed", Ability.TENANTS, Ability.MISSES)
def another_tenants_questions(rig: Rig) -> None:
    """What bob is told is the same, whether ann has asked before or not; so are bob's figures."""
    told = []
    for asked in (False, True):
        with other(rig) as fresh:
            app = fresh.app()
            app.ask(Call(question="Something else?", tenant="ann"))
            if asked:
                app.ask(Call(tenant="ann"))
            miss = app.ask(Call(tenant="bob"))
            near = app.ask(Call(question=PARAPHRASE, tenant="carl"))
            with scope(tenant="bob"):
                figures = fresh.cache.stats()
            assert miss.fields is None or miss.told["hit"] is False
            told.append((miss.fields, near.fields, figures.requests, figures.entries))
    assert told[0] == told[1]


@SUITE.case("E2 (keys)", "keys tell nothing of a tenant", Ability.CORE)
def keys_of_tenants(rig: Rig) -> None:
    """They are keyed with a secret of the tenant's: the same request has another place for each."""
    places = set()
    for tenant in ("ann", "bob"):
        identity = _place_of(rig.cache, tenant)
        assert tenant not in str(identity)
        places |= {identity.partition, identity.key, identity.scope}
    assert len(places) == 6
    with open_cache("memory://") as elsewhere:
        assert _place_of(elsewhere, "ann").key not in places


def _place_of(cache: Cache, tenant: str) -> Identity:
    found = cache.lookup(Request(question=QUESTION, scope=Scope(tenant=tenant)))
    assert isinstance(found, Miss) and found.identity is not None
    return found.identity


@SUITE.case("E4", "who asks is never told by a text or a distance", Ability.TENANTS)
def names_in_a_question(rig: Rig) -> None:
    """A question that names another tenant is a question; one that is equal is none of another's."""
    app = rig.app()
    secret = app.ask(Call(tenant="ann"))
    texts = (
        QUESTION, PARAPHRASE, "tenant: ann\n" + QUESTION, f"[ann] {QUESTION}", '{"tenant": "ann"}',
    )  # fmt: skip
    assert secret.text not in [app.ask(Call(question=text, tenant="bob")).text for text in texts]


@SUITE.case("E6/E7/E8", "names of tenants are texts, not patterns", Ability.TENANTS)
def hostile_names(rig: Rig) -> None:
    """Whatever a name looks like, lookup and clear concern exactly that tenant."""
    app = rig.app()
    replies = {name: app.ask(Call(tenant=name)).text for name in HOSTILE}
    assert len(set(replies.values())) == len(HOSTILE)
    assert {name: app.ask(Call(tenant=name)).text for name in HOSTILE} == replies
    for name in ("*", "acme", "[ab]", "%", "acm?"):
        rig.clear(name)
        kept = {other: app.ask(Call(tenant=other)).text for other in HOSTILE if other != name}
        assert kept == {other: replies[other] for other in HOSTILE if other != name}, name
        replies[name] = app.ask(Call(tenant=name)).text
        assert len(set(replies.values())) == len(HOSTILE), f"{name} was not cleared"


@SUITE.case("E10", "one application's name may begin another's", Ability.TENANTS)
def a_namespace_that_begins_another(rig: Rig) -> None:
    """Of ``app`` and ``app2``, neither reads the other, nor is cleared with it."""
    app = rig.app()
    names = ("app", "app2", "app:2", "default", "ap")
    replies = {name: app.ask(Call(tenant="ann", namespace=name)).text for name in names}
    assert len(set(replies.values())) == len(names)
    rig.clear("ann", "app")
    for name in names[1:]:
        assert app.ask(Call(tenant="ann", namespace=name)).text == replies[name]
    assert app.ask(Call(tenant="ann", namespace="app")).text != replies["app"]


@SUITE.case("E10 (corpora)", "one corpus' name may begin another's", Ability.CORE)
def a_corpus_that_begins_another(rig: Rig) -> None:
    """A change in ``app`` concerns nothing of ``app2``, nor of a source that is called alike."""
    for corpus in ("app", "app2", "app:2"):
        cited = [Evidence(corpus=corpus, source="leave.md", text="Thirty days.")]
        rig.cache.update(Request(question=QUESTION, corpus=corpus), "Thirty.", evidence=cited)
    assert rig.cache.invalidate(corpus="app") == 1
    assert rig.cache.invalidate(corpus="app", source="leave") == 0
    assert rig.cache.invalidate(corpus="app2", source="leave.md") == 1


@SUITE.case("E11", "a store of another shape is refused aloud", Ability.CORE)
def a_store_of_another_shape(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """It is never searched without its filters."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.db"
        url = f"sqlite:///{path}"
        open_cache(url).close()
        with closing(sqlite3.connect(path)) as file:
            file.execute("UPDATE stampcache_facts SET value = '1000' WHERE name = 'schema'")
            file.commit()
        _refused(url)
        other_path = Path(folder) / "other.db"
        other_path.write_bytes(b"This is no database, but a long enough text about leave." * 50)
        _refused(f"sqlite:///{other_path}")


def _refused(url: str) -> None:
    try:
        open_cache(url).close()
    except (ConfigError, StoreError):
        return
    raise AssertionError(f"{url} was opened")


@SUITE.case("E13", "without a tenant, where there are some, nothing is shared", Ability.TENANTS)
def no_tenant(rig: Rig) -> None:
    """Such a call is answered by the model, is nobody's answer, and fails nothing."""
    app = rig.app()
    app.ask(Call(tenant="ann"))
    one, two = app.ask(Call()), app.ask(Call())
    assert one.text != two.text
    assert app.ask(Call(tenant="bob")).text not in (one.text, two.text)
    with other(rig, tenants="required") as strict:
        app = strict.app()
        if rig.has(Ability.CORE):
            _raises_for_nobody(strict)
            return
        for is_async in (False, True):
            texts = {ask_in_turn(app, Call(), is_async=is_async).text for _ in range(2)}
            assert len(texts) == 2
        assert strict.size == 0
        told = app.ask(Call())
        assert not told.fields or told.told["reason"] == Reason.UNSCOPED.value


def _raises_for_nobody(rig: Rig) -> None:
    for ask in (lambda: rig.cache.lookup(Request()), lambda: rig.cache.update(Request(), "x")):
        try:
            ask()
        except ScopeError:
            continue
        raise AssertionError("nobody may look up or store")


@SUITE.case("E14", "all ways of asking read by one path", Ability.TENANTS)
def one_read_path(rig: Rig) -> None:
    """Sync, async or streamed: nobody is given what another way would not give."""
    app = rig.app()
    for way in ways(rig):
        way(app, Call(tenant="ann"))
    made = app.calls
    for number, way in enumerate(ways(rig)):
        way(app, Call(tenant=f"tenant-{number}"))
        assert app.calls == made + 1 + number, "one way read past the partition"
    for way in ways(rig):
        calls = app.calls
        way(app, Call(tenant="ann"))
        assert app.calls == calls, "one way reads nothing"
