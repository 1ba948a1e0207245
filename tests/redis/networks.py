"""A network of its own for a server: a namespace behind two virtual devices, slow or parted at will."""

import os
import shutil
import subprocess
from types import TracebackType
from typing import Self

import pytest

HERE, THERE = "10.213.77.1", "10.213.77.2"


class Network:
    """Where a server runs `within`, at the address ``THERE``; the test reaches it from ``HERE``.

    Needs root and a kernel that lets namespaces be made; else the test is skipped, with the reason.
    """

    def __init__(self) -> None:
        for program in ("ip", "tc"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (Debian: iproute2)")
        if os.geteuid() != 0:
            pytest.skip("network namespaces need root; the proxy's tests cover the same faults")
        self._name = f"stampcache-{os.getpid()}"
        self._here, self._there = f"sc{os.getpid()}a", f"sc{os.getpid()}b"

    @property
    def within(self) -> tuple[str, ...]:
        """The command that runs another one in it."""
        return ("ip", "netns", "exec", self._name)

    def slow(self, delay_ms: int) -> None:
        """Delay each packet from the server."""
        if not self._shaped("netem", "delay", f"{delay_ms}ms"):
            pytest.skip(
                "this kernel has no netem; narrow networks and the proxy's tests stand for it"
            )

    def narrow(self, kbit_per_s: int) -> None:
        """Let so much through from the server, the first 1,600 bytes at once."""
        if not self._shaped("tbf", "rate", f"{kbit_per_s}kbit", "burst", "1600", "latency", "20s"):
            pytest.skip("this kernel shapes no traffic; the proxy's tests stand for it")

    def _shaped(self, *how: str) -> bool:
        shape = ("tc", "qdisc", "replace", "dev", self._there, "root")
        return _done(*self.within, *shape, *how)

    def part(self) -> None:
        """Lose every packet in both directions, without telling anybody."""
        _must("ip", "link", "set", self._here, "down")

    def heal(self) -> None:
        """Let packets through again, at full speed."""
        _must("ip", "link", "set", self._here, "up")
        _done(*self.within, "tc", "qdisc", "del", "dev", self._there, "root")

    def __enter__(self) -> Self:
        if not _done("ip", "netns", "add", self._name):
            pytest.skip(
                "this machine allows no network namespace; the proxy's tests cover the faults"
            )
        made = _done("ip", "link", "add", self._here, "type", "veth", "peer", "name", self._there)
        if not made:
            _must("ip", "netns", "del", self._name)
            pytest.skip("this machine allows no veth device; the proxy's tests cover the faults")
        _must("ip", "link", "set", self._there, "netns", self._name)
        _must("ip", "addr", "add", f"{HERE}/30", "dev", self._here)
        _must("ip", "link", "set", self._here, "up")
        _must(*self.within, "ip", "addr", "add", f"{THERE}/30", "dev", self._there)
        _must(*self.within, "ip", "link", "set", self._there, "up")
        _must(*self.within, "ip", "link", "set", "lo", "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _done("ip", "link", "del", self._here)
        _done("ip", "netns", "del", self._name)


def _done(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False, timeout=20).returncode == 0


def _must(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, check=False, text=True, timeout=20)
    assert done.returncode == 0, f"{words}: {done.stderr}"
