"""The application over a `State`, cached and uncached, in both frameworks."""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from llama_index.core import PromptTemplate
from llama_index.core.base.base_retriever import BaseRetriever as IndexRetriever
from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CustomLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from msgspec import Struct
from pydantic import PrivateAttr

from langchain_stampcache import CachedChain
from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, Stamps
from stampcache.scope import current_scope
from tests.differential.world import CORPUS, Chunk, State, answer_text

PROMPTS = {
    "p1": "Read: {documents}\nAnswer @{input}@",
    "p2": "Use only this: {documents}\nReply @{input}@",
}
INDEX = Stamps(index="1")


class Reply(Struct, frozen=True):
    """An answer, what it says it was made from, and whether and at which level it was a hit."""

    text: str
    cited: list[str]
    level: str = ""
    reason: str = ""


class Mode(Struct, frozen=True):
    """A grounding, and of what a version is."""

    grounding: str
    version_of: str = "sources"


class Halt(Protocol):
    """Called where a process may die: while it retrieves, while its model writes."""

    def __call__(self, where: str) -> None: ...


class App(Protocol):
    """The application of one state, in one process."""

    state: State

    def ask(self, question: str) -> Reply: ...

    def uncached(self, question: str) -> Reply: ...


def tenant() -> str:
    scope = current_scope()
    return scope.tenant if scope else ""


# -- LangChain -------------------------------------------------------------------------------------


class StateRetriever(BaseRetriever):
    """Retrieves from the state that it is given."""

    k: int = 2
    _state: State = PrivateAttr(default=State())
    _halt: Halt | None = PrivateAttr(default=None)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self._halt:
            self._halt("retrieve")
        return [
            Document(one.text, id=one.id, metadata={"source": one.source})
            for one in self._state.retrieve(query)
        ]


class DigestChat(BaseChatModel):
    """Answers with the question and a digest of its messages."""

    model: str = "m1"
    _halt: Halt | None = PrivateAttr(default=None)

    @property
    def _llm_type(self) -> str:
        return "digest"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        read = "\n".join(message.text for message in messages)
        if self._halt:
            self._halt("model")
        text = answer_text(read.split("@")[1], read, model=self.model, tenant=tenant())
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def with_texts(inputs: dict[str, Any]) -> dict[str, str]:
    texts = [document.page_content for document in inputs["context"]]
    return {"input": inputs["input"], "documents": " | ".join(texts)}


class LangChainApp:
    """A `CachedChain` over the state."""

    def __init__(self, cache: Cache, mode: Mode, state: State, halt: Halt | None = None) -> None:
        self.state = state
        self._retriever = StateRetriever()
        self._retriever._halt = halt
        self._chat = DigestChat(model=state.model)
        self._chat._halt = halt
        prompt = ChatPromptTemplate.from_template(PROMPTS[state.prompt])
        self._answer: Any = with_texts | prompt | self._chat | StrOutputParser()
        self._chain = CachedChain(
            retriever=self._retriever,
            answer=self._answer,
            cache=cache,
            grounding=mode.grounding,  # type: ignore[arg-type]
            version_of=mode.version_of,  # type: ignore[arg-type]
            corpus=CORPUS,
            stamps=INDEX,
        )

    def ask(self, question: str) -> Reply:
        self._retriever._state = self.state
        told = self._chain.invoke({"input": question})
        cited = [document.page_content for document in told["context"]]
        fields = told["cache"]
        level = fields["level"] if fields["hit"] else ""
        return Reply(str(told["answer"]), cited, level, fields["reason"])

    def uncached(self, question: str) -> Reply:
        found = [Document(one.text) for one in self.state.retrieve(question)]
        text = self._answer.invoke({"input": question, "context": found})
        return Reply(str(text), [document.page_content for document in found])


# -- LlamaIndex ------------------------------------------------------------------------------------


class StateIndexRetriever(IndexRetriever):
    """Retrieves from the state that it is given."""

    def __init__(self, halt: Halt | None) -> None:
        self.state = State()
        self._halt = halt
        super().__init__()

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        if self._halt:
            self._halt("retrieve")
        return nodes(self.state.retrieve(query_bundle.query_str))


def nodes(chunks: Sequence[Chunk]) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=one.id,
                text=one.text,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=one.source)},
            ),
            score=1.0,
        )
        for one in chunks
    ]


class DigestLLM(CustomLLM):
    """Answers with the question and a digest of its prompt."""

    model: str = "m1"
    _halt: Halt | None = PrivateAttr(default=None)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self._halt:
            self._halt("model")
        question = prompt.split("@")[1]
        return CompletionResponse(
            text=answer_text(question, prompt, model=self.model, tenant=tenant())
        )

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


class LlamaIndexApp:
    """A `CachedQueryEngine` over the state."""

    def __init__(self, cache: Cache, mode: Mode, state: State, halt: Halt | None = None) -> None:
        self.state = state
        self._retriever = StateIndexRetriever(halt)
        llm = DigestLLM(model=state.model, callback_manager=CallbackManager())
        llm._halt = halt
        template = PROMPTS[state.prompt].replace("{documents}", "{context_str}")
        self._engine = RetrieverQueryEngine.from_args(
            self._retriever,
            llm=llm,
            text_qa_template=PromptTemplate(template.replace("{input}", "{query_str}")),
        )
        self._cached = CachedQueryEngine(
            self._engine,
            cache=cache,
            grounding=mode.grounding,  # type: ignore[arg-type]
            version_of=mode.version_of,  # type: ignore[arg-type]
            corpus=CORPUS,
            stamps=INDEX,
            version="1",
        )

    def ask(self, question: str) -> Reply:
        self._retriever.state = self.state
        response = self._cached.query(question)
        assert response.metadata is not None
        fields: Any = response.metadata["cache"]
        level = fields["level"] if fields["hit"] else ""
        cited = [node.text for node in response.source_nodes]
        return Reply(str(response), cited, level, fields["reason"])

    def uncached(self, question: str) -> Reply:
        found = nodes(self.state.retrieve(question))
        response = self._engine.synthesize(QueryBundle(question), found)
        return Reply(str(response), [node.text for node in found])


APPS: dict[str, type[LangChainApp] | type[LlamaIndexApp]] = {
    "langchain": LangChainApp,
    "llama-index": LlamaIndexApp,
}
