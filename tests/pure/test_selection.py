"""One rule says which entries a change touches, for deleting and for refusing late fills."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.model import Entry, Evidence, Selector, Stamps
from stampcache.stores.selection import refused, touches
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
    assert refused([Selector(entry="other"), selector], ENTRY) is expected


@pytest.mark.parametrize("evidence", [None, ()])
def test_an_entry_that_cites_nothing_is_touched_by_no_document(
    evidence: tuple[Evidence, ...] | None,
) -> None:
    entry = make_entry("k", evidence=evidence)
    assert not touches(Selector(corpus="c"), entry)


def test_nothing_later_refuses_nothing() -> None:
    assert not refused([], ENTRY)


FIELDS = st.none() | st.sampled_from(["", "a", "ab"])
SELECTORS = st.builds(
    Selector, corpus=FIELDS, source=FIELDS, chunk=FIELDS, entry=FIELDS, scope=FIELDS
)
ENTRIES = st.builds(
    lambda scope, entry_id, cited: make_entry("k", scope=scope, entry_id=entry_id, evidence=cited),
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
    ).map(tuple),
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
