"""What the cache did, as events of LlamaIndex's instrumentation, for whoever observes the application.

They hold figures and reasons, and no text of a question or an answer.
"""

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # re-exported by LlamaIndex
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import Field

from stampcache.adapters import CacheFields

_DISPATCHER = get_dispatcher(__name__)


class CacheEvent(BaseEvent):
    """What both events tell; the fields of ``response.metadata["cache"]``.

    ``seam`` says what was asked for: ``"query"``, ``"synthesize"``, ``"chat"``, ``"retrieve"`` or
    ``"model"``. ``saved`` holds tokens, cost and seconds; ``similarity`` is the cosine of the two
    questions.
    """

    seam: str
    reason: str
    level: str | None = None
    similarity: float | None = None
    entry_id: str | None = None
    saved: dict[str, float] = Field(default_factory=dict)


class CacheHitEvent(CacheEvent):
    """An answer came from the cache."""

    @classmethod
    def class_name(cls) -> str:
        """Name it to the framework."""
        return "CacheHitEvent"


class CacheMissEvent(CacheEvent):
    """An answer was made, or shared with an equal request; ``reason`` says why it was no hit."""

    @classmethod
    def class_name(cls) -> str:
        """Name it to the framework."""
        return "CacheMissEvent"


def tell(report: CacheFields, seam: str) -> None:
    """Dispatch the event for a report, in the span that is running."""
    kind = CacheHitEvent if report["hit"] else CacheMissEvent
    event = kind(
        seam=seam,
        reason=report["reason"],
        level=report["level"],
        similarity=report["similarity"],
        entry_id=report["entry_id"],
        saved=dict(report["saved"]),
    )
    _DISPATCHER.event(event)
