"""LangChain's own suites for caches."""

from pathlib import Path

import pytest
from langchain_core.caches import BaseCache
from langchain_tests.integration_tests.cache import AsyncCacheTestSuite, SyncCacheTestSuite

from langchain_stampcache import StampCache


class TestMemorySync(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self) -> BaseCache:
        return StampCache("memory://")


class TestMemoryAsync(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self) -> BaseCache:
        return StampCache("memory://")


class TestSqliteSync(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self, tmp_path: Path):
        cache = StampCache(f"sqlite:///{tmp_path}/cache.db")
        yield cache
        cache.cache.close()


class TestSqliteAsync(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self, tmp_path: Path):
        cache = StampCache(f"sqlite:///{tmp_path}/cache.db")
        yield cache
        await cache.cache.aio.close()
