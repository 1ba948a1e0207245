"""Which model answers in the demo: the one place that reads its environment."""

import contextlib
import http.client
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field

from stampcache.errors import ConfigError

DEEPSEEK = "https://api.deepseek.com"
DEEPSEEK_MODEL = "deepseek-chat"
NO_KEY = "none"
TIMEOUT_S = 10.0
_ROOM_TO_REASON = 2_048
_MOST_BYTES = 2**20


class Endpoint(Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint; ``sentence`` says to people which it is, and why.

    ``max_tokens`` is how long an answer may be, with room for reasoning where the model may reason.
    """

    base_url: str
    model: str
    api_key: str = field(default=NO_KEY)
    max_tokens: int = _ROOM_TO_REASON
    sentence: str = ""

    def environment(self) -> dict[str, str]:
        """Return the variables by which an application is told of this endpoint."""
        return {
            "DEEPSEEK_BASE_URL": self.base_url,
            "DEEPSEEK_MODEL": self.model,
            "DEEPSEEK_API_KEY": self.api_key,
        }

    def __repr__(self) -> str:
        """Print without the key."""
        return f"Endpoint({self.base_url!r}, {self.model!r})"


def chosen(environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint that the environment names, or ``None``: then the local model answers.

    ``DEEPSEEK_BASE_URL`` is any OpenAI-compatible server (vLLM, SGLang), ``DEEPSEEK_API_KEY`` alone
    means DeepSeek's own API. ``DEEPSEEK_MODEL`` names the model; else it is the first that the
    server lists.

    Raises:
        ConfigError: the URL is none, or the server does not say which models it has.
    """
    url = environment.get("DEEPSEEK_BASE_URL", "").strip().rstrip("/")
    key = environment.get("DEEPSEEK_API_KEY", "").strip()
    model = environment.get("DEEPSEEK_MODEL", "").strip()
    if url:
        _check(url)
        named = model or _first_model(url, key)
        sentence = f"{named} at {url} answers, as DEEPSEEK_BASE_URL says."
        return Endpoint(base_url=url, model=named, api_key=key or NO_KEY, sentence=sentence)
    if key:
        named = model or DEEPSEEK_MODEL
        sentence = f"{named} of the DeepSeek API answers, as DEEPSEEK_API_KEY is set."
        return Endpoint(base_url=DEEPSEEK, model=named, api_key=key, sentence=sentence)
    return None


@contextlib.contextmanager
def model_endpoint() -> Iterator[Endpoint]:
    """Yield the endpoint of the environment, or serve the local model for as long as it is open.

    Raises:
        ConfigError: see `chosen`; or the packages of the local model are not installed.
    """
    endpoint = chosen(os.environ)
    if endpoint is not None:
        yield endpoint
        return
    try:
        from stampcache.demo.local_model import local_model
    except ImportError as error:
        raise ConfigError(
            f"The local model needs a package that cannot be imported ({error}); run `make setup`, "
            "or set DEEPSEEK_API_KEY or DEEPSEEK_BASE_URL."
        ) from error
    with local_model() as local:
        yield local


def demo_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the demo keeps its indexes: ``STAMPCACHE_DEMO_DIR``, else below ``~/.cache``."""
    given = (os.environ if environment is None else environment).get("STAMPCACHE_DEMO_DIR", "")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "stampcache-demo"


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"DEEPSEEK_BASE_URL is {url!r}; give it as http://host:8000/v1 or https://host."
        )


def _first_model(url: str, key: str) -> str:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"{url}/models", headers=headers)  # noqa: S310 - was checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310 - the user names the address
            listed = json.loads(reply.read(_MOST_BYTES))["data"]
        return str(listed[0]["id"])
    except (
        OSError,
        http.client.HTTPException,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
    ) as error:
        raise ConfigError(
            f"{url}/models did not say which models there are ({type(error).__name__}: {error}); "
            "start the server, check DEEPSEEK_BASE_URL, or name the model in DEEPSEEK_MODEL."
        ) from error
