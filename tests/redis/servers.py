"""Real redis-servers for the tests: alone, with users, with TLS; stopped, paused and killed at will.

Each has a folder, a free port of 127.0.0.1 and a Unix socket of its own and listens nowhere else, so
that a server of the machine on 6379 is never talked to. All of them end with the test run: by their
context manager, and by the kernel when the run itself is killed.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.redis.certificates import Certificates

STARTED_S = 20.0
_PROGRAMS = ("redis-server", "redis-cli")
_ADMIN = ("admin", "only for the tests")
_AS_ADMIN = ("--user", _ADMIN[0], "--pass", _ADMIN[1], "--no-auth-warning")


def need(*programs: str) -> None:
    """Skip the test where a program is not installed; where NEED_SERVERS is set that is an error."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        told = (
            f"{', '.join(missing)} is not installed: apt-get install redis-server openssl iproute2"
        )
        if os.environ.get("NEED_SERVERS"):
            pytest.fail(told)
        pytest.skip(told)


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """One redis-server. As a context manager it is started, and at the end it is gone with its folder.

    ``settings`` are lines of its configuration by name. ``users`` are ACL lines as ``user`` takes
    them; with them nobody else may connect. With ``tls`` its port speaks TLS only. A ``durable`` one
    has every write on disk before it answers. ``within`` is the command that it runs under, and ``host``
    the address at which it listens: for network namespaces.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        users: Sequence[str] = (),
        tls: Certificates | None = None,
        durable: bool = False,
        within: Sequence[str] = (),
        host: str = "127.0.0.1",
    ) -> None:
        need(*_PROGRAMS)
        self.host = host
        self.port = free_port()
        self.tls = tls
        self.folder = Path(tempfile.mkdtemp(prefix="stampcache-redis-"))
        self.socket = self.folder / "redis.sock"
        self._settings = dict(settings or {})
        self._users = tuple(users)
        self._durable = durable
        self._within = tuple(within)
        self._process: subprocess.Popen[bytes] | None = None

    # -- its addresses -----------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Over TCP, or TLS where it has that."""
        if self.tls is None:
            return f"redis://{self.host}:{self.port}/0"
        return f"rediss://{self.host}:{self.port}/0?ssl_ca_certs={self.tls.authority}"

    @property
    def socket_url(self) -> str:
        """Over its Unix socket."""
        return f"unix://{self.socket}"

    def url_of(self, user: str, password: str) -> str:
        """Over TCP as one of its users."""
        scheme, rest = self.url.split("://")
        return f"{scheme}://{user}:{password}@{rest}"

    # -- its life ----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> None:
        """Start it, again with the data that it had on disk; return when it answers."""
        for _ in range(5):
            if self._begin():
                return
            self.port = free_port()  # somebody took it meanwhile
        raise AssertionError(f"redis-server does not start:\n{self.log()}")

    def stop(self) -> None:
        """Let it end in order (it saves what it is set to save)."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it answer nobody; connections stay open, and new ones are taken by the kernel."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        """What it wrote."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else "(it wrote nothing)"

    def cli(self, *words: str, timeout_s: float = STARTED_S) -> str:
        """Run one command by redis-cli over the Unix socket, as a user who may do everything."""
        command = ["redis-cli", "-s", str(self.socket), *(_AS_ADMIN if self._users else ()), *words]
        done = subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=timeout_s
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        assert not done.stdout.startswith("(error)"), f"{words}: {done.stdout}"
        return done.stdout.strip()

    def is_up(self) -> bool:
        """Tell whether it answers now."""
        try:
            return self.cli("PING", timeout_s=2.0) == "PONG"
        except (AssertionError, subprocess.TimeoutExpired):
            return False

    def info(self, name: str) -> str:
        """Return one field of INFO."""
        fields = dict(line.split(":", 1) for line in self.cli("INFO").splitlines() if ":" in line)
        return fields[name].strip()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _begin(self) -> bool:
        (self.folder / "redis.conf").write_text("\n".join(self._lines()) + "\n")
        self.socket.unlink(missing_ok=True)
        command = [
            *self._within,
            *_dies_with_parent(),
            "redis-server",
            str(self.folder / "redis.conf"),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + STARTED_S
        while time.monotonic() < until:
            if self._process.poll() is not None:
                return False
            if self.socket.exists() and self.is_up():
                return True
            time.sleep(0.01)
        self.kill()
        return False

    def _lines(self) -> list[str]:
        settings = {
            "bind": self.host,
            "protected-mode": "no",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "logfile": str(self.folder / "log"),
            "daemonize": "no",
            "save": '""',
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "always" if self._durable else "everysec",
            "shutdown-timeout": "0",
            **self._ports(),
            **self._settings,
        }
        lines = [f"{name} {value}" for name, value in settings.items()]
        if self._users:
            user, password = _ADMIN
            lines += ["user default off", f'user {user} on ">{password}" ~* &* +@all']
            lines += [f"user {line}" for line in self._users]
        return lines

    def _ports(self) -> dict[str, str]:
        if self.tls is None:
            return {"port": str(self.port)}
        return {
            "port": "0",
            "tls-port": str(self.port),
            "tls-cert-file": str(self.tls.server_certificate),
            "tls-key-file": str(self.tls.server_key),
            "tls-ca-cert-file": str(self.tls.authority),
            "tls-auth-clients": "optional",
        }

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)  # a paused one does not hear SIGTERM
        self._process.send_signal(how)
        try:
            self._process.wait(STARTED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _dies_with_parent() -> tuple[str, ...]:
    """Let the kernel end the server with the thread that started it: the run's main one."""
    return ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
