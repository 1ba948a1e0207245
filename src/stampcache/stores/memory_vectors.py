"""The vectors of the memory store: one index for each partition that has any. Its store holds a lock."""

from stampcache.indexes.flat import FlatIndex
from stampcache.model import Vector
from stampcache.stores.pending_uses import Place


class MemoryVectors:
    """Unit vectors by place."""

    def __init__(self) -> None:
        self._indexes: dict[str, FlatIndex] = {}

    def __contains__(self, place: Place) -> bool:
        index = self._indexes.get(place[0])
        return index is not None and place[1] in index

    def index(self, partition: str, dimension: int) -> FlatIndex | None:
        """Return the index of a partition, if its vectors have so many components."""
        index = self._indexes.get(partition)
        return index if index is not None and index.dimension == dimension else None

    def get(self, place: Place) -> Vector | None:
        """Return the vector at a place, if there is one."""
        index = self._indexes.get(place[0])
        return None if index is None else index.get(place[1])

    def set(self, place: Place, vector: Vector) -> None:
        """Add or replace a vector; the first of another size empties its partition."""
        partition, key = place
        index = self.index(partition, len(vector))
        if index is None:
            index = self._indexes[partition] = FlatIndex(len(vector))
        index.set(key, vector)

    def drop(self, place: Place) -> None:
        """Delete the vector at a place, if there is one."""
        partition, key = place
        index = self._indexes.get(partition)
        if index is not None:
            index.remove(key)
            if not len(index):
                del self._indexes[partition]
