"""Which process writes, and whether one that wrote is gone: so a crash is told from a slow write."""

import os
import socket
from pathlib import Path

from stampcache.corpora import Intent, Owner

LEASE_S = 900.0
"""After so long (seconds) a write of another machine, of which nothing can be seen, counts as crashed."""

_START_TIME = 19
"""Where the kernel tells when a process began, after its name: field 22 of proc(5)."""


def this_owner(cache: str) -> Owner:
    """Return this process, and one cache in it."""
    process = os.getpid()
    return Owner(socket.gethostname(), process, _began(process) or "", cache)


def is_gone(intent: Intent, now: float) -> bool:
    """Tell whether the process that wrote down an intent does not run any more.

    Of one on this machine the operating system knows; of any other only time tells.
    """
    owner = intent.owner
    if owner.host != socket.gethostname():
        return now - intent.at > LEASE_S
    if not _runs(owner.process):
        return True
    began = _began(owner.process)
    return bool(began and owner.began) and began != owner.began


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's, so it runs
        return True
    return True


def _began(process: int) -> str | None:
    """Return when a process began, in the kernel's words; ``None`` where that is not told."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    after_name = said.rpartition(")")[2].split()
    return after_name[_START_TIME] if len(after_name) > _START_TIME else None
