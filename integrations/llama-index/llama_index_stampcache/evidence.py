"""Retrieved nodes as evidence: what of them reaches the model, and where they come from."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, ImageNode, MetadataMode, Node, NodeWithScore

from stampcache import Evidence
from stampcache.adapters import CanonicalError, named_source


def evidence_of(
    nodes: Sequence[NodeWithScore], *, corpus: str, mode: MetadataMode = MetadataMode.LLM
) -> tuple[Evidence, ...]:
    """Return one piece of evidence per node, in rank order.

    The digest is taken over the text that the model sees; node and document ids never enter it.
    Its source is what the node's metadata calls so (`stampcache.adapters.SOURCE_NAMES`), which is a
    name that a user knows; else the id of its document.

    Args:
        nodes: what was retrieved.
        corpus: the name of the body of documents.
        mode: how an engine that does not use the node's LLM text renders it.

    Raises:
        CanonicalError: a node carries an image, sound or video, whose content may change unseen.
    """
    return tuple(_evidence(one, rank, corpus, mode) for rank, one in enumerate(nodes))


def _evidence(one: NodeWithScore, rank: int, corpus: str, mode: MetadataMode) -> Evidence:
    node = one.node
    if has_media(node):
        raise CanonicalError(
            f"The retrieved node {node.node_id!r} carries media, whose content may change unseen."
        )
    shown = node.get_content(metadata_mode=MetadataMode.LLM)
    other = {} if mode is MetadataMode.LLM else {"content": node.get_content(metadata_mode=mode)}
    return Evidence(
        corpus=corpus,
        source=named_source(node.metadata) or node.ref_doc_id or "",
        chunk=node.node_id,
        text=shown,
        metadata=other,
        score=None if one.score is None else float(one.score),
        rank=rank,
    )


def has_media(node: BaseNode) -> bool:
    """Tell whether more than text may reach the model."""
    if isinstance(node, Node):
        return any((node.image_resource, node.audio_resource, node.video_resource))
    return isinstance(node, ImageNode)
