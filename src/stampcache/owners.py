"""Which process writes, and whether one that wrote is gone: so a crash is told from a slow write."""

import os
import socket
from pathlib import Path

from msgspec import Struct

from stampcache.corpora import Intent, Owner

LEASE_S = 900.0
"""After so long (seconds) a write of another machine, of which nothing can be seen, counts as crashed."""

_STATE, _START_TIME = 0, 19
"""Where the kernel tells the state of a process and when it began, after its name (proc(5))."""
_ENDED = ("Z", "X")
"""The states of a process that runs no more, though somebody has yet to take note of its end."""


class _Told(Struct, frozen=True):
    """What the kernel tells of a process, in its words; empty where that is nothing."""

    state: str = ""
    began: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED


def this_owner(cache: str) -> Owner:
    """Return this process, and one cache in it."""
    process = os.getpid()
    return Owner(_here(), process, _told_of(process).began, cache)


def is_gone(intent: Intent, now: float) -> bool:
    """Tell whether the process that wrote down an intent does not run any more.

    Of one on this machine since it was started, and in this container of it, the operating system knows;
    of any other only time tells.
    """
    owner = intent.owner
    if owner.host != _here():
        return now - intent.at > LEASE_S
    if not _runs(owner.process):
        return True
    told = _told_of(owner.process)
    if told.has_ended:
        return True
    return bool(told.began and owner.began) and told.began != owner.began


def _here() -> str:
    """Return where process ids mean what they mean here.

    Machines may share a name, and so may containers, whose process ids are their own.
    """
    said = [socket.gethostname()]
    for tell in (_boot, _process_space):
        try:
            said.append(tell())
        except OSError:  # this system does not tell
            continue
    return " ".join(said)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _process_space() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's, so it runs
        return True
    return True


def _told_of(process: int) -> _Told:
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return _Told()
    after_name = said.rpartition(")")[2].split()
    if len(after_name) <= _START_TIME:
        return _Told()
    return _Told(after_name[_STATE], after_name[_START_TIME])
