"""What a model of the cases says, and how often it was asked; the same for all frameworks."""

import threading

from benchmarks.cases.words import Said, Saying, numbered

INPUT_TOKENS = 11
OUTPUT_TOKENS = 7


class Script:
    """Says what `saying` gives for the question; safe for threads."""

    def __init__(self) -> None:
        self.calls = 0
        self.saying: Saying = numbered
        self.breaks_at: int | None = None
        self._lock = threading.Lock()

    def say(self, question: str) -> tuple[Said, int]:
        """Return what is said, and at the so-manieth call."""
        with self._lock:
            self.calls += 1
            call = self.calls
        return self.saying(question, call), call

    def in_stream(self, place: int) -> None:
        """Fail before this piece of a stream, if that is wanted."""
        if self.breaks_at == place:
            raise ConnectionError("the connection broke")
