"""Which methods of a store write, by their names."""

import functools
from types import BuiltinFunctionType, FunctionType, MethodType

_WRITES = frozenset({
    "add", "append", "apply", "assign", "build", "bulk", "clear", "commit", "compact", "create", "delete",
    "destroy", "drop", "empty", "erase", "evict", "expire", "extend", "flush", "import", "index",
    "ingest", "init", "insert", "load", "merge", "migrate", "modify", "move", "optimize", "overwrite",
    "patch", "pop", "prune", "purge", "put", "refresh", "rebuild", "reindex", "remove", "rename",
    "replace", "reset", "restore", "rollback", "save_or_update", "set", "store", "sync", "truncate",
    "unset", "update", "upload", "upsert", "wipe", "write",
})  # fmt: skip
_READS = frozenset(
    {"get", "search", "similarity", "asearch", "aget", "asimilarity", "list", "count"}
)


def is_write(name: str) -> bool:
    """Tell whether a method of this name may change what its store holds."""
    parts = name.strip("_").split("_")
    if name.startswith("_") or parts[0] in _READS:
        return False
    return any(part in _WRITES or (part[:1] == "a" and part[1:] in _WRITES) for part in parts)


def is_function(value: object) -> bool:
    """Tell whether an attribute of an object is something to call on it, not of its class."""
    if isinstance(value, MethodType):
        return not isinstance(value.__self__, type)
    return isinstance(value, FunctionType | BuiltinFunctionType | functools.partial)
