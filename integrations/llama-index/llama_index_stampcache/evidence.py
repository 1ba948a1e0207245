"""Retrieved nodes as evidence: what of them reaches the model, and where they come from."""

from collections.abc import Collection, Sequence

from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    NodeWithScore,
)

from stampcache import Evidence
from stampcache.adapters import CanonicalError, chunk_digest, named_source


def evidence_of(
    nodes: Sequence[NodeWithScore],
    *,
    corpus: str,
    mode: MetadataMode = MetadataMode.LLM,
    volatile: Collection[str] | None = None,
) -> tuple[Evidence, ...]:
    """Return one piece of evidence per node, in rank order.

    The digest is taken over the text that the model sees; node and document ids never enter it.
    Its source is what the node's metadata calls so (`stampcache.adapters.SOURCE_NAMES`), which is a
    name that a user knows; else the id of its document.

    Args:
        nodes: what was retrieved.
        corpus: the name of the body of documents.
        mode: how an engine that does not use the node's LLM text renders it.
        volatile: given, nodes are compared as the watch of an index does: such metadata does not count,
            nor does white space.

    Raises:
        CanonicalError: a node carries an image, sound or video, whose content may change unseen.
    """
    return tuple(_evidence(one, rank, corpus, mode, volatile) for rank, one in enumerate(nodes))


def _evidence(
    one: NodeWithScore,
    rank: int,
    corpus: str,
    mode: MetadataMode,
    volatile: Collection[str] | None,
) -> Evidence:
    node = one.node
    if has_media(node):
        raise CanonicalError(
            f"The retrieved node {node.node_id!r} carries media, whose content may change unseen."
        )
    shown = node.get_content(metadata_mode=MetadataMode.LLM)
    other = {} if mode is MetadataMode.LLM else {"content": node.get_content(metadata_mode=mode)}
    return Evidence(
        corpus=corpus,
        source=source_of(node),
        chunk=node.node_id,
        text=shown,
        metadata=other,
        digest="" if volatile is None else node_digest(node, volatile),
        score=None if one.score is None else float(one.score),
        rank=rank,
    )


def node_digest(node: BaseNode, volatile: Collection[str]) -> str:
    """Return what stands for a node in a watched index.

    Two nodes have one digest where the model is shown the same of them and all their metadata are the
    same, since filters may look at any: but for what is volatile. Their ids and those of their
    documents say nothing.

    Raises:
        CanonicalError: its metadata holds a value that is no JSON.
    """
    bare = lasting(node, volatile)
    metadata = dict(bare.metadata)
    if isinstance(node, IndexNode):
        metadata["index of the object behind it"] = node.index_id
    return chunk_digest(
        bare.get_content(metadata_mode=MetadataMode.LLM), metadata, volatile=volatile
    )


def source_of(node: BaseNode) -> str:
    """Return what a node comes from, by the name that a user knows."""
    return named_source(node.metadata) or node.ref_doc_id or ""


def lasting(node: BaseNode, volatile: Collection[str]) -> BaseNode:
    """Return a node without its volatile metadata; the given one is left as it is."""
    if not any(name in node.metadata for name in volatile):
        return node
    kept = {name: value for name, value in node.metadata.items() if name not in volatile}
    return node.model_copy(update={"metadata": kept})


def has_media(node: BaseNode) -> bool:
    """Tell whether more than text may reach the model."""
    if isinstance(node, Node):
        return any((node.image_resource, node.audio_resource, node.video_resource))
    return isinstance(node, ImageNode)
