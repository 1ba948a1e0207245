"""The chat service and the agent in LlamaIndex: with scripted models, as they run without an endpoint."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stampcache

FOLDER = Path(__file__).parent.parent / "examples"
LEAVE = "How many days of leave do I have?"
pytest.importorskip("llama_index.llms.deepseek")
# The framework looks at an agent's attributes, and so at those that pydantic has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where the framework looks up annotations
    spec.loader.exec_module(module)
    return module


# -- the chat service ------------------------------------------------------------------------------


@pytest.fixture
def example() -> Any:
    pytest.importorskip("fastapi")
    return loaded("llama_index_chat")


@pytest.fixture
def client(example: Any) -> Iterator[Any]:
    testing = pytest.importorskip("fastapi.testclient")
    cache = stampcache.open_cache("memory://", tenants="required")
    app = example.build_app(example.language_model({}), cache)
    with testing.TestClient(app) as opened:
        yield opened


def say(client: Any, message: str, conversation: str = "1", key: str = "acme-key") -> Any:
    said = {"conversation": conversation, "message": message}
    answered = client.post("/chat", json=said, headers={"Authorization": f"Bearer {key}"})
    assert answered.status_code == 200
    return answered.json()


def test_a_question_hits_in_another_conversation(client: Any) -> None:
    first = say(client, LEAVE)
    assert first["answer"] == "Staff have 30 days of leave a year." and not first["cache"]["hit"]
    assert first["sources"][0] == "leave.md"
    say(client, "And who books trains?", "2")
    again = say(client, LEAVE, "2")
    assert again["cache"]["hit"] and again["answer"] == first["answer"]
    assert again["sources"] == first["sources"]


def test_a_customer_is_known_by_the_header_alone(client: Any) -> None:
    say(client, LEAVE)
    assert not say(client, LEAVE, key="globex-key")["cache"]["hit"]
    assert say(client, LEAVE, "2")["cache"]["hit"]
    for headers in ({}, {"Authorization": "Bearer nobody"}, {"Authorization": "acme-key"}):
        said = {"conversation": "1", "message": LEAVE, "tenant": "acme"}
        assert client.post("/chat", json=said, headers=headers).status_code == 401


def test_a_stream_is_stored_when_it_has_ended(client: Any) -> None:
    told = []
    for conversation in "12":
        said = {"conversation": conversation, "message": LEAVE}
        with client.stream(
            "POST", "/chat/stream", json=said, headers={"Authorization": "Bearer acme-key"}
        ) as answered:
            assert answered.status_code == 200
            told.append("".join(answered.iter_text()))
    assert told == ["Staff have 30 days of leave a year."] * 2
    assert say(client, LEAVE, "3")["cache"]["hit"]
    stats = client.get("/stats", headers={"Authorization": "Bearer acme-key"}).json()
    assert stats == {"requests": 3, "hits": 2, "entries": 1}


def test_a_written_document_is_answered_from_at_once(client: Any) -> None:
    say(client, LEAVE)
    written = client.put(
        "/documents/leave.md",
        json={"text": "Staff have 33 days of leave a year."},
        headers={"Authorization": "Bearer acme-key"},
    )
    assert written.status_code == 204
    changed = say(client, LEAVE, "2")
    assert changed["answer"] == "Staff have 33 days of leave a year."
    assert changed["cache"]["reason"] == "evidence changed"


def test_conversations_of_two_customers_are_two(client: Any, example: Any) -> None:
    assert set(example.CUSTOMERS.values()) == {"acme", "globex"}
    say(client, "My name is Ann.", "1")
    say(client, LEAVE, "1", "globex-key")
    engine = client.app.state.service.engine("globex", "1")
    assert engine.chat_history[0].content == LEAVE


# -- the agent -------------------------------------------------------------------------------------


async def test_the_tool_of_an_agent_answers_from_the_cache() -> None:
    agent = loaded("llama_index_agent")
    with stampcache.open_cache("memory://") as cache:
        desk = agent.Desk(agent.language_model({}), cache)
        told = [await desk.ask(LEAVE) for _ in range(2)]
        assert [text for text, _ in told] == ["Staff have 30 days of leave a year."] * 2
        assert [[call["hit"] for call in calls] for _, calls in told] == [[False], [True]]
        desk.edit("leave.md", "Staff have 32 days of leave a year.")
        text, (call,) = await desk.ask(LEAVE)
        assert text == "Staff have 32 days of leave a year."
        assert call["reason"] == "evidence changed"
        with stampcache.scope(tenant="other"):
            assert not (await desk.ask(LEAVE))[1][0]["hit"]


async def test_the_agent_runs_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    agent = loaded("llama_index_agent")
    await agent.answer_twice(LEAVE)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "'hit': False" in lines[1] and "'hit': True" in lines[3]


@pytest.mark.parametrize("name", ["llama_index_chat", "llama_index_agent"])
def test_a_configured_endpoint_is_used(name: str) -> None:
    if name == "llama_index_chat":
        pytest.importorskip("fastapi")
    module = loaded(name)
    llm = module.language_model({"DEEPSEEK_BASE_URL": "http://127.0.0.1:9/v1"})
    assert type(llm).__name__ == "DeepSeek" and llm.api_base == "http://127.0.0.1:9/v1"
    assert type(module.language_model({})).__name__ == "Scripted"
