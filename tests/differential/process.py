"""A process that runs the application on the same file, and may be killed at any moment.

The side that is killed is a child of a nursery: a process that has imported the frameworks once and
forks, so that being born again takes milliseconds.
"""

import contextlib
import os
import signal
import sys
import traceback
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from tests.differential.world import Chunk, State


class Ask(Struct, frozen=True, tag=True):
    """Ask a question; ``die_at`` kills the process there."""

    state: State
    question: str
    tenant: str
    die_at: str = ""


class Invalidate(Struct, frozen=True, tag=True):
    """Tell the cache that documents changed."""

    source: str | None


class Write(Struct, frozen=True, tag=True):
    """Ingest a document into a watched index, or delete it where it has no chunks.

    ``way`` is one of those that apps have; ``spaced`` gives it other white space. ``die_at`` kills the
    process there.
    """

    state: State
    source: str
    chunks: list[Chunk]
    way: str
    spaced: bool = False
    die_at: str = ""


Command: TypeAlias = Ask | Invalidate | Write


class Told(Struct, frozen=True):
    """What came back; ``None`` everywhere if the process died."""

    text: str = ""
    cited: list[str] = []
    level: str = ""
    reason: str = ""
    count: int = 0
    died: bool = False


class OtherProcess:
    """The other side: one life after another, each a fork of the nursery."""

    def __init__(self, framework: str, mode: Any, folder: Path) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        raw = msgspec.json.encode(mode)
        self._process = context.Process(
            target=_nursery, args=(theirs, framework, raw, str(folder)), daemon=True
        )
        self._process.start()
        theirs.close()

    def open(self, url: str) -> None:
        """Begin a life on another file."""
        self._pipe.send_bytes(b"open " + url.encode())
        assert self._pipe.recv_bytes() == b"ready"

    def do(self, command: Command) -> Told:
        """Carry out a command; a process that dies of it is born again."""
        self._pipe.send_bytes(msgspec.json.encode(command))
        return msgspec.json.decode(self._pipe.recv_bytes(), type=Told)

    def close(self) -> None:
        self._pipe.send_bytes(b"end")
        self._process.join(10)
        self._pipe.close()


def _nursery(pipe: Connection, framework: str, mode: bytes, folder: str) -> None:
    """Hand each command to a child; where it died, say so and fork another."""
    import tests.differential.apps  # noqa: F401 - once, for all lives

    url = ""
    child: _Child | None = None
    while True:
        raw = pipe.recv_bytes()
        if raw == b"end":
            if child is not None:
                child.kill()
            return
        if raw.startswith(b"open "):
            url = raw[5:].decode()
            if child is not None:
                child.kill()
            child = _Child(framework, mode, url)
            pipe.send_bytes(b"ready")
            continue
        assert child is not None
        told = child.do(raw)
        if told is None:
            child.kill()
            child = _Child(framework, mode, url)
        pipe.send_bytes(told or msgspec.json.encode(Told(died=True)))


class _Child:
    def __init__(self, framework: str, mode: bytes, url: str) -> None:
        to_child, from_us = os.pipe()
        from_child, to_us = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(from_us)
            os.close(from_child)
            status = 1
            try:
                _live(os.fdopen(to_child, "rb"), os.fdopen(to_us, "wb"), framework, mode, url)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(to_child)
        os.close(to_us)
        self._to = os.fdopen(from_us, "wb")
        self._from = os.fdopen(from_child, "rb")

    def do(self, raw: bytes) -> bytes | None:
        self._to.write(len(raw).to_bytes(4) + raw)
        self._to.flush()
        head = self._from.read(4)
        return self._from.read(int.from_bytes(head)) if len(head) == 4 else None

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._from.close()
        with contextlib.suppress(BrokenPipeError):
            self._to.close()


def _live(commands: Any, answers: Any, framework: str, mode: bytes, url: str) -> None:
    from tests.differential.apps import Mode
    from tests.differential.side import Side

    side = Side(framework, msgspec.json.decode(mode, type=Mode), url)
    while head := commands.read(4):
        raw = commands.read(int.from_bytes(head))
        command = msgspec.json.decode(raw, type=Command)
        told = side.do(command)
        answer = msgspec.json.encode(told)
        answers.write(len(answer).to_bytes(4) + answer)
        answers.flush()
