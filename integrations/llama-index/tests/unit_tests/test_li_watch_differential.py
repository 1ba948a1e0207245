"""Whatever is written to a watched index, every answer is what the engine would say without a cache."""

from pathlib import Path
from typing import Any

import pytest
from li_watch_world import Projected, World, run
from llama_fakes import WordsEmbedding
from test_li_watch_stores import chroma

from stampcache import open_cache


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", ["simple", "chroma"])
def test_random_histories(tmp_path: Path, kind: str, ties: bool) -> None:
    store = chroma("cosine") if kind == "chroma" else None
    embedding: Any = WordsEmbedding() if ties else Projected()
    url = f"sqlite:///{tmp_path / 'rag.db'}" if ties else "memory://"
    with open_cache(url) as cache:
        seen = run(World(cache, store=store, embedding=embedding), steps=150, seed=len(kind))
    assert seen["hit"] > 5 and seen["what it was made from changed"] > 5
