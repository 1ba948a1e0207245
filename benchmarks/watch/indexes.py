"""Exact and approximate indexes behind one interface: add, remove, search."""

from collections.abc import Sequence
from typing import Protocol

import chromadb
import faiss
import numpy as np

from stampcache.model import Vector


class Index(Protocol):
    """Vectors by number; ``removes`` tells whether it can."""

    name: str
    removes: bool

    def add(self, numbers: Sequence[int], vectors: Vector) -> None:
        """Add vectors (n, d)."""
        ...

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove vectors."""
        ...

    def search(self, vectors: Vector, k: int) -> list[list[int]]:
        """Return the numbers of the k nearest for each row, by rank."""
        ...


class Flat:
    """Exact search in numpy."""

    name = "flat, exact"
    removes = True

    def __init__(self, dimension: int) -> None:
        self._rows = np.empty((0, dimension), np.float32)
        self._numbers = np.empty(0, np.int64)

    def add(self, numbers: Sequence[int], vectors: Vector) -> None:
        self._rows = np.concatenate([self._rows, vectors])
        self._numbers = np.concatenate([self._numbers, np.asarray(numbers, np.int64)])

    def remove(self, numbers: Sequence[int]) -> None:
        kept = ~np.isin(self._numbers, list(numbers))
        self._rows, self._numbers = self._rows[kept], self._numbers[kept]

    def search(self, vectors: Vector, k: int) -> list[list[int]]:
        best = np.argsort(-(vectors @ self._rows.T), axis=1, kind="stable")[:, :k]
        return [[int(self._numbers[at]) for at in row] for row in best]


class FaissHnsw:
    """FAISS HNSW by inner product, with its own defaults; it cannot remove."""

    name = "FAISS HNSW"
    removes = False

    def __init__(self, dimension: int) -> None:
        self._index = faiss.IndexIDMap(
            faiss.IndexHNSWFlat(dimension, 32, faiss.METRIC_INNER_PRODUCT)
        )

    def add(self, numbers: Sequence[int], vectors: Vector) -> None:
        self._index.add_with_ids(vectors, np.asarray(numbers, np.int64))

    def remove(self, numbers: Sequence[int]) -> None:
        raise NotImplementedError("FAISS HNSW removes nothing")

    def search(self, vectors: Vector, k: int) -> list[list[int]]:
        _, found = self._index.search(vectors, k)
        return [[int(number) for number in row if number >= 0] for row in found]


class ChromaHnsw:
    """A Chroma collection in memory with cosine space and its own defaults."""

    name = "Chroma HNSW"
    removes = True
    _many = 2_000

    def __init__(self, dimension: int) -> None:  # noqa: ARG002 - Chroma learns it from the first row
        client = chromadb.EphemeralClient()
        self._collection = client.create_collection(
            f"watched-{id(self)}", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def add(self, numbers: Sequence[int], vectors: Vector) -> None:
        for at in range(0, len(numbers), self._many):
            ids = [str(number) for number in numbers[at : at + self._many]]
            self._collection.add(ids=ids, embeddings=vectors[at : at + self._many])

    def remove(self, numbers: Sequence[int]) -> None:
        self._collection.delete(ids=[str(number) for number in numbers])

    def search(self, vectors: Vector, k: int) -> list[list[int]]:
        found: list[list[int]] = []
        for at in range(0, len(vectors), 256):
            rows = vectors[at : at + 256]
            got = self._collection.query(query_embeddings=rows, n_results=k, include=[])
            found += [[int(number) for number in row] for row in got["ids"]]
        return found
