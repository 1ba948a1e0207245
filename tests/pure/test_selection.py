"""One rule says which entries a change touches, for marking them and for refusing late fills."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache.model import Entry, Evidence, Selector, Stamps
from stampcache.stores.dependencies import DependencyIndex
from stampcache.stores.selection import names_document, refused, touches, unmarked
from stampcache.testing.contract import make_entry

ENTRY = make_entry(
    "k",
    entry_id="e1",
    scope="s1",
    evidence=(
        Evidence(corpus="c", source="a.md", chunk="1", text="x"),
        Evidence(corpus="d", source="b.md", chunk="2", text="y"),
    ),
    stamps=Stamps(model="m", index="i"),
)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(), False),
        (Selector(stamps=Stamps()), False),
        (Selector(stamps=Stamps(), scope="s1"), False),
        (Selector(entry="e1"), True),
        (Selector(entry="e2"), False),
        (Selector(scope="s1"), True),
        (Selector(scope="s"), False),
        (Selector(stamps=Stamps(model="m")), True),
        (Selector(stamps=Stamps(model="m", index="i")), True),
        (Selector(stamps=Stamps(model="m", index="j")), False),
        (Selector(stamps=Stamps(prompt="p")), False),
        (Selector(corpus="c"), True),
        (Selector(corpus="e"), False),
        (Selector(source="b.md"), True),
        (Selector(source=""), False),
        (Selector(chunk="2"), True),
        (Selector(corpus="c", source="a.md", chunk="1"), True),
        (Selector(corpus="c", source="b.md"), False),
        (Selector(corpus="c", scope="s2"), False),
        (Selector(corpus="c", scope="s1", entry="e1"), True),
        (Selector(corpus="c", entry="e2"), False),
    ],
)
def test_f5_what_a_change_touches(selector: Selector, expected: bool) -> None:
    assert touches(selector, ENTRY) is expected
    changes = [Selector(entry="other"), selector]
    assert refused(changes, ENTRY) is (selector if expected else None)


UNKNOWN = {
    "corpus": Evidence(corpus="", source="a.md", chunk="1"),
    "source": Evidence(corpus="c", source="", chunk="1"),
    "chunk": Evidence(corpus="c", source="a.md", chunk=""),
}


@pytest.mark.parametrize("unknown", ["corpus", "source", "chunk"])
@pytest.mark.parametrize("wrong", ["", "corpus", "source", "chunk"])
def test_a_name_that_is_unknown_may_be_any(unknown: str, wrong: str) -> None:
    entry = make_entry("k", evidence=(UNKNOWN[unknown],))
    selector = replace(Selector(corpus="c", source="a.md", chunk="1"), **{unknown: "any"})
    if wrong:
        selector = replace(selector, **{wrong: "another"})
    assert touches(selector, entry) is (wrong in ("", unknown))


@pytest.mark.parametrize("field", ["corpus", "source", "chunk"])
def test_an_unknown_name_is_no_wildcard_of_the_change(field: str) -> None:
    selector = replace(Selector(), **{field: ""})
    assert not touches(selector, ENTRY)
    assert touches(selector, make_entry("k", evidence=(Evidence(text="x"),)))


DOCUMENT = Selector(corpus="c", source="new.md", chunk="9")


@pytest.mark.parametrize(
    ("evidence", "corpus", "whole_corpus", "expected"),
    [
        (None, "", False, False),  # it is not known to have asked any documents
        (None, "c", False, True),
        (None, "d", False, False),
        (None, "", True, True),
        ((), "", False, True),
        ((), "c", False, True),
        ((), "d", False, False),
        ((Evidence(corpus="c", source="a.md"),), "c", False, False),
        ((Evidence(corpus="c", source="a.md"),), "c", True, True),
        ((Evidence(corpus="c", source="a.md"),), "d", True, False),
    ],
)
def test_what_cites_nothing_known_depends_on_all_of_the_corpus_that_was_asked(
    evidence: tuple[Evidence, ...] | None, corpus: str, whole_corpus: bool, expected: bool
) -> None:
    entry = make_entry("k", evidence=evidence, corpus=corpus, whole_corpus=whole_corpus)
    assert touches(DOCUMENT, entry) is expected


def test_nothing_later_refuses_nothing() -> None:
    assert refused([], ENTRY) is None


def test_the_first_change_that_touches_refuses() -> None:
    first, second = Selector(corpus="c"), Selector(corpus="c", source="a.md")
    assert refused([Selector(corpus="x"), first, second], ENTRY) is first


def test_what_is_put_holds() -> None:
    assert unmarked(ENTRY) is ENTRY
    assert unmarked(replace(ENTRY, invalidated="something changed")) == ENTRY


FIELDS = st.none() | st.sampled_from(["", "a", "ab"])
SELECTORS = st.builds(
    Selector, corpus=FIELDS, source=FIELDS, chunk=FIELDS, entry=FIELDS, scope=FIELDS
)
ENTRIES = st.builds(
    lambda scope, entry_id, cited, corpus, whole: make_entry(
        "k", scope=scope, entry_id=entry_id, evidence=cited, corpus=corpus, whole_corpus=whole
    ),
    st.sampled_from(["a", "ab"]),
    st.sampled_from(["a", "ab"]),
    st.lists(
        st.builds(
            Evidence,
            corpus=st.sampled_from(["", "a", "ab"]),
            source=st.sampled_from(["", "a", "ab"]),
            chunk=st.sampled_from(["", "a", "ab"]),
        ),
        max_size=2,
    ).map(tuple)
    | st.none(),
    st.sampled_from(["", "a"]),
    st.booleans(),
)


@given(SELECTORS, SELECTORS, ENTRIES)
def test_a_selector_that_gives_more_touches_less(
    one: Selector, more: Selector, entry: Entry
) -> None:
    both = Selector(
        corpus=more.corpus if one.corpus is None else one.corpus,
        source=more.source if one.source is None else one.source,
        chunk=more.chunk if one.chunk is None else one.chunk,
        entry=more.entry if one.entry is None else one.entry,
        scope=more.scope if one.scope is None else one.scope,
    )
    if one != Selector() and touches(both, entry):
        assert touches(one, entry)


@given(SELECTORS, st.lists(ENTRIES, max_size=4))
def test_the_index_finds_all_that_a_change_touches(
    selector: Selector, entries: list[Entry]
) -> None:
    index = DependencyIndex()
    placed = [
        replace(entry, identity=replace(entry.identity, key=str(at)))
        for at, entry in enumerate(entries)
    ]
    for entry in placed:
        index.add(entry)
    found = index.candidates(selector)
    assert (found is None) is not names_document(selector)
    touched = {entry.place for entry in placed if touches(selector, entry)}
    assert found is None or touched <= found
    for gone in placed:
        index.drop(gone)
        left = index.candidates(selector)
        assert left is None or gone.place not in left
    empty = vars(DependencyIndex())
    assert vars(index) == empty, "what is dropped leaves nothing behind"


def test_the_index_finds_little_more_than_what_is_touched() -> None:
    index = DependencyIndex()
    for corpus, source, chunk in product("cd", "st", "12"):
        evidence = (Evidence(corpus=corpus, source=source, chunk=chunk),)
        index.add(make_entry(corpus + source + chunk, evidence=evidence))
    index.add(make_entry("unknown", evidence=()))
    for selector in (
        Selector(corpus="c"),
        Selector(source="s"),
        Selector(chunk="1"),
        Selector(corpus="c", source="s"),
        Selector(corpus="c", chunk="1"),
    ):
        found = index.candidates(selector)
        assert found is not None
        given_values = {selector.corpus, selector.source, selector.chunk} - {None}
        assert {key for _, key in found} == {"unknown"} | {
            "".join(names) for names in product("cd", "st", "12") if given_values <= set(names)
        }
