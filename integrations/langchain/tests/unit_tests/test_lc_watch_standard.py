"""The framework's own suite for vector stores, on watched ones."""

from collections.abc import Iterator

import pytest
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from lc_watching import chroma, faiss_store

from langchain_stampcache import watch
from stampcache import Cache

NO_UPSERT = "FAISS refuses an id that is there already"
NO_MISSING = "FAISS refuses to delete what is not there"


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, opened: Cache) -> VectorStore:  # type: ignore[override]  # a fixture in the place of the suite's
        inner = InMemoryVectorStore(self.get_embeddings())
        return watch(inner, cache=opened, corpus="handbook")


class TestChroma(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, opened: Cache) -> Iterator[VectorStore]:  # type: ignore[override]  # a fixture in the place of the suite's
        inner = chroma(self.get_embeddings())
        yield watch(inner, cache=opened, corpus="handbook")
        inner.delete_collection()


class TestFaiss(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, opened: Cache) -> VectorStore:  # type: ignore[override]  # a fixture in the place of the suite's
        return watch(faiss_store(self.get_embeddings(), 6), cache=opened, corpus="handbook")

    # What FAISS itself refuses, watched or not.

    @pytest.mark.xfail(reason=NO_MISSING)
    def test_delete_missing_content(self, vectorstore: VectorStore) -> None:
        super().test_delete_missing_content(vectorstore)

    @pytest.mark.xfail(reason=NO_MISSING)
    async def test_delete_missing_content_async(self, vectorstore: VectorStore) -> None:
        await super().test_delete_missing_content_async(vectorstore)

    @pytest.mark.xfail(reason=NO_UPSERT)
    def test_add_documents_with_ids_is_idempotent(self, vectorstore: VectorStore) -> None:
        super().test_add_documents_with_ids_is_idempotent(vectorstore)

    @pytest.mark.xfail(reason=NO_UPSERT)
    async def test_add_documents_with_ids_is_idempotent_async(
        self, vectorstore: VectorStore
    ) -> None:
        await super().test_add_documents_with_ids_is_idempotent_async(vectorstore)

    @pytest.mark.xfail(reason=NO_UPSERT)
    def test_add_documents_by_id_with_mutation(self, vectorstore: VectorStore) -> None:
        super().test_add_documents_by_id_with_mutation(vectorstore)

    @pytest.mark.xfail(reason=NO_UPSERT)
    async def test_add_documents_by_id_with_mutation_async(self, vectorstore: VectorStore) -> None:
        await super().test_add_documents_by_id_with_mutation_async(vectorstore)
