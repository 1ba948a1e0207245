"""The LangChain examples beside the demo's: a service, an agent and a graph, each run for real."""

import ast
import asyncio
import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stampcache

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("langchain_fastapi", "langchain_agent", "langgraph_graph")
QUESTION = "How many days of leave do I have?"

for needed in ("fastapi", "uvicorn", "httpx", "langchain.agents", "langgraph", "langchain_core"):
    pytest.importorskip(needed)

import httpx  # noqa: E402 - it is known now to be there
import uvicorn  # noqa: E402 - only where it is installed


def loaded(name: str) -> ModuleType:
    """Return a fresh copy of an example, whose documents no other test has changed."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_an_example_stands_alone(name: str) -> None:
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in imported if "stampcache" in name or name in ("tests", "examples")}
    assert ours == {"stampcache", "langchain_stampcache"}
    assert len(source.splitlines()) <= 170


@pytest.mark.parametrize("name", ["langchain_agent", "langgraph_graph"])
def test_an_example_runs_as_a_program(name: str, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), QUESTION],
        capture_output=True, text=True, check=True, cwd=tmp_path, env=without_endpoint(),
    ).stdout  # fmt: skip
    assert "30 days" in told
    usage = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=without_endpoint(),
    )  # fmt: skip
    assert usage.returncode == 1
    assert f"python examples/{name}.py" in usage.stderr


def without_endpoint() -> dict[str, str]:
    import os

    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("DEEPSEEK")},
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_names_the_model(name: str) -> None:
    pytest.importorskip("langchain_deepseek")
    example = loaded(name)
    told = {"DEEPSEEK_BASE_URL": "http://127.0.0.1:9/v1", "DEEPSEEK_MODEL": "r1"}
    assert example.language_model(told).model_name == "r1"
    assert "deepseek" not in type(example.language_model({})).__name__.lower()


# -- the agent --------------------------------------------------------------------------------------


@pytest.fixture
def cache() -> Iterator[stampcache.Cache]:
    with stampcache.open_cache("memory://", tenants="required") as opened:
        yield opened


class CountedAgent:
    """The agent of the example, and how often its model is asked."""

    def __init__(self, cache: stampcache.Cache) -> None:
        self.example = loaded("langchain_agent")
        example, counted = self.example, self

        class Counting(example.Scripted):  # type: ignore[name-defined, misc]
            def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
                counted.calls += 1
                return super()._generate(messages, *args, **kwargs)

        self.calls = 0
        self.sent: list[str] = []
        self.handbook = example.Handbook({"leave.md": "Staff have 30 days of leave."}, cache)
        tools = example.tools_for(self.handbook, self.sent)
        self.agent = example.build(cache, Counting(), tools)

    def ask(self, question: str, thread: str, tenant: str = "acme") -> tuple[str, bool]:
        with stampcache.scope(tenant=tenant):
            text, told = self.example.ask(self.agent, question, thread)
        return text, told["hit"]


def test_the_agent_answers_an_equal_question_from_the_cache(cache: stampcache.Cache) -> None:
    app = CountedAgent(cache)
    assert app.ask(QUESTION, "one") == ("It says: Staff have 30 days of leave.", False)
    assert app.ask(QUESTION, "two") == ("It says: Staff have 30 days of leave.", True)
    assert app.calls == 2
    assert app.ask(QUESTION, "three", tenant="globex")[1] is False
    app.handbook.edit("leave.md", "Staff have 32 days of leave.")
    assert app.ask(QUESTION, "four") == ("It says: Staff have 32 days of leave.", False)


def test_the_agent_sends_each_mail(cache: stampcache.Cache) -> None:
    app = CountedAgent(cache)
    for thread in ("one", "two"):
        text, hit = app.ask("Mail Ann", thread)
        assert ("sent to Ann" in text, hit) == (True, False)
    assert app.sent == ["Ann: Hello", "Ann: Hello"]


# -- the graph --------------------------------------------------------------------------------------


def test_the_graph_skips_its_cached_nodes(cache: stampcache.Cache) -> None:
    example = loaded("langgraph_graph")
    graph = example.build(cache, example.Repeating())

    def ask(tenant: str, thread: str) -> tuple[str, list[str]]:
        answer: tuple[str, list[str]] = example.ask(graph, QUESTION, tenant=tenant, thread=thread)
        return answer

    assert ask("acme", "one") == ("Staff of Acme have 30 days of leave.", [])
    assert ask("acme", "two") == ("Staff of Acme have 30 days of leave.", ["read", "answer"])
    assert ask("globex", "one") == ("Staff of Globex have 25 days of leave.", [])
    example.edit(cache, "acme", "leave.md", "Staff of Acme have 32 days of leave.")
    assert ask("acme", "three") == ("Staff of Acme have 32 days of leave.", [])


def test_the_graph_keeps_its_conversation(cache: stampcache.Cache) -> None:
    example = loaded("langgraph_graph")
    graph = example.build(cache, example.Repeating())
    for _ in range(2):
        example.ask(graph, QUESTION, tenant="acme", thread="one")
    kept = graph.get_state({"configurable": {"thread_id": "acme/one"}}).values["messages"]
    assert [type(each).__name__ for each in kept] == 2 * ["HumanMessage", "AIMessage", "AIMessage"]
    assert kept[4].text.startswith("Turn 2")


# -- the service ------------------------------------------------------------------------------------


class Gate:
    """Holds a model back before each further piece until the test lets it go on."""

    def __init__(self) -> None:
        self.let_go = threading.Semaphore(0)
        self.calls = 0


@pytest.fixture
def example() -> ModuleType:
    return loaded("langchain_fastapi")


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def service(example: ModuleType, gate: Gate, cache: stampcache.Cache) -> Iterator[httpx.Client]:
    """The service behind a real server on a free port; its streamed model waits at the gate."""

    class Gated(example.Repeating):  # type: ignore[name-defined, misc]
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            gate.calls += 1
            return super()._generate(messages, *args, **kwargs)

        def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            gate.calls += 1
            for chunk in super()._stream(messages, *args, **kwargs):
                assert gate.let_go.acquire(timeout=60)
                yield chunk

    app = example.build(cache, Gated())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True
        )
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        port = listening.getsockname()[1]
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False
        ) as client:
            yield client
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


def asked(service: httpx.Client, name: str, text: str = QUESTION) -> tuple[str, bool]:
    response = service.post("/ask", json={"text": text}, headers=bearer(name))
    response.raise_for_status()
    told = response.json()
    return told["answer"].strip(), told["cache"]["hit"]


def events(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Yield the events of a stream as they arrive."""
    name = ""
    for line in response.iter_lines():
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield name, json.loads(value)


def test_the_service_keeps_tenants_and_audiences_apart(service: httpx.Client, gate: Gate) -> None:
    ours = "Staff of Acme have 30 days of leave."
    theirs = "Staff of Globex have 25 days of leave."
    board = "Acme and its rival will merge after the leave season."
    assert asked(service, "ann") == (ours, False)
    assert asked(service, "ann") == (ours, True)
    assert asked(service, "cleo") == (theirs, False)
    assert asked(service, "bob") == (board, False)
    assert asked(service, "bob") == (board, True)
    assert asked(service, "cleo") == (theirs, True)
    assert gate.calls == 3
    figures = service.get("/stats", headers=bearer("ann")).json()
    assert figures == {"requests": 2, "hits": 1, "entries": 1}


def test_the_service_refuses_a_token_that_it_does_not_know(service: httpx.Client) -> None:
    assert service.post("/ask", json={"text": QUESTION}).status_code == 401
    assert service.get("/stream", params={"text": QUESTION}).status_code == 401
    assert service.get("/stats", headers=bearer("mallory")).status_code == 401


def test_the_service_streams_in_pieces_and_then_from_the_cache(
    service: httpx.Client, gate: Gate
) -> None:
    for at in range(2):
        pieces: list[str] = []
        with service.stream(
            "GET", "/stream", params={"text": QUESTION}, headers=bearer("ann")
        ) as told:
            assert told.headers["content-type"].startswith("text/event-stream")
            gate.let_go.release()  # the model may say one word; the others wait for that to arrive
            for name, value in events(told):
                if name == "answer":
                    pieces.append(value)
                    gate.let_go.release()
                else:
                    assert value["hit"] is (at == 1)
        assert "".join(pieces).strip() == "Staff of Acme have 30 days of leave."
        assert at == 1 or len(list(filter(None, pieces))) == 8
    assert gate.calls == 1
    assert asked(service, "ann")[1] is True


def test_the_service_makes_an_answer_anew_when_its_document_changed(service: httpx.Client) -> None:
    asked(service, "ann")
    changed = "Staff of Acme have 32 days of leave."
    service.put("/documents/leave.md", json={"text": changed}, headers=bearer("ann"))
    assert asked(service, "ann") == (changed, False)
    assert asked(service, "ann") == (changed, True)
