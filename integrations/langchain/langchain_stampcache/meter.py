"""Listens to the model calls inside one answer: what they took, and whether one was cut off."""

import threading
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from langchain_stampcache import readings
from stampcache import Usage


class Meter(BaseCallbackHandler):
    """A callback handler for one making of one answer; safe for the threads of that making."""

    run_inline = True  # under an async manager too: nothing here waits

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usages: list[Usage] = []
        self._reasons: list[str] = []

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ARG002
        """Note the usage and the finish reason of a call."""
        for generations in response.generations:
            with self._lock:
                self._usages.append(readings.usage_of(generations))
                self._reasons.extend(readings.finish_reason(each) for each in generations)

    @property
    def usage(self) -> Usage:
        """The tokens of all calls together."""
        with self._lock:
            return readings.total(self._usages)

    @property
    def finish_reason(self) -> str:
        """The first reason that is no plain end, else the last one; empty if nothing was seen."""
        with self._lock:
            return readings.worst(self._reasons)
