"""Which named values are keyed: one rule for live objects and for what LangChain prints of them.

The lists of secrets and of what only paces calls are those of `stampcache.adapters`.
"""

from collections.abc import Callable
from typing import TypeAlias

from stampcache.adapters import CALLING, holds_secret

Keyed: TypeAlias = Callable[[str, object], bool]


def everything(name: str, value: object) -> bool:  # noqa: ARG001 - one of the rules
    """Key an entry of data whose names are the app's own, such as the variables of a prompt."""
    return True


def no_secret(name: str, value: object) -> bool:
    """Tell whether a field of an object, or of data that a model was given, is keyed."""
    return not holds_secret(name, value)


def of_model(name: str, value: object) -> bool:
    """Tell whether a parameter of a model is keyed: neither a secret nor how calls are paced."""
    return name not in CALLING and not holds_secret(name, value)
