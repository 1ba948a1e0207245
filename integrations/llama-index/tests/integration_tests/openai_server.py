"""A scripted server of the OpenAI protocol: what it says follows from what it is asked.

Its ids are random, its usage is that of DeepSeek. What begins with "fail" is answered with an error,
"cut" is cut off, "drop" loses the connection in the middle of a stream.
"""

import contextlib
import hashlib
import json
import re
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SUM = re.compile(r"add (\d+) (\d+)")
_USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 6,
    "total_tokens": 17,
    "prompt_cache_hit_tokens": 8,
    "prompt_cache_miss_tokens": 3,
    "completion_tokens_details": {"reasoning_tokens": 2},
}


class OpenAIServer(ThreadingHTTPServer):
    """Keeps the bodies of the requests that it has answered, and the models that ask it.

    ``reasoning`` names its thoughts.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.reasoning = "reasoning_content"
        self.models: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        return len(self.bodies)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[OpenAIServer]:
    """Serve on a free port until the context ends; the clients of its models are closed then."""
    server = OpenAIServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        for model in server.models:
            await closed(model)
        server.shutdown()
        server.server_close()
        thread.join()


async def closed(model: Any) -> None:
    """Close the clients of a model, while their loop runs."""
    if model._client is not None:
        model._client.close()
    if model._aclient is not None:
        await model._aclient.close()


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        if _text(body).startswith("fail"):
            return self._send(400, {"error": {"message": f"refused at {self.server.calls}"}})
        if self.path.endswith("/chat/completions"):
            return self._chat(body)
        return self._complete(body)

    def _chat(self, body: dict[str, Any]) -> None:
        message = self._message(body)
        whole = {
            "id": f"chatcmpl-{secrets.token_hex(6)}",
            "created": secrets.randbelow(10**9),
            "model": body["model"],
            "system_fingerprint": "fp_1",
        }
        finish = _finish(body, message)
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            kind = {"object": "chat.completion", "choices": [choice], "usage": _USAGE}
            return self._send(200, {**whole, **kind})
        pieces = [*_deltas(message, self.server.reasoning)]
        if _text(body).startswith("drop"):
            return self._stream([_chunk(whole, one) for one in pieces[:2]], ends=False)
        chunks = [_chunk(whole, one) for one in pieces]
        chunks.append(_chunk(whole, {}, finish))
        chunks[-1]["usage"] = _USAGE
        return self._stream(chunks, ends=True)

    def _message(self, body: dict[str, Any]) -> dict[str, Any]:
        text, last = _text(body), body["messages"][-1]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message[self.server.reasoning] = f"thinking of {text}"
        wanted = _SUM.search(text)
        if body.get("tools") and last["role"] == "user":
            function = body["tools"][0]["function"]
            arguments = (
                {"a": int(wanted[1]), "b": int(wanted[2])}
                if wanted and function["name"] == "add"
                else _filled(function["parameters"], text)
            )
            called = {"name": function["name"], "arguments": json.dumps(arguments)}
            id_ = f"call_{secrets.token_hex(6)}"
            message["tool_calls"] = [{"id": id_, "type": "function", "function": called}]
        elif body.get("response_format"):
            schema = body["response_format"]["json_schema"]["schema"]
            message["content"] = json.dumps(_filled(schema, text))
        elif last["role"] == "tool":
            message["content"] = f"the sum is {text}"
        else:
            message["content"] = f"answer {_digest(body)}"
        return message

    def _complete(self, body: dict[str, Any]) -> None:
        text = f"completed {_digest(body)}"
        whole = {"id": secrets.token_hex(4), "created": 1, "model": body["model"]}
        kind = {"object": "text_completion"}
        finish = "length" if body["prompt"].startswith("cut") else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
            return self._send(200, {**whole, **kind, "choices": [choice], "usage": _USAGE})
        parts = [text[at : at + 5] for at in range(0, len(text), 5)]
        chunks: list[dict[str, Any]] = [
            {
                **whole,
                **kind,
                "choices": [{"index": 0, "text": part, "finish_reason": None, "logprobs": None}],
            }
            for part in parts
        ]
        chunks[-1]["choices"][0]["finish_reason"] = finish
        chunks[-1]["usage"] = _USAGE
        return self._stream(chunks, ends=True)

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: list[dict[str, Any]], *, ends: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for chunk in chunks:
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
            if ends:
                self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def _text(body: dict[str, Any]) -> str:
    said = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    return said if isinstance(said, str) else str(said)


def _digest(body: dict[str, Any]) -> str:
    known = {name: value for name, value in body.items() if name != "stream"}
    told = re.sub(r"call_[0-9a-f]+", "call", json.dumps(known, sort_keys=True))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _finish(body: dict[str, Any], message: dict[str, Any]) -> str:
    if _text(body).startswith("cut"):
        return "length"
    return "tool_calls" if "tool_calls" in message else "stop"


def _filled(schema: dict[str, Any], text: str) -> dict[str, Any]:
    fields = schema.get("properties", {}).items()
    return {
        name: len(text) if one.get("type") == "integer" else f"{name} of {len(text)}"
        for name, one in fields
    }


def _deltas(message: dict[str, Any], reasoning: str) -> Iterator[dict[str, Any]]:
    """Yield a message as a provider streams it."""
    thoughts = message[reasoning]
    for at in range(0, len(thoughts), 6):
        yield {"role": "assistant", "content": "", reasoning: thoughts[at : at + 6]}
    said = message["content"] or ""
    for at in range(0, len(said), 6):
        yield {"content": said[at : at + 6]}
    for call in message.get("tool_calls", ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"name": name, "arguments": ""}
        yield {
            "tool_calls": [{"index": 0, "id": call["id"], "type": "function", "function": begun}]
        }
        for at in range(0, len(arguments), 4):
            part = {"arguments": arguments[at : at + 4]}
            yield {"tool_calls": [{"index": 0, "function": part}]}


def _chunk(
    whole: dict[str, Any], delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**whole, "object": "chat.completion.chunk", "choices": [choice]}
