"""Processes that use a cache beside the test's own, and say what they saw.

They are forked from a server that has imported what they need, so that one is born in milliseconds.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from textwrap import dedent
from typing import Any

_HEARD_S = 120.0


def environment() -> dict[str, str]:
    """Return an environment in which a Python can import what the tests can."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))


def python(code: str, *arguments: str, within: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a Python with this code, from nothing."""
    return subprocess.Popen(
        [*within, sys.executable, "-c", dedent(code), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


class Worker:
    """One process. `tell` sends it a value, `hear` returns the next one that it told."""

    def __init__(self, pid: int, pipe: Connection) -> None:
        self._pid = pid
        self._pipe = pipe

    def tell(self, value: object = None) -> None:
        """Send it a value."""
        self._pipe.send(value)

    def hear(self) -> Any:
        """Return the next value that it told; an error where it ended instead."""
        assert self._pipe.poll(_HEARD_S), "the process says nothing"
        return self._pipe.recv()

    def rest(self) -> list[Any]:
        """Return all that it told until it ended."""
        told = []
        while True:
            try:
                told.append(self.hear())
            except (EOFError, OSError):  # a killed one leaves half a value, or none
                return told

    def kill(self) -> None:
        """End it as a power cut does."""
        os.kill(self._pid, signal.SIGKILL)

    def pause(self) -> None:
        """Stop it in the middle of whatever it does."""
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self._pid, signal.SIGCONT)


@contextmanager
def workers(count: int, code: str, *arguments: str) -> Iterator[list[Worker]]:
    """Start so many processes that run this code; at the end none is left.

    The code has ``hear`` and ``tell``, its ``number`` from 0 on, and the ``arguments``.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.redis.apps", "tests.redis.probing"])
    processes, pipes = [], []
    try:
        for number in range(count):
            mine, theirs = context.Pipe()
            pipes.append(mine)
            work = (theirs, dedent(code), number, arguments)
            processes.append(context.Process(target=_run, args=work, daemon=True))
            processes[-1].start()
            theirs.close()
        pairs = zip(processes, pipes, strict=True)
        yield [Worker(process.pid or 0, pipe) for process, pipe in pairs]
    finally:
        for process in processes:
            process.kill()
            process.join()
        for pipe in pipes:
            pipe.close()


def _run(pipe: Connection, code: str, number: int, arguments: tuple[str, ...]) -> None:
    def hear() -> Any:
        try:
            return pipe.recv()
        except EOFError:
            return None

    given = {"hear": hear, "tell": pipe.send, "number": number, "arguments": arguments}
    exec(compile(code, "<worker>", "exec"), given)
