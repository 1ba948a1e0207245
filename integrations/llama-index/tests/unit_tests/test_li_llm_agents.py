"""A cached model in the places where LlamaIndex uses models: agents, workflows, engines."""

from typing import Any

import pytest
from llama_fakes import Corpus
from llama_index.core import Settings
from llama_index.core.agent.workflow import (
    AgentStream,
    AgentWorkflow,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.chat_engine import CondensePlusContextChatEngine, SimpleChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_llm_fakes import ADD, ScriptedLLM, user
from pydantic import BaseModel

import stampcache
from llama_index_stampcache import CachedLLM
from stampcache import Cache

# The framework looks at objects in a way that pydantic has given up.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


@pytest.fixture
def inner() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def llm(inner: ScriptedLLM, cache: Cache) -> CachedLLM:
    return CachedLLM(inner, cache=cache)


def memory() -> ChatMemoryBuffer:
    """A memory in this process: the framework's own leaves a connection to a database open."""
    return ChatMemoryBuffer.from_defaults(token_limit=10_000)


class Ran:
    """What one run of an agent gave."""

    def __init__(self) -> None:
        self.text = ""
        self.deltas: list[str] = []
        self.calls: list[Any] = []


async def run(agent: Any, question: str) -> Ran:
    ran, handler = Ran(), agent.run(user_msg=question, memory=memory())
    async for event in handler.stream_events():
        if isinstance(event, AgentStream):
            ran.deltas.append(event.delta)
    output = await handler
    ran.text = str(output)
    ran.calls = [(one.tool_name, one.tool_kwargs) for one in output.tool_calls]
    return ran


@pytest.mark.parametrize("streaming", [True, False])
async def test_i7_a_function_agent_asks_its_model_once(
    streaming: bool, llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    plain = FunctionAgent(tools=[ADD], llm=ScriptedLLM(), streaming=streaming)
    expected = await run(plain, "add 2 3")
    assert expected.text == "the sum is 5"
    for _ in range(3):
        agent = FunctionAgent(tools=[ADD], llm=llm, streaming=streaming)
        ran = await run(agent, "add 2 3")
        assert (ran.text, ran.deltas, ran.calls) == (
            expected.text,
            expected.deltas,
            expected.calls,
        )
    assert inner.calls == 2  # the call of the tool, and what was made of its result
    assert cache.stats().exact_hits == 4


async def test_an_agent_goes_on_from_a_hit_as_from_a_miss(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    """B8: the second question of a dialogue hits although the ids of its first are others."""

    async def dialogue(model: Any) -> list[str]:
        agent = FunctionAgent(tools=[ADD], llm=model)
        kept = memory()
        return [str(await agent.run(user_msg=text, memory=kept)) for text in ("add 2 3", "add 4 5")]

    expected = await dialogue(ScriptedLLM())
    assert [await dialogue(llm) for _ in range(3)] == [expected] * 3
    assert inner.calls == 4


async def test_agents_of_two_tenants_share_nothing(llm: CachedLLM, inner: ScriptedLLM) -> None:
    for tenant in ("acme", "other", "acme"):
        with stampcache.scope(tenant=tenant):
            ran = await run(FunctionAgent(tools=[ADD], llm=llm), "add 2 3")
        assert ran.text == "the sum is 5"
    assert inner.calls == 4


async def test_a_workflow_of_agents(llm: CachedLLM, inner: ScriptedLLM) -> None:
    for _ in range(2):
        agent = FunctionAgent(name="adder", description="adds", tools=[ADD], llm=llm)
        workflow = AgentWorkflow(agents=[agent], root_agent="adder")
        ran = await run(workflow, "add 2 3")
        assert ran.text == "the sum is 5"
    assert inner.calls == 2


class ReactLLM(ScriptedLLM):
    """A model that knows no tools, and writes down which one it wants."""

    calls_tools: bool = False

    def _said(self, messages: Any, kwargs: Any) -> ChatMessage:
        text = messages[-1].content or ""
        wants = 'Thought: I need a tool.\nAction: add\nAction Input: {"a": 2, "b": 3}'
        knows = f"Thought: I can answer without using any more tools.\nAnswer: {text[-1:]} it is"
        said = knows if text.startswith("Observation") else wants
        return ChatMessage(role="assistant", content=said)


@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_react_agent(streaming: bool, cache: Cache) -> None:
    inner = ReactLLM()
    plain = ReActAgent(tools=[ADD], llm=ReactLLM(), streaming=streaming)
    expected = await run(plain, "add them")
    assert expected.text == "5 it is"
    for _ in range(3):
        llm = CachedLLM(inner, cache=cache)
        ran = await run(ReActAgent(tools=[ADD], llm=llm, streaming=streaming), "add them")
        assert (ran.text, ran.deltas) == (expected.text, expected.deltas)
    assert inner.calls == 2


async def test_a_workflow_of_ones_own(llm: CachedLLM, inner: ScriptedLLM) -> None:
    class Asking(Workflow):
        @step
        async def ask(self, event: StartEvent) -> StopEvent:
            response = await llm.achat(user(event.question))
            return StopEvent(result=response.message.content)

    told = [await Asking().run(question="hello") for _ in range(2)]
    assert told[0] == told[1]
    assert inner.calls == 1


# -- engines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(ResponseMode))
@pytest.mark.parametrize("streaming", [True, False])
async def test_query_engines_of_all_modes(
    mode: ResponseMode, streaming: bool, llm: CachedLLM, inner: ScriptedLLM, corpus: Corpus
) -> None:
    """In a running loop, as the framework counts tokens in one, and else takes pytest's away."""
    if mode in (ResponseMode.NO_TEXT, ResponseMode.CONTEXT_ONLY):
        pytest.skip("asks no model")
    if streaming and mode is ResponseMode.ACCUMULATE:
        pytest.skip("the framework does not stream it")
    if streaming and mode is ResponseMode.COMPACT_ACCUMULATE:
        pytest.skip("the framework does not stream it")

    def ask(model: Any) -> str:
        retriever = corpus.index.as_retriever(similarity_top_k=2)
        engine = RetrieverQueryEngine.from_args(
            retriever, llm=model, response_mode=mode, streaming=streaming
        )
        return str(engine.query("annual leave?"))

    plain = ScriptedLLM()
    expected = ask(plain)
    assert [ask(llm), ask(llm)] == [expected, expected]
    assert inner.calls == plain.calls


async def test_an_engine_reads_the_model_of_all(
    llm: CachedLLM, inner: ScriptedLLM, corpus: Corpus
) -> None:
    before = Settings._llm
    Settings.llm = llm
    try:
        told = [str(corpus.index.as_query_engine().query("annual leave?")) for _ in range(2)]
        told.append(str(await corpus.index.as_query_engine().aquery("annual leave?")))
    finally:
        Settings._llm = before
    assert len(set(told)) == 1
    assert inner.calls == 1


class Leave(BaseModel):
    days: int


async def test_an_engine_with_an_output_class(
    llm: CachedLLM, inner: ScriptedLLM, corpus: Corpus
) -> None:
    def ask() -> Any:
        engine = corpus.index.as_query_engine(llm=llm.as_structured_llm(Leave))
        return engine.query("annual leave?").response

    assert ask() == ask()
    assert isinstance(ask(), Leave)
    assert inner.calls == 1


async def test_chat_engines(llm: CachedLLM, inner: ScriptedLLM, corpus: Corpus) -> None:
    def simple(model: Any) -> list[str]:
        engine = SimpleChatEngine.from_defaults(llm=model, memory=memory())
        return [str(engine.chat("hello")), str(engine.chat("and now?"))]

    plain = ScriptedLLM()
    expected = simple(plain)
    assert [simple(llm), simple(llm)] == [expected, expected]
    assert inner.calls == plain.calls == 2

    def streamed() -> str:
        engine = CondensePlusContextChatEngine.from_defaults(
            corpus.index.as_retriever(), llm=llm, memory=memory()
        )
        return "".join(engine.stream_chat("annual leave?").response_gen)

    assert streamed() == streamed()
    assert inner.calls == 3
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory())
    stream = await engine.astream_chat("hello there")
    told = "".join([one async for one in stream.async_response_gen()])
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory())
    stream = await engine.astream_chat("hello there")
    assert "".join([one async for one in stream.async_response_gen()]) == told
    assert inner.calls == 4
