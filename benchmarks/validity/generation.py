"""How long the application's model takes: measured on this machine where a model is installed."""

import json
import statistics
import time
import urllib.request
from collections.abc import Sequence

from msgspec import Struct

from stampcache.demo.endpoint import Endpoint
from stampcache.errors import ConfigError

DEEPSEEK_MEDIAN_S = 1.65
_TIMEOUT_S = 120.0


class Generation(Struct, frozen=True):
    """The median time of one answer in seconds, and where the figure is from."""

    seconds: float
    source: str


def measured(prompts: Sequence[str]) -> Generation:
    """Time the small local model on real prompts, one at a time; without it, take a constant."""
    try:
        from stampcache.demo.local_model import local_model

        with local_model() as endpoint:
            spent = [_timed(endpoint, prompt) for prompt in prompts]
    except (ImportError, ConfigError) as error:
        why = type(error).__name__
        return Generation(
            DEEPSEEK_MEDIAN_S,
            f"a generation of {DEEPSEEK_MEDIAN_S} s, DeepSeek's API (a constant: no local model, {why})",
        )
    seconds = statistics.median(spent)
    count = len(prompts)
    return Generation(
        seconds, f"a generation of {seconds:.2f} s, the median of {count} by {endpoint.model} here"
    )


def _timed(endpoint: Endpoint, prompt: str) -> float:
    body = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": endpoint.max_tokens,
        "temperature": 0,
    }
    request = urllib.request.Request(
        f"{endpoint.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {endpoint.api_key}",
            "Content-Type": "application/json",
        },
    )
    start = time.perf_counter()
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
        reply.read()
    return time.perf_counter() - start
