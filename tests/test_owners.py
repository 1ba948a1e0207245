"""Whether the writer of an intent is gone: of this machine the system tells, of others only time."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from stampcache import owners
from stampcache.corpora import Intent, Owner
from stampcache.owners import LEASE_S, is_gone, this_owner

NOW = 1_000_000.0


def intent(owner: Owner, *, ago: float = 0.0) -> Intent:
    return Intent(id="1", at=NOW - ago, owner=owner)


def gone(owner: Owner, *, ago: float = 0.0) -> bool:
    return is_gone(intent(owner, ago=ago), NOW)


def test_this_process_runs() -> None:
    here = this_owner("one")
    assert here.process == os.getpid()
    assert here == this_owner("one")
    assert here != this_owner("another")
    assert not gone(here, ago=10 * LEASE_S)


def test_a_process_that_ended_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert gone(replace(this_owner("c"), process=child.pid, began=""))


def test_one_that_nobody_took_note_of_is_gone() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    try:
        owner = replace(this_owner("c"), process=child, began="")
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it ended, and its parent was not told
        assert gone(owner)
    finally:
        os.waitpid(child, 0)


def test_another_process_with_the_id_of_one_that_ended_is_not_it() -> None:
    assert gone(replace(this_owner("c"), began="1"))


def test_a_process_of_somebody_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(process: int, sent: int) -> None:
        assert (process, sent) == (4_000, 0)
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert not gone(replace(this_owner("c"), process=4_000, began=""))


def test_nothing_is_sent_to_a_process_that_is_asked_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = replace(this_owner("c"), process=child.pid, began="")
        assert not gone(owner)
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert gone(owner)


@pytest.mark.parametrize(("ago", "expected"), [(0.0, False), (LEASE_S, False), (LEASE_S + 1, True)])
def test_of_another_machine_only_time_tells(ago: float, expected: bool) -> None:
    assert gone(Owner(host="elsewhere", process=os.getpid()), ago=ago) is expected


@pytest.mark.parametrize("tell", ["_boot", "_process_space"])
def test_a_machine_of_the_same_name_is_another_one(
    monkeypatch: pytest.MonkeyPatch, tell: str
) -> None:
    here = this_owner("c")
    monkeypatch.setattr(owners, tell, lambda: "another")
    there = this_owner("c")
    assert there.host.startswith(socket.gethostname())
    assert there.host != here.host
    assert not gone(replace(here, process=2**22 + 1))
    assert gone(here, ago=LEASE_S + 1)


def test_where_the_kernel_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *args: object, **options: object) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "readlink", refuse)
    here = this_owner("c")
    assert here == Owner(socket.gethostname(), os.getpid(), "", "c")
    assert not gone(here)
    assert not gone(replace(here, began="12345")), "whether it is the same one cannot be told"
    assert gone(replace(here, process=2**22 + 1))


def test_a_name_with_brackets_and_blanks_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = " ".join(str(number) for number in range(4, 30))
    told = {"stat": f"7 (a) Z (b) S {rest}\n", "boot_id": "boot\n"}
    monkeypatch.setattr(Path, "read_text", lambda path: told[path.name])
    assert this_owner("c").began == "22"
    assert not gone(this_owner("c"))
    told["stat"] = f"7 (a) Z {rest}"
    assert gone(this_owner("c"))
    told["stat"] = "7 (a) S 1 2"
    assert this_owner("c").began == ""
