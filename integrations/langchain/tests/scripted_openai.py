"""A server on loopback that speaks the protocol of OpenAI, DeepSeek and vLLM, and answers by rules.

It calls the tools that it must call, fills the schemas that it is given, and reasons where it is told
to; else it repeats what was said last. Tests may have it fail, wait, or break off a stream.
"""

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

THOUGHT = "They want to know it. Let me think about that."


class Script:
    """What the server was asked, and what it is to do otherwise; one per server."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.fail_with: int | None = None
        self.cut_after: int | None = None
        self.reset_after: int | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""
        self.numbered = False
        self.lock = threading.Lock()

    def asked(self, body: dict[str, Any], path: str, headers: dict[str, str]) -> int:
        with self.lock:
            self.calls.append(body)
            self.paths.append(path)
            self.headers.append(headers)
            return len(self.calls)


@contextlib.contextmanager
def scripted_openai() -> Iterator[Script]:
    """Serve on a free port until the context ends."""
    script = Script()

    class Handler(_Handler):
        told = script

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield script
    finally:
        script.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    told: Script
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = self.told.asked(body, self.path, dict(self.headers))
        self.told.gate.wait(30)
        if self.told.fail_with is not None:
            self._send(self.told.fail_with, {"error": {"message": "broken", "type": "scripted"}})
            return
        replies = [_reply(body, number if self.told.numbered else None)] * (body.get("n") or 1)
        if body.get("stream"):
            self._stream(body, replies[0], number)
            return
        self._send(200, _completion(body, replies, number))

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self._end_headers()
        self.wfile.write(data)

    def _stream(self, body: dict[str, Any], reply: dict[str, Any], number: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self._end_headers()
        for place, chunk in enumerate(_chunks(body, reply, number)):
            if place == self.told.cut_after:
                return
            if place == self.told.reset_after:
                self._write("data: {broken\n\n")
                return
            self._write(f"data: {json.dumps(chunk)}\n\n")
        self._write("data: [DONE]\n\n")

    def _end_headers(self) -> None:
        """Close after each reply: clients keep connections of event loops that are gone."""
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _write(self, text: str) -> None:
        with contextlib.suppress(ConnectionError):
            self.wfile.write(text.encode())
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's signature
        pass


# -- what it says ----------------------------------------------------------------------------------


def _reply(body: dict[str, Any], number: int | None) -> dict[str, Any]:
    reply: dict[str, Any] = {"role": "assistant", "content": None, "finish_reason": "stop"}
    text = _last_text(body)
    tool = _tool_to_call(body, text)
    form = body.get("response_format") or {}
    if tool is not None:
        arguments = _filled(tool.get("parameters") or {}, text)
        function = {"name": tool["name"], "arguments": json.dumps(arguments)}
        call = {"id": f"call_{len(text)}", "type": "function", "function": function}
        reply.update(tool_calls=[call], finish_reason="tool_calls")
    elif form.get("type") == "json_schema":
        reply["content"] = json.dumps(_filled(form["json_schema"]["schema"], text))
    elif form.get("type") == "json_object":
        reply["content"] = json.dumps(dict.fromkeys(re.findall(r"'(\w+)'", text), "a text"))
    else:
        said = f"You said: {text}"
        said = said if number is None else f"{said} (call {number})"
        for stop in body.get("stop") or []:
            said = said.partition(stop)[0] or "Nothing."
        reply["content"] = said
    if 1 in (body.get("max_tokens"), body.get("max_completion_tokens")):
        reply["finish_reason"] = "length"
    if (body.get("thinking") or {}).get("type") == "enabled" or "reasoner" in body["model"]:
        named = "reasoning" if "vllm" in body["model"] else "reasoning_content"
        reply[named] = THOUGHT
    return reply


def _last_text(body: dict[str, Any]) -> str:
    content = body["messages"][-1].get("content") or ""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return str(content)


def _tool_to_call(body: dict[str, Any], text: str) -> dict[str, Any] | None:
    tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}
    choice = body.get("tool_choice")
    if not tools or choice == "none":
        return None
    if isinstance(choice, dict):
        return tools[choice["function"]["name"]]
    wanted = choice == "required" or body["messages"][-1]["role"] != "tool"
    return next(iter(tools.values())) if wanted else None


def _filled(schema: dict[str, Any], text: str, whole: dict[str, Any] | None = None) -> Any:
    """Return a value of a JSON schema; numbers and quoted texts are taken from what was said."""
    root = whole or schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _filled((root.get("$defs") or root.get("definitions"))[name], text, root)
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], text, root)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            given = schema.get("properties") or {}
            return {name: _filled(part, text, root) for name, part in given.items()}
        case "array":
            return [_filled(schema.get("items") or {}, text, root)]
        case "integer" | "number":
            found = re.search(r"\d+", text)
            return int(found[0]) if found else 1
        case "boolean":
            return True
        case "null":
            return None
    quoted = re.search(r"'([^']+)'", text)
    return quoted[1] if quoted else "a text"


# -- how it says it --------------------------------------------------------------------------------


def _usage(body: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    asked = sum(len(str(message.get("content"))) // 4 + 1 for message in body["messages"])
    said = len(json.dumps(reply)) // 4
    return {
        "prompt_tokens": asked + 4,
        "completion_tokens": said,
        "total_tokens": asked + 4 + said,
        "prompt_cache_hit_tokens": 3,
        "prompt_cache_miss_tokens": asked + 1,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def _head(body: dict[str, Any], kind: str, number: int) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": 1_764_430_000,
        "model": body["model"],
        "system_fingerprint": "fp_1",
    }


def _completion(body: dict[str, Any], replies: list[dict[str, Any]], number: int) -> dict[str, Any]:
    choices = [
        {
            "index": index,
            "finish_reason": reply["finish_reason"],
            "message": {name: one for name, one in reply.items() if name != "finish_reason"},
        }
        for index, reply in enumerate(replies)
    ]
    head = _head(body, "chat.completion", number)
    return {**head, "choices": choices, "usage": _usage(body, replies[0])}


def _chunks(body: dict[str, Any], reply: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    head = _head(body, "chat.completion.chunk", number)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "reasoning", "content"):
        for piece in re.findall(r"\S+\s*", reply.get(name) or ""):
            yield chunk({name: piece})
    for index, call in enumerate(reply.get("tool_calls") or []):
        function = call["function"]
        named = {"name": function["name"], "arguments": ""}
        yield chunk({"tool_calls": [{**call, "index": index, "function": named}]})
        for start in range(0, len(function["arguments"]), 7):
            part = {"arguments": function["arguments"][start : start + 7]}
            yield chunk({"tool_calls": [{"index": index, "function": part}]})
    yield chunk({}, reply["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(body, reply)}
