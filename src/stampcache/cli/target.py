"""The store that a command is about. It must exist: the command line never creates one."""

import os
from pathlib import Path

from stampcache.assembly import CAPACITY
from stampcache.errors import ConfigError
from stampcache.ports import Store
from stampcache.stores.keys import EncryptionKey
from stampcache.stores.sqlite_survey import SqliteSurvey, survey
from stampcache.stores.urls import is_redis, open_store, redis_holds, sqlite_path


def existing_file(url: str) -> Path:
    """Return the file of a store that other processes can look into.

    Raises:
        ConfigError: the URL names no such store, or there is no file.
    """
    path = sqlite_path(url)
    if is_redis(url):
        raise ConfigError(
            "This command looks into files; ask the application that uses Redis, as by cache.explain()."
        )
    if path is None:
        open_store(url, capacity=1).close()  # raises for what is wrong with the URL
        raise ConfigError(
            f"{url} lives inside the process that opened it, so another one finds nothing there; "
            "name a sqlite:/// file."
        )
    if not is_there(path):
        raise ConfigError(f"There is no file {path}, so no cache to look at; check the path.")
    return path


def is_there(path: Path) -> bool:
    """Tell whether there is such a file or folder.

    Raises:
        ConfigError: this user may not look.
    """
    try:
        return path.exists()
    except OSError as error:
        raise ConfigError(
            f"{path} may not be looked at ({error.strerror}); give this user access to its folder."
        ) from error


def require_cache(seen: SqliteSurvey) -> None:
    """Refuse a file without our tables, which opening it as a store would add.

    Raises:
        ConfigError: the file holds no cache.
    """
    if not seen.holds_cache:
        raise ConfigError(f"{seen.path} is an SQLite file, but it holds no cache; check the path.")


def keys_in_environment() -> EncryptionKey | None:
    """Return the keys of an encrypted store, which no command line shows: commas separate several."""
    given = os.environ.get("STAMPCACHE_ENCRYPTION_KEY", "")
    return [key.strip() for key in given.split(",")] if given else None


def existing_store(url: str) -> Store:
    """Open a store that is there already.

    Raises:
        ConfigError: the URL is wrong, or names no store that exists.
        StoreError: it cannot be read.
    """
    if is_redis(url):
        _require_redis(url)
    elif (path := existing_file(url)).is_file():
        with survey(path) as seen:
            require_cache(seen)
    return open_store(url, capacity=CAPACITY, encryption_key=keys_in_environment())


def _require_redis(url: str) -> None:
    if not redis_holds(url, "cache"):
        raise ConfigError(f"{url} answers, but holds no cache; check the prefix= and the database.")


def _holds_secret(url: str) -> bool:
    if is_redis(url):
        return redis_holds(url, "secret")
    with survey(existing_file(url)) as seen:
        return seen.has_secret


def secret_of(url: str, given: str | None) -> str | None:
    """Return the secret to open the store with; ``None`` for the one that the store holds.

    Raises:
        ConfigError: neither is there, so that no scope of the application could be found.
    """
    if given is not None:
        return given
    if not _holds_secret(url):
        raise ConfigError(
            "The application that fills this store gives a secret= of its own, without which "
            "no scope can be found; set STAMPCACHE_SECRET to it."
        )
    return None
