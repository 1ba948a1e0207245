"""Redis servers for the tests of this folder, one of each kind for a run, emptied for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.certificates import Certificates, make_certificates
from tests.redis.clusters import Cluster
from tests.redis.servers import Server, need


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """A plain server for the whole run; tests take `redis_server`."""
    with Server() as server:
        yield server


@pytest.fixture
def redis_server(one_server: Server) -> Server:
    """A plain server that is empty. Whoever stops or changes it starts a `Server` of their own."""
    one_server.cli("FLUSHALL")
    return one_server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, and the certificates of a server and a client."""
    need("openssl")
    folder: Path = tmp_path_factory.mktemp("certificates")
    return make_certificates(folder)


@pytest.fixture(scope="session")
def one_tls_server(certificates: Certificates) -> Iterator[Server]:
    """A server that speaks TLS for the whole run; tests take `tls_server`."""
    with Server(tls=certificates) as server:
        yield server


@pytest.fixture
def tls_server(one_tls_server: Server) -> Server:
    """A server that speaks TLS on its port, and is empty."""
    one_tls_server.cli("FLUSHALL")
    return one_tls_server


@pytest.fixture(scope="session")
def one_cluster() -> Iterator[Cluster]:
    """Three masters for the whole run; tests take `redis_cluster`."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def redis_cluster(one_cluster: Cluster) -> Cluster:
    """Three masters without replicas, empty. Whoever stops one starts a `Cluster` of their own."""
    one_cluster.flush()
    return one_cluster


@pytest.fixture
def url(redis_server: Server) -> str:
    """An empty server, over its socket, which is given time on a busy machine."""
    return f"{redis_server.socket_url}?timeout_s=5"
