"""Writes amid questions, in threads and tasks: once all is quiet, each answer is the one of now."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from lc_watched import Desk, page

from stampcache import open_cache

QUESTIONS = [f"@{angle} what?" for angle in (0, 30, 60, 90)]


def cited(inputs: dict[str, Any]) -> str:
    return " ".join(str(one.id) for one in inputs["context"])


def written(desk: Desk, rng: random.Random) -> None:
    name = rng.choice("abcd")
    if rng.random() < 0.3:
        desk.store.delete([name])
    else:
        desk.store.add_documents([page(rng.choice((5, 25, 45, 65, 85)) + ord(name) % 4, id=name)])


def check(desk: Desk, chain: Any) -> int:
    hits = 0
    for question in QUESTIONS:
        told = chain.invoke({"input": question})
        now = desk.store.inner.similarity_search(question, k=2)
        assert told["answer"] == " ".join(str(one.id) for one in now), told
        hits += told["cache"]["hit"]
    return hits


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'race.db'}"
    with open_cache(url) as cache:
        yield Desk(cache, page(10, id="a"), page(50, id="b"), page(90, id="c"))


def test_threads(desk: Desk) -> None:
    chain = desk.chain(answer=RunnableLambda(cited), version="1")
    rng, hits = random.Random(5), 0
    with ThreadPoolExecutor(6) as pool:
        for _ in range(40):
            asked = [{"input": question} for question in QUESTIONS]
            running = [pool.submit(chain.invoke, one) for one in asked]
            written(desk, rng)
            running += [pool.submit(chain.invoke, one) for one in asked]
            for one in running:
                one.result()
            hits += check(desk, chain)
    assert hits


def test_tasks(desk: Desk) -> None:
    chain = desk.chain(answer=RunnableLambda(cited), version="1")
    rng = random.Random(6)

    async def once() -> None:
        asked = [chain.ainvoke({"input": question}) for question in QUESTIONS]
        name = rng.choice("abcd")
        new = page(rng.choice((5, 25, 45)) + ord(name) % 4, id=name)
        await asyncio.gather(*asked, desk.store.aadd_documents([new]), return_exceptions=False)

    for _ in range(40):
        asyncio.run(once())
        check(desk, chain)
