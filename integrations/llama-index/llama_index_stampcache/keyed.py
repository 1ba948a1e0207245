"""Which named values are keyed, by where they stand: in a model, in another part, in plain data.

The lists of secrets and of what only watches or paces calls are those of `stampcache.adapters`.
"""

from collections.abc import Callable
from typing import TypeAlias

from stampcache.adapters import CALLING, holds_secret

Keyed: TypeAlias = Callable[[str, object], bool]
# Outside of a model a part of these names may say what it does: which tags it filters by, how often it
# has an answer made anew.
_MEANT = frozenset({"cache", "max_retries", "metadata", "tags"})
# The objects behind index nodes are retrieved, and compared as evidence.
_UNKEYED = (CALLING - _MEANT) | {"object_map"}


def everything(name: str, value: object) -> bool:  # noqa: ARG001 - one of the rules
    """Key an entry of data whose names are the app's own, such as the variables of a prompt."""
    return True


def of_object(name: str, value: object) -> bool:
    """Tell whether a field or an attribute of a part that is no model is keyed."""
    bare = name.lstrip("_")
    return bare not in _UNKEYED and not holds_secret(bare, value)


def no_secret(name: str, value: object) -> bool:
    """Tell whether an entry of data that a model was given is keyed."""
    return not holds_secret(name, value)


def of_model(name: str, value: object) -> bool:
    """Tell whether a field of a model is keyed: neither a secret nor how calls are paced."""
    return name not in CALLING and not holds_secret(name, value)
