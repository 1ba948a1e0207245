"""The store of docs/how-to/own-store.md is a whole store: it passes the suite that the page shows."""

import types
from pathlib import Path

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

PAGE = Path(__file__).parent.parent / "docs/how-to/own-store.md"


def shown(*defining: str) -> types.SimpleNamespace:
    """Run the blocks of the page that define these, and return what they define."""
    namespace: dict[str, object] = {"__name__": "own_store"}
    sybil = Sybil(parsers=[PythonCodeBlockParser()], path=str(PAGE.parent))
    for example in sybil.parse(PAGE).examples():
        if any(f"class {name}(" in str(example.parsed) for name in defining):
            exec(compile(str(example.parsed), str(PAGE), "exec"), namespace)
    return types.SimpleNamespace(**namespace)


TestLogStore = shown("LogStore", "TestLogStore").TestLogStore
