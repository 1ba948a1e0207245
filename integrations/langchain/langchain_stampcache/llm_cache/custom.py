"""The app's own classes of models, of which LangChain's text names neither the class nor the fields.

LangChain takes ``_llm_type`` and ``_identifying_params`` for all there is to a model. Where a class
leaves them as they are, two models that differ in a prompt of their own have one text (ADR 0019).
"""

import functools
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseLanguageModel

from langchain_stampcache.fingerprint import Fingerprint
from langchain_stampcache.parameters import untold_classes, untold_fields
from langchain_stampcache.schemas import name_of
from stampcache.adapters import CanonicalError, callable_identity, seen_stamp, written_by

_CLASSES_KEPT = 256
_CALLS = ("_generate", "_agenerate", "_call", "_acall", "_stream", "_astream")


class CustomModels(Fingerprint):
    """Reads models of the app's own classes; keeps nothing of them. Safe for threads."""

    def __init__(self) -> None:
        super().__init__(version=None)

    def untold(self, model: BaseLanguageModel[Any]) -> Mapping[str, object]:
        """Return the class of a model by its code, and its fields, if it does not tell them itself.

        Raises:
            CanonicalError: such a field holds an object without identity; the message names it.
        """
        kind = type(model)
        if not untold_classes(kind):
            return {}
        fields = self.read(model, None).described if untold_fields(kind) else {}
        return {"class": _class(kind), "is": fields}

    def parameters_of(
        self,
        model: BaseLanguageModel[Any],
        *,
        prepared: bool,  # noqa: ARG002 - each is read as if it were
    ) -> frozenset[str]:
        """Return the names of the fields that are parameters: none that its calls write."""
        known = super().parameters_of(model, prepared=True)
        return known - written_by(type(model), _CALLS)

    def class_of(self, kind: type) -> object:
        """Return a class by its name, and the digest of its code where that has an identity."""
        return _class(kind)


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def _class(kind: type) -> str:
    try:
        return f"{name_of(kind)} {seen_stamp(callable_identity(kind))}"
    except CanonicalError:
        return name_of(kind)
