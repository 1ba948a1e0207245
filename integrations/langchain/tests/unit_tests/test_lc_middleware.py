"""`StampCacheMiddleware`: what a hit looks like, and what of an agent makes it another one."""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
pytest.importorskip("langgraph")

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, dynamic_prompt
from langchain.tools import ToolRuntime
from langchain_agents import LEAVE, QUESTION, Agent, answering, asking, reported
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_fakes import CountingChat, Shelf

import stampcache
from langchain_stampcache import CachedChatModel, StampCacheMiddleware
from stampcache import Cache, ConfigError, Stamps
from stampcache.testing import FailingStore


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_hit_asks_neither_model_nor_tools(opened: Cache, kind: str) -> None:
    agent = Agent(opened)
    ask = asking(agent, kind)
    first, second = ask(), ask()
    assert agent.model.calls == 2
    assert reported(first) == (False, "not found")
    assert reported(second) == (True, "same tokens")
    assert [type(each) for each in second["messages"]] == [HumanMessage, AIMessage]
    fresh, hit = first["messages"][-1], second["messages"][-1]
    assert hit.content == fresh.content
    assert hit.id not in (None, fresh.id)
    assert hit.usage_metadata == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    saved = hit.response_metadata["cache"]["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (22, 14)
    assert hit.response_metadata["finish_reason"] == "stop"


def test_sync_and_async_share_their_answers(opened: Cache) -> None:
    agent = Agent(opened)
    agent.ask()
    assert reported(asking(agent, "async")())[0]


def test_usage_callbacks_count_real_calls_only(opened: Cache) -> None:
    agent, meter = Agent(opened, reply=answering), UsageMetadataCallbackHandler()
    for _ in range(3):
        agent.ask(callbacks=[meter])
    assert meter.usage_metadata["fake-1"]["total_tokens"] == 18


def test_changing_a_result_changes_no_later_hit(opened: Cache) -> None:
    agent = Agent(opened)
    agent.ask()
    spoiled = agent.ask()["messages"][-1]
    text = spoiled.content
    spoiled.content = "spoiled"
    spoiled.response_metadata["cache"]["saved"].clear()
    assert agent.ask()["messages"][-1].content == text


def test_three_equal_turns_of_one_thread_keep_three_answers(opened: Cache) -> None:
    Agent(opened, reply=answering).ask()
    agent = Agent(opened, reply=answering)
    for _ in range(3):
        result = agent.ask(thread="one")
    replies = [each for each in result["messages"] if isinstance(each, AIMessage)]
    assert len({each.id for each in replies}) == 3
    assert [each.response_metadata["cache"]["hit"] for each in replies] == [True, False, False]


def test_history_is_part_of_the_question(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)
    agent.ask("I am Ann", thread="ann")
    agent.ask("I am Bob", thread="bob")
    ann = agent.ask("who am I", thread="ann")
    assert not reported(agent.ask("who am I", thread="bob"))[0]
    agent.ask("I am Ann", thread="again")
    again = agent.ask("who am I", thread="again")
    assert reported(again)[0]
    assert again["messages"][-1].content == ann["messages"][-1].content


def test_a_message_that_is_not_only_text_is_matched_whole(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)

    def seeing(url: str) -> HumanMessage:
        image = {"type": "image_url", "image_url": {"url": url}}
        return HumanMessage([{"type": "text", "text": "what is this"}, image])

    agent.ask(seeing("data:image/png;base64,AAAA"))
    assert not reported(agent.ask(seeing("data:image/png;base64,BBBB")))[0]
    assert reported(agent.ask(seeing("data:image/png;base64,AAAA")))[0]


def test_who_is_named_in_a_message_counts(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)
    agent.ask(HumanMessage(QUESTION, name="ann"))
    assert not reported(agent.ask(HumanMessage(QUESTION, name="bob")))[0]
    assert not reported(agent.ask(HumanMessage(QUESTION)))[0]
    assert reported(agent.ask(HumanMessage(QUESTION, name="ann")))[0]


# -- what makes it another agent --------------------------------------------------------------------


@tool("search")
def search_elsewhere(query: str) -> str:
    """Search the handbook."""
    return "something else"


@pytest.mark.parametrize(
    "other",
    [
        {"system_prompt": "Be brief."},
        {"tools": [search_elsewhere]},
        {"model": CountingChat(temperature=1.0).answering(answering)},
        {"response_format": {"title": "Leave", "type": "object", "properties": {}}},
        {"version": "2"},
        {"stamps": Stamps(model="2026-12")},
        {"name": "helper"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_agent_does_not_share(opened: Cache, other: dict[str, Any]) -> None:
    Agent(opened, reply=answering).ask()
    assert reported(Agent(opened, **{"reply": answering, **other}).ask())[0] is False
    assert reported(Agent(opened, reply=answering).ask())[0] is True


def test_a_changed_parameter_of_the_model_is_seen(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)
    agent.ask()
    agent.model.temperature = 0.5
    assert not reported(agent.ask())[0]


def test_a_prompt_that_a_middleware_makes_is_seen(opened: Cache) -> None:
    said = {"prompt": "Be brief."}

    @dynamic_prompt
    def prompt(request: Any) -> str:
        return said["prompt"]

    agent = Agent(opened, reply=answering, before=[prompt])
    agent.ask()
    said["prompt"] = "Be polite."
    assert not reported(agent.ask())[0]
    said["prompt"] = "Be brief."
    assert reported(agent.ask())[0]


@dataclass
class Context:
    language: str = "en"
    request: str = ""


def test_the_context_counts_unless_its_fields_are_named(opened: Cache) -> None:
    whole = Agent(opened, reply=answering, context_schema=Context)
    whole.ask(context=Context("en", "1"))
    assert not reported(whole.ask(context=Context("de", "1")))[0]
    assert not reported(whole.ask(context=Context("en", "2")))[0]
    named = Agent(opened, reply=answering, context_schema=Context, context_fields=["language"])
    named.ask(context=Context("fr", "1"))
    assert reported(named.ask(context=Context("fr", "2")))[0]
    assert not reported(named.ask(context=Context("it", "2")))[0]


class Noted(AgentState[Any]):
    note: str


def test_the_state_counts_unless_its_fields_are_named(opened: Cache) -> None:
    def ask(agent: Agent, note: str) -> bool:
        given: Any = {"messages": [("human", QUESTION)], "note": note}
        return reported(agent.graph.invoke(given, agent.config()))[0]

    whole = Agent(opened, reply=answering, state_schema=Noted)
    assert [ask(whole, "a"), ask(whole, "b"), ask(whole, "a")] == [False, False, True]
    none = Agent(opened, reply=answering, state_schema=Noted, state_fields=[])
    assert [ask(none, "c"), ask(none, "d")] == [False, True]


class Setting(AgentMiddleware[Any, Any, Any]):
    """Sets what the model is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Any] = {}

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(**self.given))


@pytest.mark.parametrize(
    "given", [{"tool_choice": "any"}, {"model_settings": {"stop": ["x"]}}, {"tools": []}], ids=str
)
def test_what_a_middleware_outside_sets_is_seen(opened: Cache, given: dict[str, Any]) -> None:
    setting = Setting()
    agent = Agent(opened, reply=answering, before=[setting])
    agent.ask()
    setting.given = given
    assert not reported(agent.ask())[0]
    assert reported(agent.ask())[0]


def test_what_is_configurable_counts_but_not_the_thread(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)
    agent.ask(configurable={"language": "en"})
    assert reported(agent.ask(configurable={"language": "en"}))[0]
    assert not reported(agent.ask(configurable={"language": "de"}))[0]


def test_a_tool_of_unknown_state_needs_a_version(
    opened: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    class Client:
        def get(self, query: str) -> str:
            return "30 days"

    client = Client()

    @tool
    def ask_server(query: str) -> str:
        """Ask a server."""
        return client.get(query)

    unknown = Agent(opened, reply=answering, tools=[ask_server])
    assert reported(unknown.ask()) == (False, "uncacheable")
    assert reported(unknown.ask()) == (False, "uncacheable")
    told = [each.message for each in caplog.records if "not cached" in each.message]
    assert len(told) == 1 and "ask_server" in told[0]
    known = Agent(opened, reply=answering, tools=[ask_server], version="1")
    known.ask()
    assert reported(known.ask())[0]


def test_a_tool_may_be_given_the_runtime(opened: Cache) -> None:
    @tool("search")
    def search_for(query: str, runtime: ToolRuntime) -> str:
        """Search."""
        return f"30 days after {len(runtime.state['messages'])} messages"

    agent = Agent(opened, tools=[search_for])
    agent.ask()
    assert reported(agent.ask())[0]


def test_a_tool_that_retrieves_is_known_by_its_settings(opened: Cache, shelf: Shelf) -> None:
    def agent(k: int) -> Agent:
        shelf.k = k
        return Agent(opened, tools=[create_retriever_tool(shelf, "search", "Search the handbook.")])

    agent(3).ask()
    assert reported(agent(3).ask())[0]
    assert not reported(agent(1).ask())[0]


def test_a_tool_may_hold_a_vector_store(opened: Cache) -> None:
    store = InMemoryVectorStore(embedding=object())  # type: ignore[arg-type]

    @tool("search")
    def search_store(query: str) -> str:
        """Search."""
        return str(store.store)

    agent = Agent(opened, tools=[search_store])
    agent.ask()
    assert reported(agent.ask())[0]


def test_a_tool_that_the_provider_runs_must_be_named(opened: Cache) -> None:
    web = {"type": "web_search"}
    assert reported(Agent(opened, reply=answering, tools=[web]).ask()) == (False, "uncacheable")


class Loud(AgentMiddleware[Any, Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(system_prompt="Shout."))


def test_a_middleware_inside_is_not_seen_and_needs_a_version(opened: Cache) -> None:
    inside = Agent(opened, reply=answering, after=[Loud()])
    inside.ask()
    assert reported(inside.ask()) == (False, "uncacheable")
    outside = Agent(opened, reply=answering, before=[Loud()])
    outside.ask()
    assert reported(outside.ask())[0]
    named = Agent(opened, reply=answering, after=[Loud()], version="loud")
    named.ask()
    assert reported(named.ask())[0]


# -- documents and time -----------------------------------------------------------------------------


@pytest.fixture
def days() -> Any:
    yield LEAVE
    LEAVE["days"] = 30


def test_a_write_to_the_corpus_makes_answers_stale(opened: Cache, days: dict[str, int]) -> None:
    agent = Agent(opened, corpus="handbook", stamps=Stamps(index="1"))
    agent.ask()
    assert reported(agent.ask())[0]
    days["days"] = 32
    opened.invalidate(corpus="handbook", source="leave.md")
    changed = agent.ask()
    assert reported(changed)[0] is False
    assert "32 days" in changed["messages"][-1].content


def test_a_change_during_a_run_keeps_its_answer_out(opened: Cache) -> None:
    @tool("search")
    def search_and_change(query: str) -> str:
        """Search."""
        opened.invalidate(corpus="handbook")
        return "30 days"

    agent = Agent(opened, tools=[search_and_change], corpus="handbook", version="1")
    agent.ask()
    assert agent.count("refused.fenced") == 1
    assert not reported(agent.ask())[0]


def test_without_a_corpus_every_announced_change_counts(opened: Cache) -> None:
    agent = Agent(opened)
    agent.ask()
    opened.invalidate(source="leave.md")
    assert not reported(agent.ask())[0]


def test_an_answer_lives_as_long_as_it_is_told() -> None:
    from stampcache.testing import FakeClock

    clock = FakeClock()
    with stampcache.open_cache("memory://", clock=clock) as cache:
        agent = Agent(cache, ttl_s=60)
        agent.ask()
        clock.advance(30)
        assert reported(agent.ask())[0]
        clock.advance(60)
        assert reported(agent.ask()) == (False, "expired")


def test_a_paraphrase_hits_in_the_first_turn_only() -> None:
    class OneWord:
        name = "one-word"

        def embed(self, texts: list[str]) -> Any:
            import numpy as np

            words = ("leave", "travel")
            rows = [[float(word in text) + 0.01 for word in words] for text in texts]
            return np.asarray(rows, np.float32)

    with stampcache.open_cache("memory://", embedder=OneWord(), calibration=0.95) as cache:
        agent = Agent(cache)
        agent.ask()
        like = agent.ask("tell me how long annual leave is", thread="like")
        assert like["messages"][-1].response_metadata["cache"]["level"] == "semantic"
        assert not reported(agent.ask(QUESTION, thread="like"))[0]


# -- who asks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("place", ["scope", "context", "metadata", "configurable"])
def test_two_tenants_never_share(opened: Cache, place: str, kind: str) -> None:
    agent = Agent(opened, context_schema=dict)
    put = asking(agent, kind)

    def ask(tenant: str) -> tuple[bool, str]:
        if place == "scope":
            with stampcache.scope(tenant=tenant):
                return reported(put())
        named = {"tenant": tenant}
        return reported(put(**{place: named}))

    assert [ask("acme")[0], ask("globex")[0], ask("acme")[0], ask("globex")[0]] == [
        False, False, True, True,
    ]  # fmt: skip
    assert agent.model.calls == 4


def test_an_audience_of_the_context_counts_beside_a_scope(opened: Cache) -> None:
    agent = Agent(opened, reply=answering, context_schema=dict, context_fields=[])
    with stampcache.scope(tenant="acme"):
        agent.ask(context={"audience": "board"})
        assert not reported(agent.ask(context={"audience": "staff"}))[0]
        assert reported(agent.ask(context={"audience": "board"}))[0]


def test_an_audience_counts_where_nobody_names_a_tenant(opened: Cache) -> None:
    agent = Agent(opened, reply=answering, context_schema=dict, context_fields=[])
    agent.ask(context={"audience": "board"})
    assert not reported(agent.ask(context={"audience": "staff"}))[0]


@pytest.mark.parametrize("context", [None, {"tenant": 7}], ids=["none", "no text"])
def test_without_a_tenant_a_cache_that_requires_one_is_bypassed(context: Any) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        agent = Agent(cache, context_schema=dict)
        for _ in range(2):
            assert reported(agent.ask(context=context)) == (False, "no tenant in scope")
        assert agent.model.calls == 4
        assert agent.count("adapter.unscoped") == 2
        assert agent.count("stored") == 0


def test_controls_are_honoured(opened: Cache) -> None:
    agent = Agent(opened)
    with stampcache.scope(no_store=True):
        agent.ask()
    assert not reported(agent.ask())[0]
    with stampcache.scope(no_cache=True):
        assert reported(agent.ask()) == (False, "told not to look up")
    told = {"stampcache": {"no_cache": True}}
    assert reported(agent.ask(metadata=told)) == (False, "told not to look up")
    assert reported(agent.ask())[0]


def test_a_question_may_have_several_answers(opened: Cache) -> None:
    agent = Agent(opened, reply=answering)
    with stampcache.scope(variety=2):
        told = [agent.ask()["messages"][-1].text for _ in range(6)]
    assert len(set(told)) == 2
    assert agent.model.calls == 2


# -- availability and construction ------------------------------------------------------------------


def test_the_agent_answers_while_the_store_is_down() -> None:
    store = FailingStore()
    with stampcache.Cache(store) as cache:
        agent = Agent(cache)
        agent.ask()
        store.down = True
        assert "30 days" in agent.ask()["messages"][-1].content
        assert agent.model.calls == 4
        store.down = False


def test_a_damaged_entry_is_a_miss(opened: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(opened)
    agent.ask()
    monkeypatch.setattr("langchain_stampcache.agents.runs.AGENT", "lc.agent.2")
    assert not reported(agent.ask())[0]
    assert agent.count("error.adapter.undecodable") == 1
    assert reported(agent.ask())[0]


def test_the_model_may_be_a_cached_one(opened: Cache) -> None:
    inner = CountingChat().answering(answering)
    agent = Agent(opened, model=CachedChatModel(inner=inner, cache=opened))
    first, second = agent.ask(), agent.ask()
    assert inner.calls == 1
    assert reported(first) == (False, "not found")
    assert second["messages"][-1].response_metadata["cache"]["saved"]["input_tokens"] == 11
    inner.temperature = 0.5
    assert not reported(agent.ask())[0]


def test_wrong_settings_are_refused(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="open cache"):
        StampCacheMiddleware("sqlite:///rag.db")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ttl_s"):
        StampCacheMiddleware(opened, ttl_s=0)
    with pytest.raises(ConfigError, match="list of names"):
        StampCacheMiddleware(opened, cacheable_tools="search")
    with pytest.raises(ConfigError, match="version must be known"):
        StampCacheMiddleware(opened, corpus="handbook")


def test_the_integration_needs_no_agents() -> None:
    code = """
import sys
sys.modules["langchain"] = sys.modules["langgraph"] = None
import langchain_stampcache
try:
    langchain_stampcache.StampCacheMiddleware
except ImportError as error:
    print(error)
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ).stdout
    assert told.startswith("StampCacheMiddleware needs")
    assert "pip install 'langchain-stampcache[agents]'" in told


def test_hits_carry_the_result_of_the_run_not_of_its_tools(opened: Cache) -> None:
    agent = Agent(opened)
    agent.ask()
    assert not [each for each in agent.ask()["messages"] if isinstance(each, ToolMessage)]
