"""Does an OpenAI-compatible endpoint (DeepSeek, vLLM, SGLang) answer, and has it the model?"""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from stampcache.cli.check_result import CheckResult, fail, ok, skip, warn

DEEPSEEK = "https://api.deepseek.com"
TIMEOUT_S = 5.0
_MOST_BYTES = 2**20
_NAMES_SHOWN = 8


class Endpoint(Struct, frozen=True):
    """Where a model is asked; the key never appears in a finding."""

    url: str = ""
    key: str = ""
    model: str = ""

    @property
    def base(self) -> str:
        """The base URL: DeepSeek's own where only a key is given."""
        return (self.url or (DEEPSEEK if self.key else "")).rstrip("/")


class _Unusable(Exception):
    """The endpoint cannot be used; carries the finding that says why."""

    def __init__(self, finding: CheckResult) -> None:
        super().__init__(finding.found)
        self.finding = finding


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the key must not travel to another host."""

    def redirect_request(self, *_args: object) -> None:
        return None


def examine_endpoint(endpoint: Endpoint) -> Iterator[CheckResult]:
    """Yield what is found about an endpoint; asks ``GET {base}/models`` once, within 5 seconds."""
    if not endpoint.base:
        mend = "set DEEPSEEK_BASE_URL or DEEPSEEK_API_KEY, or say --endpoint http://host:8000/v1"
        yield skip("endpoint", "not checked, as none is set", mend)
        return
    try:
        _check_form(endpoint)
        started = time.perf_counter()
        models = _models(endpoint)
    except _Unusable as unusable:
        yield unusable.finding
        return
    elapsed_ms = (time.perf_counter() - started) * 1000
    found = f"{endpoint.base} answers in {elapsed_ms:.0f} ms with {len(models)} models"
    yield ok("endpoint", found)
    yield _has_model(endpoint.model, models)


def _has_model(model: str, models: list[str]) -> CheckResult:
    named = ", ".join(models[:_NAMES_SHOWN]) + (", ..." if len(models) > _NAMES_SHOWN else "")
    if not models:
        return warn("model", "the endpoint lists no model", "load a model into the server")
    if not model:
        return skip("model", f"there are: {named}", "say --model to have one looked for")
    if model not in models:
        return fail("model", f"there is no {model!r}, there are: {named}", "use one of these names")
    return ok("model", f"{model} is there")


def _check_form(endpoint: Endpoint) -> None:
    """Refuse what cannot be asked, without ever printing a user name, a password or the key."""
    form = "give it as http://host:8000/v1 or https://host"
    try:
        parts = urlsplit(endpoint.base)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _Unusable(fail("endpoint", "its URL cannot be read", form)) from None
    if parts.username is not None or parts.password is not None:
        mend = "give the key in DEEPSEEK_API_KEY instead"
        raise _Unusable(fail("endpoint", "its URL carries a user name", mend))
    if not sound or not endpoint.base.isprintable() or " " in endpoint.base:
        raise _Unusable(fail("endpoint", f"{endpoint.base!r} is no http:// or https:// URL", form))
    if not (endpoint.key.isascii() and endpoint.key.isprintable()):
        found = "DEEPSEEK_API_KEY holds a line break or another character that no key has"
        raise _Unusable(fail("endpoint", found, "set it anew, without the line break"))


def _models(endpoint: Endpoint) -> list[str]:
    """Return the names of the models that the endpoint offers."""
    base = endpoint.base
    try:
        raw = _get(f"{base}/models", endpoint.key)
        listed = json.loads(raw)["data"]
        return [str(one["id"]) for one in listed]
    except urllib.error.HTTPError as error:
        with error:
            raise _Unusable(_refused(endpoint, error)) from error
    except TimeoutError as error:
        raise _Unusable(_late(base)) from error
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        raise _Unusable(_late(base) if late else _down(base, error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Unusable(_down(base, error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        found = f"{base}/models answers, but not with a list of models"
        mend = "check the URL; vLLM and SGLang want /v1 at its end"
        raise _Unusable(fail("endpoint", found, mend)) from error


def _get(url: str, key: str) -> bytes:
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was checked
    opener = urllib.request.build_opener(_NoRedirect)
    deadline = time.monotonic() + TIMEOUT_S
    with opener.open(request, timeout=TIMEOUT_S) as reply:
        read = b""
        while piece := reply.read1(_MOST_BYTES):
            read += piece
            if time.monotonic() > deadline or len(read) > _MOST_BYTES:
                raise TimeoutError
        return read


def _refused(endpoint: Endpoint, error: urllib.error.HTTPError) -> CheckResult:
    found = f"{endpoint.base}/models answers {error.code} {error.reason}"
    if error.code in (401, 403):
        key = "the key in DEEPSEEK_API_KEY is not accepted" if endpoint.key else "it wants a key"
        return fail("endpoint", f"{found}: {key}", "set DEEPSEEK_API_KEY to a key of this endpoint")
    if error.code == 404:
        return fail("endpoint", found, "check the URL; vLLM and SGLang want /v1 at its end")
    if 300 <= error.code < 400:
        where = error.headers.get("Location", "elsewhere")
        return fail("endpoint", f"{found}: it points to {where}", "give the URL that it points to")
    if error.code == 429 or error.code >= 500:
        return fail("endpoint", found, "it is up but cannot answer now; see its log, try again")
    return fail("endpoint", found, "check the URL and the server's log")


def _down(base: str, reason: object) -> CheckResult:
    mend = "start the server, or check host, port and network"
    return fail("endpoint", f"{base} cannot be reached ({reason})", mend)


def _late(base: str) -> CheckResult:
    mend = "see whether the server is still loading its model, or behind a firewall"
    return fail("endpoint", f"{base} gave no whole answer within {TIMEOUT_S:.0f} s", mend)
