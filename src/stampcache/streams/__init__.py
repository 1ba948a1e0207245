"""One making of a stream per key: whoever asks meanwhile reads along (ADR 0010, ADR 0016).

What the source gives is kept until it ends, so that a later reader gets the whole of it. It is read as
far as the reader that is farthest ahead wants it: a reader that stops early or goes on slowly keeps
nobody waiting. A failure of the source is everybody's. When the last reader has left before the end, the
source is closed; what it gave so far is lost.

Readers of threads (`threads`) and readers of a loop (`tasks`) do not meet, nor do those of two loops.
A request that came after a change does not join a stream that began before it.
"""

from stampcache.streams.opened import AsyncOpened, HandedOver, Opened
from stampcache.streams.registry import Streams
from stampcache.streams.tasks import AsyncReader
from stampcache.streams.threads import Reader

__all__ = ["AsyncOpened", "AsyncReader", "HandedOver", "Opened", "Reader", "Streams"]
