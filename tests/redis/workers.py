"""Processes that use a cache beside the test's own, and say in lines of JSON what they saw."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import dedent
from typing import Any


def environment() -> dict[str, str]:
    """Return an environment in which a Python can import what the tests can."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))


def python(code: str, *arguments: str, within: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a Python with this code; it can import what the tests can."""
    return subprocess.Popen(
        [*within, sys.executable, "-c", dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


class Worker:
    """One such process. `tell` sends it a line, `hear` returns the next value that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, value: object = None) -> None:
        """Send it a value as a line of JSON."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Return the next value that it printed; an error where it ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the process ended ({self._process.wait()})"
        return json.loads(line)

    def rest(self) -> list[Any]:
        """Return all that it printed until it ended; a half line of a killed one is left out."""
        assert self._process.stdout is not None
        lines = self._process.stdout.read().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """End it as a power cut does."""
        self._process.kill()

    def pause(self) -> None:
        """Stop it in the middle of whatever it does."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def workers(
    count: int, code: str, *arguments: str, within: Sequence[str] = ()
) -> Iterator[list[Worker]]:
    """Start so many, each with its number as first argument; at the end none is left."""
    started = [python(code, str(at), *arguments, within=within) for at in range(count)]
    try:
        yield [Worker(process) for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()


PROLOGUE = """
import json, sys

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def tell(value=None):
    print(json.dumps(value), flush=True)

number, *arguments = sys.argv[1:]
number = int(number)
"""


def code(body: str) -> str:
    """Return the code of a worker that has ``hear``, ``tell``, ``number`` and ``arguments``."""
    return PROLOGUE + dedent(body)
