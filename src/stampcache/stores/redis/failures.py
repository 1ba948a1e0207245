"""What redis-py raises, in our words: which failures are of the server's being there, and what to do."""

from redis import exceptions as theirs

from stampcache.errors import StoreError

AWAY = (
    *(theirs.ConnectionError, theirs.TimeoutError, theirs.ClusterDownError, theirs.ReadOnlyError),
    *(theirs.RedisClusterException, OSError),
)
"""The server cannot be reached, does not answer in time, or is no primary any more."""

REPEATABLE = (theirs.ConnectionError, theirs.ReadOnlyError)
"""A connection broke, or led to a replica: another one may do."""

ALL = (theirs.RedisError, OSError)
"""Whatever redis-py raises."""

NoScript = theirs.NoScriptError


def store_error(error: Exception) -> StoreError:
    """Return our error for one of redis-py's."""
    match error:
        case (
            theirs.AuthenticationError() | theirs.AuthorizationError() | theirs.NoPermissionError()
        ):
            why = "give the cache's user a password and the permissions of docs/reference/stores.md"
        case theirs.OutOfMemoryError():
            why = "raise maxmemory, or give the cache a smaller capacity="
        case theirs.ReadOnlyError():
            why = "the server is a replica; name its primary"
        case theirs.TimeoutError():
            why = "the server did not answer in time"
        case theirs.ConnectionError() | theirs.ClusterDownError() | OSError():
            why = "the server cannot be reached"
        case _:
            why = "see the server's log"
    said = str(error) or type(error).__name__
    return StoreError(f"The Redis store failed ({said}); {why}.")
