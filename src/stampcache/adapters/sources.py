"""Where a retrieved chunk comes from, by the metadata that loaders of frameworks write (pure)."""

from collections.abc import Mapping

SOURCE_NAMES = (
    "source", "file_path", "filename", "file_name", "document_id", "doc_id", "url", "path",
)  # fmt: skip
"""What loaders call the source of a document; the first one that is a text names it."""


def named_source(metadata: Mapping[str, object]) -> str:
    """Return what metadata calls the source of a chunk; empty, that is unknown, where it does not."""
    named = (metadata.get(name) for name in SOURCE_NAMES)
    return next((each for each in named if isinstance(each, str) and each), "")
