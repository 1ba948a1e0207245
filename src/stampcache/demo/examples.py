"""Finds the example applications: in a checkout, or where a wheel carries them."""

import importlib.util
from pathlib import Path
from types import MappingProxyType
from typing import cast

from stampcache.demo.app import Example
from stampcache.errors import ConfigError

FILES = MappingProxyType({"langchain": "langchain_rag.py", "llama-index": "llama_index_rag.py"})
_HERE = Path(__file__).resolve().parent
FOLDERS = (_HERE.parents[2] / "examples", _HERE / "examples")


def load_example(framework: str, *, folders: tuple[Path, ...] = FOLDERS) -> Example:
    """Return the module of the example that is written in a framework.

    Raises:
        ConfigError: there is no such framework, or its example is not there.
        ImportError: the example needs a package that is not installed.
    """
    name = FILES.get(framework)
    if name is None:
        raise ConfigError(f"FRAMEWORK is {framework!r}; there are {', '.join(FILES)}.")
    for folder in folders:
        if (folder / name).is_file():
            return _loaded(folder / name)
    raise ConfigError(f"examples/{name} is not there; run the demo in a checkout of stampcache.")


def _loaded(path: Path) -> Example:
    spec = importlib.util.spec_from_file_location(f"stampcache_example_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Example, module)
