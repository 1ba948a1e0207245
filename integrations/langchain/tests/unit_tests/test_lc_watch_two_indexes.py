"""Two indexes under one name, and what an index holds otherwise than the cache was told."""

import gc

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watched import HANDBOOK, Compass, Desk, page

from langchain_stampcache import CachedChain, CachedRetriever, watch
from stampcache import Cache, ConfigError


def asks(chain: CachedChain, question: str = "@0 how long") -> tuple[bool, list[str]]:
    """Return whether it was a hit, and what it was answered from."""
    said = chain.invoke({"input": question})
    return said["cache"]["hit"], [one.page_content for one in said["context"]]


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10, "ten", id="a"))


def other_desk(cache: Cache) -> Desk:
    return Desk(cache, page(10, "ten", id="a"))


def test_what_is_written_to_a_second_index_ends_its_answers(opened: Cache, desk: Desk) -> None:
    other = other_desk(opened)
    for written in (page(10, "eleven", id="a"), page(20, "new", id="b")):
        desk.store.add_documents([written])
        chain = other.chain(other.retriever(k=3))
        before = asks(chain)[1]
        assert asks(chain) == (True, before)
        other.store.add_documents([written])  # which is known, of the first index
        hit, found = asks(chain)
        assert not hit
        assert written.page_content in found
    assert opened.stats(everything=True).counters["watch.two_indexes"] == 1


def test_each_of_two_indexes_is_answered_from_what_was_made_from_it(
    opened: Cache, desk: Desk
) -> None:
    other = Desk(opened, page(11, "other", id="z"))
    chains = [one.chain(one.retriever(k=1)) for one in (desk, other)]
    assert [asks(chain) for chain in chains] == [(False, ["@10 ten"]), (False, ["@11 other"])]
    assert [asks(chain) for chain in chains] == [(True, ["@10 ten"]), (True, ["@11 other"])]


def test_what_may_be_stale_inside_is_refused(opened: Cache, desk: Desk) -> None:
    inner = CachedRetriever(
        inner=desk.retriever(k=1), cache=opened, grounding="watch", allow_stale=True
    )
    with pytest.raises(ConfigError, match="leave out its allow_stale="):
        desk.chain(inner)


def test_an_index_that_is_gone_is_none(opened: Cache, desk: Desk) -> None:
    other = other_desk(opened)
    assert not desk.store.watched.is_alone
    del other
    gc.collect()
    assert desk.store.watched.is_alone


def test_two_stores_of_one_index_are_one(opened: Cache, desk: Desk) -> None:
    second = watch(desk.store.inner, cache=opened, corpus=HANDBOOK)
    assert desk.store.watched.is_alone
    chain = desk.chain(desk.retriever(k=1))
    asks(chain)
    second.add_documents([page(60, "elsewhere")])
    assert asks(chain)[0]
    second.add_documents([page(5, "closer")])
    assert asks(chain) == (False, ["@5 closer"])


# -- what was written around the watch ---------------------------------------------------------------


def test_a_write_of_what_was_found_otherwise_ends_an_answer(opened: Cache, desk: Desk) -> None:
    chain = desk.chain(desk.retriever(k=1))
    desk.store.inner.add_documents([page(10, "around", id="a")])
    assert asks(chain) == (False, ["@10 around"])
    assert asks(chain) == (True, ["@10 around"])
    desk.store.add_documents([page(10, "ten", id="a")])  # as the cache knew it all the time
    assert asks(chain) == (False, ["@10 ten"])
    assert asks(chain) == (True, ["@10 ten"])


def test_a_deletion_of_what_was_never_known_ends_an_answer(opened: Cache, desk: Desk) -> None:
    chain = desk.chain(desk.retriever(k=1))
    desk.store.inner.add_documents([page(0, "around", id="x")])
    assert asks(chain) == (False, ["@0 around"])
    desk.store.delete(["x"])
    assert asks(chain) == (False, ["@10 ten"])


def test_nothing_else_ends_with_it(opened: Cache, desk: Desk) -> None:
    desk.store.add_documents([page(90, "far")])
    chain = desk.chain(desk.retriever(k=1))
    asks(chain, "@90 far")
    desk.store.inner.add_documents([page(10, "around", id="a")])
    asks(chain)
    desk.store.add_documents([page(10, "ten", id="a")])
    assert asks(chain, "@90 far") == (True, ["@90 far"])


def test_embedders_are_asked_as_before(opened: Cache) -> None:
    compass = Compass()
    stores = [watch(InMemoryVectorStore(compass), cache=opened, corpus="c") for _ in range(2)]
    for store in stores:
        assert store.embeddings is compass
