"""The ingestion manifest: what an index was made with, and mixtures that are refused."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stampcache import (
    ConfigError,
    Hit,
    Manifest,
    Request,
    Seam,
    Settings,
    Stamps,
    Stored,
    open_cache,
)

MADE = Manifest(
    corpus="handbook", version="7", tokenizer="v1", embedder="minilm", chunker="paragraphs"
)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    MADE.write(path)
    replace(MADE, version="8").write(path)
    assert Manifest.read(path) == replace(MADE, version="8")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no ingestion manifest"),
        ("\udcff", "is no ingestion manifest"),
        ('{"corpus": "", "version": "1"}', "needs corpus= and version="),
        ('{"corpus": "c"}', "is no ingestion manifest"),
        ('{"corpus": "c", "version": "1", "format": 9}', "has the format 9"),
    ],
)
def test_what_is_no_manifest_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=said):
        open_cache("memory://", manifest=path)


def test_a_manifest_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"let ingestion write it with Manifest"):
        open_cache("memory://", manifest=str(tmp_path / "none.json"))


def test_d9_index_and_model_of_two_tokenizers_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="corpus 'handbook' has 'v1', but here 'v2' is given"):
        open_cache("memory://", manifest=MADE, stamps=Stamps(tokenizer="v2"))


def test_d9_a_tokenizer_in_use_must_be_the_one_that_was_named() -> None:
    class Tokens:
        stamp = "v2"

        def tokens(self, text: str) -> bytes:
            return text.encode()

    with pytest.raises(ConfigError, match=r"A mixture of tokenizer versions.*'v1'.*'v2'"):
        open_cache("memory://", tokenizer=Tokens(), stamps=Stamps(tokenizer="v1"))
    with pytest.raises(ConfigError, match="A mixture of tokenizer versions"):
        open_cache("memory://", tokenizer=Tokens(), manifest=MADE)
    open_cache("memory://", tokenizer=Tokens(), manifest=replace(MADE, tokenizer="v2")).close()


def test_d9_a_request_of_another_tokenizer_is_refused_by_name() -> None:
    with open_cache("memory://", stamps=Stamps(tokenizer="v2")) as cache:
        with pytest.raises(ConfigError, match="the request has 'v1', but here 'v2' is given"):
            cache.lookup(Request(question="q", stamps=Stamps(tokenizer="v1")))
        cache.lookup(Request(question="q", stamps=Stamps(tokenizer="v2")))


def test_stamps_of_another_index_are_refused() -> None:
    with pytest.raises(ConfigError, match="A mixture of index versions"):
        open_cache("memory://", manifest=MADE, stamps=Stamps(index="other"))


def test_the_entries_carry_the_stamps_of_the_manifest() -> None:
    with open_cache("memory://", manifest=MADE) as cache:
        stored = cache.update(Request(question="q"), "a")
        assert isinstance(stored, Stored)
        assert stored.entry.stamps.index == MADE.index
        assert stored.entry.stamps.tokenizer == "v1"
        assert MADE.index.startswith("handbook@7:")


@pytest.mark.parametrize(
    "change",
    [
        {"version": "8"},
        {"chunker": "sentences"},
        {"embedder": "other"},
        {"tokenizer": "v2"},
        {"corpus": "other"},
    ],
)
def test_answers_over_another_index_are_invisible(change: dict[str, Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cache.db"
    with open_cache(url, manifest=MADE) as cache:
        cache.update(Request(question="q"), "a")
    with open_cache(url, manifest=replace(MADE, **change)) as cache:
        assert cache.lookup(Request(question="q")).reason.value == "not found"


def test_the_corpus_of_the_manifest_is_that_of_requests_that_name_none() -> None:
    with open_cache("memory://", manifest=MADE) as cache:
        cache.update(Request(question="q"), "I don't know.", evidence=())
        cache.update(Request(question="r", corpus="other"), "I don't know.", evidence=())
        cache.update(Request(question="s"), "From documents that nobody told.")
        bare = Request(question="t", settings=Settings(seam=Seam.MODEL))
        cache.update(bare, "A bare call of a model.")
        assert cache.invalidate(corpus="handbook", source="new.md") == 2
        assert isinstance(cache.lookup(bare), Hit)
        assert cache.lookup(Request(question="q")).reason.value == "what it was made from changed"


def test_a_manifest_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    MADE.write(path)
    other = tmp_path / "plain"
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


def test_a_manifest_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(OSError, match=r"manifest\.json"):
        MADE.write(tmp_path / "manifest.json")
    assert [one.name for one in tmp_path.iterdir()] == ["manifest.json"]
