"""LangChain: for each seam an application without a cache, and the same one with it."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy
from pydantic import PrivateAttr
from typing_extensions import TypedDict

from benchmarks.overhead.pair import Pair, paired
from langchain_stampcache import (
    CachedChain,
    CachedChatModel,
    StampCache,
    StampCacheMiddleware,
    StampNodeCache,
    node_key,
)
from stampcache import Stamps, open_cache

PROMPT = ChatPromptTemplate.from_template("Use only this:\n{context}\n\nQuestion: {input}")
DOCUMENTS = [
    Document(f"Chapter {number}: annual leave is thirty days. " * 8, metadata={"source": "leave"})
    for number in range(4)
]
BUILT = Stamps(index="built-1")


class InstantChat(BaseChatModel):
    """A chat model that answers at once."""

    model: str = "instant-1"
    temperature: float = 0.0
    _made: list[None] = PrivateAttr(default_factory=list)

    @property
    def made(self) -> int:
        """How often it has answered."""
        return len(self._made)

    @property
    def _llm_type(self) -> str:
        return "instant-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        self._made.append(None)
        reply = AIMessage(
            f"Thirty days, says chapter two. You asked: {messages[-1].text}",
            usage_metadata={"input_tokens": 900, "output_tokens": 60, "total_tokens": 960},
            response_metadata={"model_name": self.model, "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _models() -> tuple[InstantChat, InstantChat]:
    return InstantChat(cache=False), InstantChat(cache=False)


def _says(given: Any) -> object:
    return given.text if isinstance(given, BaseMessage) else given


def llm_cache() -> Pair:
    """A model with `StampCache` as its ``cache=``."""
    cache, (plain, kept) = open_cache("memory://"), _models()
    kept.cache = StampCache(cache)
    return paired(cache, (plain, kept), plain.invoke, kept.invoke, kept.ainvoke, _says)


def chat_model() -> Pair:
    """A model behind `CachedChatModel`."""
    cache, (plain, inner) = open_cache("memory://"), _models()
    kept = CachedChatModel(inner=inner, cache=cache)
    return paired(cache, (plain, inner), plain.invoke, kept.invoke, kept.ainvoke, _says)


def chain(grounding: str) -> Callable[[], Pair]:
    """Retrieval and answer, as LCEL and as a `CachedChain`."""

    def make() -> Pair:
        cache, (plain, inner) = open_cache("memory://"), _models()
        retriever: Any = RunnableLambda(lambda _: list(DOCUMENTS))
        alone = RunnablePassthrough.assign(context=retriever).assign(
            answer=PROMPT | plain | StrOutputParser()
        )
        kept: Any = CachedChain(
            retriever=retriever,
            answer=PROMPT | inner | StrOutputParser(),
            cache=cache,
            grounding=grounding,  # type: ignore[arg-type]  # a name of ours
            corpus="handbook",
            stamps=BUILT,
        )

        async def acached(question: str) -> Any:
            return (await kept.ainvoke({"input": question}))["answer"]

        return paired(
            cache,
            (plain, inner),
            lambda question: alone.invoke({"input": question})["answer"],
            lambda question: kept.invoke({"input": question})["answer"],
            acached,
            _says,
        )

    return make


class Idle(AgentMiddleware[Any, Any, Any]):
    """Stands where the cache does, and does nothing: what the framework takes for any middleware."""

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> Any:
        """Call the model."""
        return handler(request)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Change nothing."""


def agent() -> Pair:
    """An agent with a middleware that does nothing, and with `StampCacheMiddleware`."""
    cache, (plain, inner) = open_cache("memory://"), _models()
    alone = create_agent(plain, tools=[], middleware=[Idle()])
    kept = create_agent(inner, tools=[], middleware=[StampCacheMiddleware(cache)])

    def asked(question: str) -> Any:
        return {"messages": [("human", question)]}

    async def acached(question: str) -> Any:
        return (await kept.ainvoke(asked(question)))["messages"][-1]

    return paired(
        cache,
        (plain, inner),
        lambda question: alone.invoke(asked(question))["messages"][-1],
        lambda question: kept.invoke(asked(question))["messages"][-1],
        acached,
        _says,
    )


class Asked(TypedDict):
    """The state of the graph."""

    question: str
    answer: str


def node() -> Pair:
    """A graph with a node whose results `StampNodeCache` keeps."""
    cache, models = open_cache("memory://"), _models()

    def graph(model: InstantChat, kept: StampNodeCache | None) -> Any:
        def respond(state: Asked) -> dict[str, str]:
            reply: AIMessage = model.invoke(state["question"])
            return {"answer": str(reply.text)}

        policy = CachePolicy(key_func=node_key) if kept else None
        built = StateGraph(Asked)
        built.add_node("respond", respond, cache_policy=policy)
        built.add_edge(START, "respond")
        built.add_edge("respond", END)
        return built.compile(cache=kept)

    alone, kept = graph(models[0], None), graph(models[1], StampNodeCache(cache))

    async def acached(question: str) -> Any:
        return (await kept.ainvoke({"question": question}))["answer"]

    return paired(
        cache,
        models,
        lambda question: alone.invoke({"question": question})["answer"],
        lambda question: kept.invoke({"question": question})["answer"],
        acached,
        _says,
    )


SEAMS: Mapping[str, Callable[[], Pair]] = {
    "StampCache": llm_cache,
    "CachedChatModel": chat_model,
    "CachedChain, recheck": chain("recheck"),
    "CachedChain, version": chain("version"),
    "StampCacheMiddleware": agent,
    "StampNodeCache": node,
}
