"""A provider without a network: what the clients of OpenAI and DeepSeek send is answered in-process."""

import json
import threading
from collections.abc import Mapping
from typing import Any

import httpx

USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


class Provider:
    """Answers each call with its number; keeps what was asked, and at which address."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        return len(self.asked)

    def clients(self) -> dict[str, Any]:
        """Return the arguments by which a model talks to this provider."""
        transport = httpx.MockTransport(self._answer)
        return {
            "api_key": "sk-secret",
            "http_client": httpx.Client(transport=transport),
            "http_async_client": httpx.AsyncClient(transport=transport),
        }

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        with self._lock:
            self.asked.append((str(request.url), body))
            number = len(self.asked)
        if body.get("stream"):
            return httpx.Response(
                200, headers={"content-type": "text/event-stream"}, content=_events(body, number)
            )
        count = body.get("n") or 1
        if "prompt" in body:
            texts = [f"text {number}" for _ in range(count * len(body["prompt"]))]
            choices = [
                {"index": at, "text": text, "finish_reason": "stop", "logprobs": None}
                for at, text in enumerate(texts)
            ]
        else:
            message = {"role": "assistant", "reasoning_content": "because"}
            choices = [
                {
                    "index": at,
                    "message": {**message, "content": f"answer {number}.{at}"},
                    "finish_reason": "stop",
                }
                for at in range(count)
            ]
        return httpx.Response(200, json=_said(body, number, choices) | {"usage": USAGE})


def _said(body: Mapping[str, Any], number: int, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"made-{number}",
        "object": "chat.completion.chunk" if body.get("stream") else "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": choices,
    }


def _events(body: Mapping[str, Any], number: int) -> bytes:
    deltas = [
        {"role": "assistant", "content": "", "reasoning_content": "because"},
        {"content": "answer "},
        {"content": str(number)},
        {},
    ]
    chunks = [
        _said(
            body,
            number,
            [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}],
        )
        for delta in deltas
    ]
    chunks.append(_said(body, number, []) | {"usage": USAGE})
    told = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*told, "data: [DONE]\n\n"]).encode()
