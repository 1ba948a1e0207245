"""Which model the demo asks, by the environment; and the small local one, where it is installed."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from stampcache.demo.endpoint import Endpoint, chosen, demo_folder
from stampcache.errors import ConfigError


class Models(BaseHTTPRequestHandler):
    """Lists one model under ``/v1``, and something else elsewhere."""

    def do_GET(self) -> None:
        listed = {"data": [{"id": "r1-distill"}]} if self.path == "/v1/models" else {"data": []}
        body = json.dumps(listed).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's signature
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Models) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_nothing_set_means_the_local_model() -> None:
    assert chosen({}) is None
    assert chosen({"DEEPSEEK_API_KEY": " ", "DEEPSEEK_BASE_URL": ""}) is None


def test_a_key_alone_means_the_api_of_deepseek() -> None:
    endpoint = chosen({"DEEPSEEK_API_KEY": "sk-secret"})
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.model) == ("https://api.deepseek.com", "deepseek-chat")
    assert "DEEPSEEK_API_KEY is set" in endpoint.sentence


def test_the_key_is_never_printed() -> None:
    endpoint = chosen({"DEEPSEEK_API_KEY": "sk-secret"})
    assert endpoint is not None
    assert "sk-secret" not in f"{endpoint!r} {endpoint.sentence}"


def test_a_server_is_asked_for_its_model(server: str) -> None:
    endpoint = chosen({"DEEPSEEK_BASE_URL": f"{server}/v1/", "DEEPSEEK_API_KEY": "k"})
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.model) == (f"{server}/v1", "r1-distill")
    assert endpoint.api_key == "k"
    assert "DEEPSEEK_BASE_URL" in endpoint.sentence


def test_a_named_model_needs_no_asking() -> None:
    environment = {"DEEPSEEK_BASE_URL": "http://127.0.0.1:1/v1", "DEEPSEEK_MODEL": "m"}
    assert chosen(environment) == Endpoint(
        base_url="http://127.0.0.1:1/v1",
        model="m",
        sentence="m at http://127.0.0.1:1/v1 answers, as DEEPSEEK_BASE_URL says.",
    )


def test_an_application_is_told_of_the_endpoint_by_the_same_variables() -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:1/v1", model="m", api_key="k")
    told = chosen(endpoint.environment())
    assert told is not None
    assert (told.base_url, told.model, told.api_key) == ("http://127.0.0.1:1/v1", "m", "k")


def test_a_server_that_names_no_model_is_one_sentence(server: str) -> None:
    with pytest.raises(ConfigError, match="name the model in DEEPSEEK_MODEL"):
        chosen({"DEEPSEEK_BASE_URL": server})


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "file:///etc/passwd"])
def test_a_url_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(ConfigError, match="DEEPSEEK_BASE_URL is"):
        chosen({"DEEPSEEK_BASE_URL": url})


def test_the_folder_of_the_indexes() -> None:
    assert demo_folder({"STAMPCACHE_DEMO_DIR": "/tmp/x"}) == Path("/tmp/x")
    assert demo_folder({}).name == "stampcache-demo"


def asked(endpoint: Endpoint, key: str) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": "Name a colour."}], "temperature": 0}
    request = urllib.request.Request(
        f"{endpoint.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        read: dict[str, Any] = json.loads(answer.read())
    return read


def test_the_local_model_answers_in_one_sentence_and_then_is_gone() -> None:
    pytest.importorskip("xllamacpp")
    from stampcache.demo.local_model import local_model

    with local_model() as endpoint:
        first, second = asked(endpoint, endpoint.api_key), asked(endpoint, endpoint.api_key)
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(endpoint, "another key")
        refused.value.close()
    (choice,), (again,) = first["choices"], second["choices"]
    assert choice["message"]["content"] == again["message"]["content"]
    assert choice["message"]["content"].endswith(".")
    assert choice["finish_reason"] == "stop"
    assert first["usage"]["completion_tokens"] > 0
    with pytest.raises(urllib.error.URLError):
        asked(endpoint, endpoint.api_key)


def test_a_local_model_may_end_as_soon_as_it_has_begun() -> None:
    pytest.importorskip("xllamacpp")
    from stampcache.demo.local_model import local_model

    for _ in range(3):
        with local_model() as endpoint:
            assert endpoint.sentence
