"""A Redis cluster of three masters, with or without a replica of each."""

import re
import subprocess
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.redis.servers import STARTED_S, Server, free_port

MASTERS = 3
_SLOT = re.compile(r"\d+")


class Cluster:
    """Its nodes are `Server` objects: pause or kill those you like. ``nodes[:3]`` began as masters.

    A master that does not answer for ``node_timeout_ms`` is replaced by its replica, if it has one.
    """

    def __init__(self, *, replicas: bool = False, node_timeout_ms: int = 700) -> None:
        self._replicas = replicas
        self._timeout_ms = node_timeout_ms
        self._stack = ExitStack()
        self.nodes: list[Server] = []

    @property
    def url(self) -> str:
        """How a client is told of it: by one of its nodes."""
        return f"redis://127.0.0.1:{self.nodes[0].port}/0?cluster=1"

    @property
    def masters(self) -> list[Server]:
        """The nodes that are masters now, as far as one that answers knows."""
        by_port = {node.port: node for node in self.nodes}
        lines = self._answering().cli("CLUSTER", "NODES").splitlines()
        told = [line.split() for line in lines]
        ports = [int(words[1].split("@")[0].rpartition(":")[2]) for words in told]
        good = [port for port, words in zip(ports, told, strict=True) if _is_master(words)]
        return [by_port[port] for port in good]

    def owner(self, key: str) -> Server:
        """Return the master that has a key."""
        slot = int(self._answering().cli("CLUSTER", "KEYSLOT", key))
        for node in self.masters:
            for line in node.cli("CLUSTER", "NODES").splitlines():
                words = line.split()
                if "myself" in words[2] and any(_covers(part, slot) for part in words[8:]):
                    return node
        raise AssertionError(f"nobody has slot {slot}")

    def wait_until_whole(self, timeout_s: float = STARTED_S) -> None:
        """Return once every slot has a master that answers, by what all masters say."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if self._is_whole():
                return
            time.sleep(0.02)
        told = self._answering().cli("CLUSTER", "NODES")
        raise AssertionError(f"the cluster is not whole:\n{told}")

    def flush(self) -> None:
        """Empty it."""
        for node in self.masters:
            node.cli("FLUSHALL")

    def _is_whole(self) -> bool:
        masters = self.masters
        if len(masters) != MASTERS:
            return False
        wanted = len(self.nodes) - MASTERS
        told = [node.cli("CLUSTER", "INFO") for node in masters if node.is_up()]
        linked = sum(int(node.info("connected_slaves")) for node in masters if node.is_up())
        good = all("cluster_state:ok" in one for one in told) and len(told) == MASTERS
        return good and (linked >= wanted or self._any_down())

    def _any_down(self) -> bool:
        return not all(node.is_up() for node in self.nodes)

    def _answering(self) -> Server:
        return next(node for node in self.nodes if node.is_up())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            count = MASTERS * (2 if self._replicas else 1)
            self.nodes = [stack.enter_context(self._node()) for _ in range(count)]
            self._join()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _node(self) -> Server:
        settings = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": str(self._timeout_ms),
            "cluster-port": str(free_port()),
            "cluster-replica-validity-factor": "0",
            "repl-diskless-sync-delay": "0",
        }
        return Server(settings=settings)

    def _join(self) -> None:
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        per_master = "1" if self._replicas else "0"
        command = ["redis-cli", "--cluster", "create", *addresses]
        command += ["--cluster-replicas", per_master, "--cluster-yes"]
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        self.wait_until_whole()


def _is_master(words: list[str]) -> bool:
    flags = words[2].split(",")
    return "master" in flags and "fail" not in flags and len(words) > 8


def _covers(part: str, slot: int) -> bool:
    ends = [int(one) for one in _SLOT.findall(part)]
    return not part.startswith("[") and ends[0] <= slot <= ends[-1]
