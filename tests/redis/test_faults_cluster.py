"""A Redis cluster that loses a master: what was acknowledged, what is served, and when it goes on."""

import time
from collections.abc import Iterator

import pytest

from tests.redis.apps import App, Documents, eventually, opened, recovered
from tests.redis.clusters import Cluster
from tests.redis.servers import Server

DEADLINE_S = 3.0


@pytest.fixture
def failing() -> Iterator[Cluster]:
    """Three masters with a replica each, for one test."""
    with Cluster(replicas=True) as cluster:
        yield cluster


def holder(cluster: Cluster) -> Server:
    """Return the master that has what the cache keeps."""
    return max(cluster.masters, key=lambda node: int(node.cli("DBSIZE")))


def test_a_cluster_serves_and_clear_ends(redis_cluster: Cluster) -> None:
    documents = Documents()
    with opened(redis_cluster.url) as one, opened(redis_cluster.url) as two:
        app, other = App(one, documents), App(two, documents)
        for at in range(30):
            app.change(f"{at}")
            app.ask(f"{at}")
        assert all(other.hits(f"{at}") for at in range(30))
        assert app.change("3")
        assert eventually(lambda: not other.hits("3"))
        assert one.clear() > 0
        assert not any(app.hits(f"{at}") for at in range(5))


def test_a_slot_that_moves_to_another_node_makes_nothing_false(redis_cluster: Cluster) -> None:
    documents = Documents()
    with opened(redis_cluster.url) as one, opened(redis_cluster.url) as two:
        app, other = App(one, documents), App(two, documents)
        sources = [f"{at}" for at in range(20)]
        for source in sources:
            app.change(source)
            app.ask(source)
            other.ask(source)
        source_node = holder(redis_cluster)
        target = next(node for node in redis_cluster.masters if node is not source_node)
        slot = source_node.cli("CLUSTER", "KEYSLOT", "{default}")
        ids = source_node.cli("CLUSTER", "MYID"), target.cli("CLUSTER", "MYID")
        target.cli("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source_node.cli("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        there = ("127.0.0.1", str(target.port), "", "0", "5000", "KEYS")
        while keys := source_node.cli("CLUSTER", "GETKEYSINSLOT", slot, "20").splitlines():
            source_node.cli("MIGRATE", *there, *keys)
            for at in sources[::5]:
                app.change(at)
                app.ask(at)
                other.ask(at)
        for node in redis_cluster.masters:
            node.cli("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
        recovered(app, other)
        for source in sources:
            app.change(source)
            app.ask(source)
            other.ask(source)
        assert all(app.hits(source) for source in sources)
        assert not one.core.store.problems()


def test_a_master_that_dies_is_replaced_and_nothing_false_is_served(failing: Cluster) -> None:
    documents = Documents()
    with opened(failing.url) as one, opened(failing.url) as two:
        app, other = App(one, documents), App(two, documents)
        for at in range(10):
            app.change(f"{at}")
            app.ask(f"{at}")
            other.ask(f"{at}")
        master = holder(failing)
        replicas = [node for node in failing.nodes if node not in failing.masters]
        for node in replicas:
            node.pause()  # nothing that is acknowledged from now on reaches them
        told = [app.change(f"{at}") for at in range(10)]
        master.kill()
        for node in replicas:
            node.resume()
        until = time.monotonic() + 6
        while time.monotonic() < until and not recovered_now(app):
            for at in range(10):
                app.ask(f"{at}")
                other.ask(f"{at}")
        recovered(app, other)
        for at in range(10):
            app.ask(f"{at}")
            other.ask(f"{at}")
        assert max(app.took_s + other.took_s) < DEADLINE_S
        assert told


def recovered_now(app: App) -> bool:
    return app.change("probe")
