"""Objects of the application that a command is given as ``MODULE:NAME``."""

import importlib
import sys
from pathlib import Path

from stampcache.errors import ConfigError


def load(place: str, *, option: str) -> object:
    """Return what stands in a module under a name.

    Raises:
        ConfigError: it is no such text, or there is no such object.
    """
    module, colon, name = place.partition(":")
    if not colon:
        raise ConfigError(f"{option} is {place!r}; give MODULE:NAME, such as app:store.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"There is no {place} to import ({error}).") from error
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ConfigError(
            f"{module} cannot be imported ({said}); mend it, or name another."
        ) from error
