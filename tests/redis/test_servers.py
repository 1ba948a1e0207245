"""The servers that other tests stand on do what they are told, and nothing of them is left."""

import os
import shutil
import socket
import subprocess
import time

import pytest

from tests.redis.clusters import Cluster
from tests.redis.networks import THERE, Network
from tests.redis.proxy import Proxy
from tests.redis.servers import Server, need
from tests.redis.workers import python, workers


def test_a_server_is_gone_with_its_folder() -> None:
    with Server() as server:
        pid, folder = server.pid, server.folder
        assert server.port != 6379
        assert server.cli("SET", "a", "1") == "OK"
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_ends_with_a_killed_test_run() -> None:
    need("setpriv")
    code = """
        import os, signal
        from tests.redis.servers import Server
        server = Server()
        server.start()
        print(server.port, server.folder, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with python(code) as run:
        assert run.stdout is not None
        port, folder = run.stdout.read().split()
    shutil.rmtree(folder)
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(port))):
                return
        time.sleep(0.01)
    raise AssertionError("the server outlived the run")


def test_what_a_durable_server_acknowledged_is_there_after_a_kill() -> None:
    with Server(durable=True) as server:
        server.cli("SET", "a", "1")
        server.kill()
        assert not server.is_up()
        server.start()
        assert server.cli("GET", "a") == "1"


def test_a_paused_server_answers_nobody_until_it_goes_on() -> None:
    with Server() as server:
        server.pause()
        with pytest.raises(subprocess.TimeoutExpired):
            server.cli("PING", timeout_s=0.1)
        server.resume()
        assert server.is_up()


def test_users_may_do_what_their_line_says() -> None:
    with Server(users=["app on >secret ~stampcache:* +@all"]) as server:
        server.cli("SET", "other", "1")
        command = ["redis-cli", "-s", str(server.socket), "--user", "app", "--pass", "secret"]
        asked = [*command, "--no-auth-warning", "GET", "other"]
        assert "NOPERM" in subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        unknown = ["redis-cli", "-s", str(server.socket), "GET", "other"]
        assert (
            "NOAUTH" in subprocess.run(unknown, capture_output=True, text=True, check=False).stdout
        )


def test_tls_is_spoken_and_nothing_else(tls_server: Server) -> None:
    assert tls_server.tls is not None
    port = ["redis-cli", "-p", str(tls_server.port)]
    secure = [*port, "--tls", "--cacert", str(tls_server.tls.authority), "PING"]
    assert (
        subprocess.run(secure, capture_output=True, text=True, check=False).stdout.strip() == "PONG"
    )
    plain = subprocess.run([*port, "PING"], capture_output=True, text=True, check=False)
    assert "PONG" not in plain.stdout


def test_a_cluster_has_every_slot(redis_cluster: Cluster) -> None:
    assert len(redis_cluster.masters) == 3
    owners = {redis_cluster.owner(f"key {at}").port for at in range(12)}
    assert owners <= {node.port for node in redis_cluster.nodes}
    assert len(owners) == 3


def ask(
    port: int,
    timeout_s: float = 5.0,
    *,
    host: str = "127.0.0.1",
    what: bytes = b"PING\r\n",
    at_least: int = 1,
) -> bytes:
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(what)
        heard = b""
        while len(heard) < at_least and (more := connection.recv(65_536)):
            heard += more
        if not heard:
            raise ConnectionError("the connection was closed")
        return heard


def test_a_proxy_passes_on_holds_swallows_and_breaks(redis_server: Server) -> None:
    with Proxy(redis_server.port) as proxy:
        assert ask(proxy.port) == b"+PONG\r\n"
        proxy.freeze(requests=False)
        with pytest.raises(TimeoutError):
            ask(proxy.port, 0.05)
        proxy.heal()
        proxy.cut_after(3)
        assert ask(proxy.port) == b"+PO"
        proxy.cut()
        with pytest.raises(OSError):
            ask(proxy.port)
        proxy.heal()
        assert ask(proxy.port) == b"+PONG\r\n"


@pytest.mark.allow_hosts([THERE])
def test_a_network_of_its_own_is_slow_and_parted_at_will() -> None:
    with Network() as network, Server(within=network.within, host=THERE) as server:
        assert ask(server.port, host=THERE) == b"+PONG\r\n"
        server.cli("SET", "long", "x" * 20_000)
        network.narrow(1_000)
        began = time.monotonic()
        assert len(ask(server.port, host=THERE, what=b"GET long\r\n", at_least=20_000)) > 20_000
        assert time.monotonic() - began > 0.1
        network.part()
        with pytest.raises(OSError):
            ask(server.port, 0.05, host=THERE)
        network.heal()
        assert ask(server.port, host=THERE) == b"+PONG\r\n"


def test_workers_say_what_they_saw_and_none_is_left() -> None:
    echo = "while (value := hear()) is not None: tell([number, value])"
    with workers(2, echo) as started:
        for worker in started:
            worker.tell("a")
        assert [worker.hear() for worker in started] == [[0, "a"], [1, "a"]]
        started[0].kill()
        assert started[0].rest() == []
