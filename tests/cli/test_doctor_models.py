"""``stampcache doctor`` on embedders and model endpoints."""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from stampcache import Calibration, EmbedderError, Stamps
from stampcache.calibration import MINILM, MULTILINGUAL
from stampcache.cli.app import build_app
from stampcache.cli.check_embedder import examine_embedder
from stampcache.cli.check_endpoint import Endpoint, examine_endpoint
from stampcache.cli.check_result import CheckResult, Status
from stampcache.stores.sqlite_survey import StampCount

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


# -- the embedder ---------------------------------------------------------------------------------


class Plain:
    """Answers vectors of the given size."""

    def __init__(self, size: int = 4) -> None:
        self.name = "plain"
        self.size = size

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.size:
            raise EmbedderError("The embedder plain is asleep.")
        return np.ones((len(texts), self.size), np.float32)


def embedder_findings(given: object, **dimensions: int) -> dict[str, CheckResult]:
    stamps = [StampCount(Stamps(embedder="plain"), 3)]
    found = examine_embedder(given, dimensions=dimensions, stamps=stamps)
    return {one.check: one for one in found}


def test_an_embedder_that_fits() -> None:
    found = embedder_findings(Plain(), plain=4)
    assert found["embedder"].status is Status.OK
    assert "ms (median)" in found["embedder"].found
    assert found["dimension"].found == "4, as recorded in the store"
    assert found["calibration"].status is Status.WARN
    assert "exact hits only" in found["calibration"].found


def test_an_embedder_of_another_dimension() -> None:
    assert embedder_findings(Plain(), plain=5)["dimension"].status is Status.FAIL


def test_an_embedder_that_the_store_does_not_know() -> None:
    stamps = [StampCount(Stamps(embedder="other"), 3)]
    found = list(examine_embedder(Plain(), dimensions={}, stamps=stamps))
    assert any("3 entries were made with other" in one.found for one in found)


def test_a_measured_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_name: str) -> Calibration:
        return Calibration(0.87, measured_on="questions")

    monkeypatch.setattr("stampcache.cli.check_embedder.calibration_for", measured)
    found = embedder_findings(Plain())["calibration"]
    assert found.status is Status.OK
    assert "0.87" in found.found
    assert "measured on questions" in found.found


def test_an_embedder_that_is_measured_in_one_language(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_name: str) -> Calibration:
        return Calibration(0.87, languages={"English": 0.97})

    monkeypatch.setattr("stampcache.cli.check_embedder.calibration_for", measured)
    served, others = [
        one
        for one in examine_embedder(Plain(), dimensions={}, stamps=[])
        if one.check == "calibration"
    ]
    assert served.status is Status.OK and "questions in English at a cosine of 0.97" in served.found
    assert others.status is Status.WARN and "nothing was measured but English" in others.found


@pytest.mark.parametrize(
    ("name", "found", "languages"),
    [
        (MINILM, "'plain' is shipped for it: it decides in all languages that it reads", ""),
        (MULTILINGUAL, "'chinese' is shipped for it: it decides in Chinese", "Chinese and English"),
    ],
)
def test_an_embedder_with_a_verifier(name: str, found: str, languages: str) -> None:
    embedder = Plain()
    embedder.name = name
    results = list(examine_embedder(embedder, dimensions={}, stamps=[]))
    assert next(one.found for one in results if one.check == "verifier").startswith(found)
    warned = [one.found for one in results if one.status is Status.WARN]
    assert all(languages in one for one in warned) and bool(warned) == bool(languages)


def test_an_embedder_that_fails() -> None:
    found = embedder_findings(Plain(0))
    assert found["embedder"] == CheckResult(
        "embedder", Status.FAIL, "The embedder plain is asleep."
    )


def test_an_embedder_that_is_none() -> None:
    assert embedder_findings(7)["embedder"].status is Status.FAIL


def test_no_embedder_given() -> None:
    found = embedder_findings(None, plain=4)
    assert found["embedder"].status is Status.SKIP
    assert "plain" in found["embedder"].found


# -- the model endpoint ---------------------------------------------------------------------------


class Endpoints(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose paths go wrong in different ways."""

    def do_GET(self) -> None:
        top, _, rest = self.path.strip("/").partition("/")
        if rest != "models":
            self._answer(404, "no such path")
        elif top == "locked" and self.headers["Authorization"] != f"Bearer {KEY}":
            self._answer(401, "no")
        elif top == "moved":
            self.send_response(302)
            self.send_header("Location", "/stolen/models")
            self.end_headers()
        elif top == "busy":
            self._answer(503, "loading")
        elif top == "page":
            self._answer(200, "<html>")
        elif top == "list":
            self._answer(200, "[1]")
        else:
            names = [] if top == "empty" else [{"id": "deepseek-chat"}, {"id": "deepseek-reasoner"}]
            self._answer(200, json.dumps({"data": names}))

    def _answer(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Endpoints) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def endpoint_findings(url: str, *, key: str = "", model: str = "") -> dict[str, CheckResult]:
    found = {one.check: one for one in examine_endpoint(Endpoint(url, key, model))}
    assert KEY not in repr(found)
    return found


def test_an_endpoint_that_has_the_model(server: str) -> None:
    found = endpoint_findings(f"{server}/v1/", model="deepseek-chat")
    assert [one.status for one in found.values()] == [Status.OK, Status.OK]
    assert "with 2 models" in found["endpoint"].found


def test_an_endpoint_without_the_model(server: str) -> None:
    found = endpoint_findings(f"{server}/v1", model="gpt")
    assert found["model"].status is Status.FAIL
    assert "deepseek-chat, deepseek-reasoner" in found["model"].found


def test_an_endpoint_with_no_model_at_all(server: str) -> None:
    assert endpoint_findings(f"{server}/empty")["model"].status is Status.WARN


def test_an_endpoint_that_wants_a_key(server: str) -> None:
    assert "it wants a key" in endpoint_findings(f"{server}/locked")["endpoint"].found
    wrong = endpoint_findings(f"{server}/locked", key="sk-other")["endpoint"]
    assert "is not accepted" in wrong.found
    assert endpoint_findings(f"{server}/locked", key=KEY)["endpoint"].status is Status.OK


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "404"),
        ("/moved", "points to /stolen/models"),
        ("/busy", "503"),
        ("/page", "not with a list of models"),
        ("/list", "not with a list of models"),
    ],
)
def test_an_endpoint_that_answers_wrongly(server: str, path: str, says: str) -> None:
    found = endpoint_findings(server + path, key=KEY)["endpoint"]
    assert found.status is Status.FAIL
    assert says in found.found
    assert found.mend


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("localhost:8000/v1", "is no http"),
        ("ftp://host", "is no http"),
        ("http://", "is no http"),
        ("http://host:port", "cannot be read"),
        ("http://me:pw-secret@host", "carries a user name"),
    ],
)
def test_a_malformed_endpoint(url: str, says: str) -> None:
    found = endpoint_findings(url)["endpoint"]
    assert found.status is Status.FAIL
    assert says in found.found
    assert "pw-secret" not in found.found


def test_a_key_with_a_line_break() -> None:
    found = endpoint_findings("http://127.0.0.1:9", key=f"{KEY}\n")["endpoint"]
    assert "line break" in found.found


def test_a_refused_port() -> None:
    with HTTPServer(("127.0.0.1", 0), Endpoints) as closed:
        port = closed.server_port
    found = endpoint_findings(f"http://127.0.0.1:{port}/v1")["endpoint"]
    assert found.status is Status.FAIL
    assert "cannot be reached" in found.found
    assert "start the server" in found.mend


def test_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stampcache.cli.check_endpoint.TIMEOUT_S", 0.05)
    with HTTPServer(("127.0.0.1", 0), Endpoints) as silent:  # accepts, and never answers
        found = endpoint_findings(f"http://127.0.0.1:{silent.server_port}/v1")["endpoint"]
    assert found.status is Status.FAIL
    assert "gave no whole answer" in found.found


def test_the_endpoint_is_read_from_the_environment(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_BASE_URL", f"{server}/locked")
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    result = CliRunner().invoke(build_app(), ["doctor", "--model", "deepseek-chat"])
    assert result.exit_code == 0
    assert "deepseek-chat is there" in result.stdout
    assert KEY not in result.output
