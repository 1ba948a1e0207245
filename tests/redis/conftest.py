"""A redis-server of our own for the tests, on a unix socket; emptied before each test."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis


@pytest.fixture(scope="session")
def socket() -> Iterator[Path]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "redis.sock"
        words = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        with subprocess.Popen([binary, *words], stdout=subprocess.DEVNULL) as process:
            with redis.Redis(unix_socket_path=str(path)) as client:
                for _ in range(200):
                    try:
                        client.ping()
                        break
                    except redis.ConnectionError:
                        time.sleep(0.02)
            yield path
            process.terminate()


@pytest.fixture
def url(socket: Path) -> str:
    with redis.Redis(unix_socket_path=str(socket)) as client:
        client.flushall()
    return f"unix://{socket}?timeout_s=5"
