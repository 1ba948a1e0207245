"""No late fill, in seeded interleavings of makings and changes over several replicas of one Redis."""

from collections import Counter

from stampcache import open_cache
from stampcache.corpora import Reach
from stampcache.model import Entry, Vector
from stampcache.ports import Receipt
from stampcache.stores.memory import MemoryStore
from tests.redis.orders import play, played
from tests.redis.servers import Server

ORDERS = 2_000


def test_no_order_of_makings_and_changes_leaves_an_old_answer(redis_server: Server) -> None:
    seen = played(redis_server.url, 0, ORDERS)
    assert seen["played"] == ORDERS
    assert seen["old"] == 0
    assert seen["stored"] > ORDERS / 10
    assert seen["refused"] > ORDERS / 10


class WithoutFences(MemoryStore):
    """A store with the fault that these orders are to find."""

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        return super().put(entry, vector, self.sequence(), reach)


def test_these_orders_find_a_store_without_fences() -> None:
    seen: Counter[str] = Counter()
    with open_cache(WithoutFences()) as cache:
        for seed in range(100):
            seen += play([cache, cache], cache, cache, seed)
    assert seen["old"] > 0
