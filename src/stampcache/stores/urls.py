"""Stores by URL. Objects come first; a URL is a short way to name one.

memory://                      this process only
sqlite:///relative/path.db     one file, relative to the working directory
sqlite:////absolute/path.db    one file
redis://host:6379/0            a server for many processes and machines; also rediss:// (TLS), unix:///socket
                               and clusters, with options (see `stampcache.stores.redis.address`)
"""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from stampcache.errors import ConfigError
from stampcache.ports import Store
from stampcache.stores.keys import EncryptionKey, keys_from
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore

_FORMS = "Use memory:// or sqlite:///path/to/file.db or redis://host:6379/0."
_REDIS = ("redis", "rediss", "unix")


def open_store(
    url: str,
    *,
    capacity: int,
    encryption_key: EncryptionKey | None = None,
    secret: bytes | str | None = None,
) -> Store:
    """Return the store that a URL names, creating it where it does not exist.

    The memory store takes a key, so that the URL alone decides, but has nothing at rest to encrypt. With
    a ``secret`` what a server keeps for the cache is sealed by it.

    Raises:
        ConfigError: the URL is malformed or of an unknown kind, or the store cannot be opened.
    """
    if not isinstance(url, str):
        raise ConfigError(
            f"A store is named by a URL or given as an object, not {type(url).__name__}."
        )
    if capacity < 1:
        raise ConfigError(f"capacity= is {capacity}; a cache needs room for at least one entry.")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{url!r} is no URL ({error}). {_FORMS}") from error
    if "://" not in url:
        raise ConfigError(f"{url!r} is no URL: it lacks `://`. {_FORMS}")
    if parts.scheme in _REDIS:
        return _redis_store(url, capacity, encryption_key, secret)
    if parts.query or parts.fragment:
        raise ConfigError(f"{url!r} carries options; pass them as arguments. {_FORMS}")
    match parts.scheme:
        case "memory":
            if parts.netloc or parts.path:
                raise ConfigError(f"{url!r} names something, but memory:// has no name. {_FORMS}")
            keys_from(encryption_key)  # a wrong one is refused here, too
            return MemoryStore(capacity=capacity)
        case "sqlite":
            path = _writable_file(url, parts.netloc)
            return SqliteStore(path, capacity=capacity, encryption_key=encryption_key)
        case _:
            raise ConfigError(f"The store kind {parts.scheme!r} in {url!r} is unknown. {_FORMS}")


def is_redis(url: str) -> bool:
    """Tell whether a URL names a Redis server."""
    return url.partition("://")[0] in _REDIS


def redis_holds(url: str, what: Literal["cache", "secret"]) -> bool:
    """Tell what the server that a Redis URL names has of a cache; nothing is written.

    Raises:
        ConfigError: the URL is wrong, or a package is missing.
        StoreError: the server cannot be asked.
    """
    module = _redis_module()
    return bool(module.holds_cache(url) if what == "cache" else module.holds_secret(url))


def _redis_module() -> Any:
    try:
        return import_module("stampcache.stores.redis.store")
    except ImportError as error:
        raise ConfigError(
            f"A Redis store needs the package redis ({error}): pip install 'stampcache[redis]'."
        ) from error


def _redis_store(
    url: str, capacity: int, encryption_key: EncryptionKey | None, secret: bytes | str | None
) -> Store:
    store: Store = _redis_module().open_redis(
        url, capacity=capacity, encryption_key=encryption_key, secret=secret
    )
    return store


def sqlite_path(url: str) -> Path | None:
    """Return the file that a well-formed ``sqlite:///`` URL names; ``None`` for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.query or parts.fragment:
        return None
    named = unquote(parts.path.removeprefix("/"))
    return Path(named) if parts.scheme == "sqlite" and not parts.netloc and named else None


def _writable_file(url: str, host: str) -> Path:
    if host:
        raise ConfigError(
            f"{url!r} names a host ({host!r}); write three slashes before a relative path."
        )
    path = sqlite_path(url)
    if path is None or str(path) == ".":
        raise ConfigError(f"{url!r} names no file. {_FORMS}")
    try:
        _check_file(path)
    except OSError as error:
        raise ConfigError(
            f"{path} may not be looked at ({error.strerror}); give this user access to its folder."
        ) from error
    return path


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file inside it.")
    if not path.parent.is_dir():
        raise ConfigError(f"The folder {path.parent} does not exist; create it first.")
    if path.exists() and not os.access(path, os.W_OK):
        raise ConfigError(f"{path} may not be written; give this user write permission to it.")
