"""Settings that stand where they are easily overlooked: each of them makes another identity."""

import asyncio
import gc
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, OneStep, WordsEmbedding, report, words_vector
from llama_index.core import Settings
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine, RetryQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, PrivateAttr

from llama_index_stampcache import CachedChatEngine, CachedQueryEngine, CachedRetriever
from stampcache import Cache, ConfigError

QUESTION = "how long is annual leave"
VERSION: dict[str, Any] = {"grounding": "version", "corpus": "handbook", "stamps": INDEX}


def hits(*engines: CachedQueryEngine) -> list[bool]:
    return [bool(report(engine.query(QUESTION))["hit"]) for engine in engines]


class Style(BaseModel):
    tone: str


class Client:
    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


class Hiding(DigestLLM):
    """Keeps what shapes its answers in private attributes, as wrappers of other frameworks do."""

    _tone: str = PrivateAttr(default="")
    _style: Style | None = PrivateAttr(default=None)
    _client: Client | None = PrivateAttr(default=None)
    _aclient: Client | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, **hidden: Any) -> "Hiding":
        made = cls()
        for name, value in hidden.items():
            setattr(made, f"_{name}", value)
        return made


@pytest.mark.parametrize(
    "hidden",
    [
        [{"tone": "kind"}, {"tone": "rude"}],
        [{"style": Style(tone="kind")}, {"style": Style(tone="rude")}],
        [{"client": Client("http://a/v1")}, {"client": Client("http://b/v1")}],
        [{"aclient": Client("http://a/v1")}, {"aclient": Client("http://b/v1")}],
    ],
    ids=lambda hidden: next(iter(hidden[0])),
)
@pytest.mark.parametrize("options", [{}, VERSION], ids=["recheck", "version"])
def test_a3_models_with_other_hidden_settings_never_share(
    options: Any, hidden: Any, cache: Cache, corpus: Corpus
) -> None:
    one, other, again = (
        CachedQueryEngine(corpus.engine(Hiding.of(**each)), cache=cache, **options)
        for each in (*hidden, hidden[0])
    )
    assert hits(one, other, again) == [False, False, True]


def test_a_model_that_hides_what_has_no_identity_needs_a_version(
    cache: Cache, corpus: Corpus
) -> None:
    class Holding(BaseModel, arbitrary_types_allowed=True):
        client: Client

    inner = corpus.engine(Hiding.of(style=Holding(client=Client("http://a"))))
    with pytest.raises(ConfigError, match=r'version="..."'):
        CachedQueryEngine(inner, cache=cache)
    assert hits(CachedQueryEngine(inner, cache=cache, version="1")) == [False]


class Prefixing(WordsEmbedding):
    """Embeds questions in a way of its own."""

    ahead: str = ""

    def _get_query_embedding(self, query: str) -> list[float]:
        return words_vector(f"{self.ahead} {query}")


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_a19_an_embedder_is_known_by_all_of_its_settings(
    grounding: Any, cache: Cache, corpus: Corpus
) -> None:
    def retriever(ahead: str) -> CachedRetriever:
        inner = VectorIndexRetriever(
            corpus.index, similarity_top_k=1, embed_model=Prefixing(ahead=ahead)
        )
        return CachedRetriever(inner, cache=cache, **{**VERSION, "grounding": grounding})

    plain, steered = retriever(""), retriever("travel costs paid train " * 9)
    texts = [each.retrieve(QUESTION)[0].node.get_content() for each in (plain, steered)]
    assert texts == ["annual leave is thirty days", "travel costs are paid by train"]


class Keeping(BaseNodePostprocessor):
    """Keeps the first nodes, and counts how often it was asked."""

    _keep: int = PrivateAttr(default=1)
    _asked: int = PrivateAttr(default=0)

    @classmethod
    def first(cls, keep: int) -> "Keeping":
        made = cls()
        made._keep = keep
        return made

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self._asked += 1
        return nodes[: self._keep]


def test_a14_what_a_postprocessor_hides_is_keyed_and_what_it_counts_is_not(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    def engine(keep: int) -> CachedQueryEngine:
        retriever = VectorIndexRetriever(corpus.index, similarity_top_k=2)
        inner = RetrieverQueryEngine.from_args(
            retriever, llm=llm, node_postprocessors=[Keeping.first(keep)]
        )
        return CachedQueryEngine(inner, cache=cache, **VERSION)

    one, two = engine(1), engine(2)
    assert [len(each.query(QUESTION).source_nodes) for each in (one, two)] == [1, 2]
    assert hits(one, two) == [True, True]


class Unhappy(BaseEvaluator):
    """Is content with no answer."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...

    async def aevaluate(self, *_: Any, **__: Any) -> EvaluationResult:
        return EvaluationResult(passing=False, response="short", feedback="no")

    def evaluate_response(self, *_: Any, **__: Any) -> EvaluationResult:
        return EvaluationResult(passing=False, response="short", feedback="no")


def test_how_often_an_engine_tries_again_is_keyed(
    cache: Cache, corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", llm)  # with which it asks otherwise

    def engine(tries: int) -> CachedQueryEngine:
        inner = RetryQueryEngine(corpus.engine(llm), Unhappy(), max_retries=tries)
        return CachedQueryEngine(inner, cache=cache, grounding="none", stamps=INDEX)

    told = [str(engine(tries).query(QUESTION)) for tries in (0, 1)]
    assert told[0] != told[1]


class Toned(ContextChatEngine):
    """A chat engine with a setting of its own."""

    tone = ""

    def _get_response_synthesizer(self, *args: Any, **options: Any) -> Any:
        made: BaseSynthesizer = super()._get_response_synthesizer(*args, **options)
        template = PromptTemplate(self.tone + "{context_str}{query_str}")
        made.update_prompts({"text_qa_template": template})
        return made


def test_a_chat_engine_is_known_by_the_settings_of_its_own_class(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    def engine(tone: object) -> CachedChatEngine:
        inner: Any = Toned.from_defaults(
            retriever=VectorIndexRetriever(corpus.index, similarity_top_k=2),
            llm=llm,
            memory=ChatMemoryBuffer.from_defaults(token_limit=1_000),
        )
        inner.tone = tone
        return CachedChatEngine(inner, cache=cache)

    assert str(engine("kind").chat(QUESTION)) != str(engine("rude").chat(QUESTION))
    assert engine("kind").chat(QUESTION).metadata["cache"]["hit"]  # type: ignore[index]
    with pytest.raises(ConfigError, match="tone is a object"):
        engine(object())


def test_an_abandoned_query_of_another_caller_does_not_spoil_an_answer(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    """The garbage collector ends it in whatever context is running then."""

    class Waiting(OneStep):
        async def acustom_query(self, query_str: str) -> Any:
            await asyncio.sleep(0)

    left = [Waiting(llm=DigestLLM()).aquery("something else")]
    left[0].send(None)  # it has begun

    def collected() -> None:
        left.clear()
        gc.collect()

    llm.meanwhile(collected)
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    assert hits(engine, engine) == [False, True]
