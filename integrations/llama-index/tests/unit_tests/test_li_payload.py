"""Responses as bytes: what comes back equal, and what is not stored."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_fakes import INDEX, Corpus, DigestLLM
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from llama_index_stampcache import CachedQueryEngine
from llama_index_stampcache.engines.payload import Payload, PayloadError, decode, draft, respond
from llama_index_stampcache.evidence import evidence_of
from stampcache import Cache
from stampcache.errors import CanonicalError

plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e9, 1e9)
metadata = st.dictionaries(st.text(), plain, max_size=4)
nodes = st.builds(
    lambda text, meta, score: NodeWithScore(node=TextNode(text=text, metadata=meta), score=score),
    st.text(),
    metadata,
    st.none() | st.floats(-1, 1),
)


def stored(response: Any, retrieved: Any = None) -> Payload | None:
    return draft(response, retrieved, None)


def back(payload: Payload | None, **options: Any) -> Any:
    assert payload is not None
    settings: dict[str, Any] = {"retrieved": None, "output_cls": None, "aio": False, **options}
    return respond(decode(payload.encode()), **settings)


@given(text=st.text(), sources=st.lists(nodes, max_size=3), given=st.none() | metadata)
def test_h2_texts_nodes_and_metadata_come_back_equal(
    text: str, sources: list[NodeWithScore], given: dict[str, Any] | None
) -> None:
    response = Response(text, sources, given)
    payload = stored(response)
    made = back(payload)
    assert made == response and made.source_nodes is not response.source_nodes
    fresh = back(payload, retrieved=sources)
    assert fresh == response


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="a", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}),
        TextNode(text="a", excluded_llm_metadata_keys=["x"], metadata={"x": 1}),
        TextNode(text="a", embedding=[0.1, 0.2]),
        Document(text="a", metadata={"x": "y"}),
        Node(text_resource=MediaResource(text="a")),
        IndexNode(text="a", index_id="i"),
    ],
)
def test_h14_known_nodes_come_back_equal(node: BaseNode) -> None:
    response = Response("text", [NodeWithScore(node=node, score=0.5)], {"a": [1, None]})
    made = back(stored(response))
    assert made == response and type(made.source_nodes[0].node) is type(node)


class OwnNode(TextNode):
    """A class that this package does not know."""


@pytest.mark.parametrize(
    "response",
    [
        Response("a", [NodeWithScore(node=OwnNode(text="a"))]),
        Response("a", [NodeWithScore(node=IndexNode(text="a", index_id="i", obj=TextNode()))]),
        Response("a", [NodeWithScore(node=TextNode(metadata={"day": datetime.date(2024, 1, 1)}))]),
        Response("a", [NodeWithScore(node=TextNode(metadata={"pair": (1, 2)}))]),
        Response("a", [], {"day": datetime.date(2024, 1, 1)}),
        Response("a", [], {"object": object()}),
        Response("a", [], {"lone": "\ud800"}),
        StreamingResponse(iter(()), response_txt="read already"),  # type: ignore[arg-type]
        "no response at all",
    ],
)
def test_what_would_not_come_back_equal_is_not_stored(response: Any) -> None:
    assert stored(response) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version":1}',
        b'{"version":1,"kind":"text","nodes":[],"as_retrieved":false,"node_metadata":false}',
        b'{"version":1,"kind":"text","nodes":[{"kind":"TextNode","node":1,"score":1}],'
        b'"as_retrieved":false,"node_metadata":false,"metadata":null}',
    ],
)
def test_h15_damage_is_one_error(data: bytes) -> None:
    with pytest.raises(PayloadError):
        decode(data)


def test_nodes_of_unknown_classes_are_refused() -> None:
    data = (
        b'{"version":1,"kind":"text","text":"a","as_retrieved":false,"node_metadata":false,'
        b'"metadata":null,"nodes":[{"kind":"os.system","node":{},"score":null}]}'
    )
    with pytest.raises(PayloadError, match=r"os\.system"):
        respond(decode(data), retrieved=None, output_cls=None, aio=False)


def test_an_answer_of_a_class_of_its_own_goes_through_unchanged(
    cache: Cache, llm: DigestLLM
) -> None:
    class Own(Response):
        """Not a response of the framework."""

    own = Own("thirty days")

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            return own

    engine = CachedQueryEngine(Engine(), cache=cache, grounding="none", stamps=INDEX)
    assert engine.query("how long?") is own and engine.query("how long?") is own
    assert cache.stats().entries == 0
    assert cache.core.counters.of(None)["adapter.not_storable"] == 2


def test_a_response_that_an_engine_keeps_is_not_written_to(cache: Cache) -> None:
    kept = Response("thirty days", metadata={"a": 1})

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            return kept

    engine = CachedQueryEngine(Engine(), cache=cache, grounding="none", stamps=INDEX)
    assert engine.query("how long?").metadata != kept.metadata == {"a": 1}


@pytest.mark.parametrize(
    "node",
    [
        ImageNode(text="a", image_url="http://example.com/a.png"),
        Node(image_resource=MediaResource(data=b"abcd")),
    ],
)
def test_media_are_no_evidence(node: BaseNode) -> None:
    with pytest.raises(CanonicalError, match="carries media"):
        evidence_of([NodeWithScore(node=node)], corpus="")


def test_a18_chunks_are_told_apart_and_ids_do_not_count() -> None:
    def digests(*texts: str) -> list[str]:
        found = [NodeWithScore(node=TextNode(text=text), score=0.1) for text in texts]
        return [one.digest for one in evidence_of(found, corpus="c")]

    assert digests("ab", "c") == digests("ab", "c")
    assert digests("ab", "c") != digests("a", "bc")
    assert len(set(digests("same", "same"))) == 1


def test_evidence_says_where_a_chunk_comes_from() -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="leave.md")}
    node = TextNode(id_="n1", text="thirty days", relationships=source)
    (one,) = evidence_of([NodeWithScore(node=node, score=0.5)], corpus="handbook")
    assert (one.corpus, one.source, one.chunk) == ("handbook", "leave.md", "n1")
    assert (one.score, one.rank) == (0.5, 0)


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({"file_name": "leave.md", "file_path": "/handbook/leave.md"}, "/handbook/leave.md"),
        ({"file_name": "leave.md"}, "leave.md"),
        ({"url": "http://intranet/leave"}, "http://intranet/leave"),
        ({"source": 7, "page": 3}, "0fc1"),
    ],
)
def test_a_source_is_what_the_metadata_calls_so_else_the_document(
    metadata: dict[str, Any], source: str
) -> None:
    document = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="0fc1")}
    node = TextNode(text="thirty days", metadata=metadata, relationships=document)
    (one,) = evidence_of([NodeWithScore(node=node)], corpus="handbook")
    assert one.source == source


def test_an_engine_of_media_is_not_cached(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, top_k=1), cache=cache)
    picture = ImageNode(text="annual leave", image_url="http://example.com/a.png")
    corpus.index.insert_nodes([picture])
    response: Any = engine.query("annual leave")
    assert response.metadata["cache"]["reason"] == "uncacheable"
