"""What LangChain says a model would run (``llm_string``), as settings that are digested once.

Two forms are read: the JSON of a serialisable model followed by ``---`` and its call options, and
the sorted list of parameters of any other. Whatever else arrives is keyed as the text it is. API
keys are left out; an object known only by its memory address, or not at all, makes the call
uncacheable.
"""

import ast
import json
import re
import threading
from collections.abc import Callable, Mapping

from msgspec import Struct
from pydantic import BaseModel

from langchain_stampcache import keyed
from langchain_stampcache.parameters import ENDPOINTS, MODEL_NAMES, first_text
from langchain_stampcache.schemas import class_named, schema_named
from stampcache import Seam, Settings, Stamps
from stampcache.adapters import CanonicalError, shaping

STRINGS_KEPT = 512
COUNT = "n"
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
_QUOTED_OR_CLASS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|<class '(?P<name>[^']+)'>""", re.DOTALL
)
_CLASS = "<class>"
_ANY = "any number"
_UNREADABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


class Said(Struct, frozen=True):
    """What a string says of a call besides its settings.

    ``params`` are the parameters of the model; unless they are ``fresh``, the model may have others by
    now. ``count`` is how many answers are asked for, if that is said; ``counted`` tells that the call
    itself says it. It is no part of the settings: three answers may serve who wants two.
    """

    params: Mapping[str, object] = {}
    fresh: bool = True
    count: int | None = None
    counted: bool = False


class LlmString(Struct, frozen=True):
    """One string, read."""

    settings: Settings
    said: Said


class _Known(Struct, frozen=True):
    """What became of one string; ``classes`` are those that it names."""

    read: LlmString | None
    problem: str
    classes: Mapping[str, type[BaseModel]]

    def holds(self) -> bool:
        """Tell whether the classes named are still those that were seen."""
        try:
            return all(class_named(name) is kind for name, kind in self.classes.items())
        except CanonicalError:
            return False


class LlmSettings:
    """Reads each ``llm_string`` once and keeps its digest; bounded, safe for threads."""

    def __init__(self, *, stamps: Stamps) -> None:
        self._stamps = stamps
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def of(self, llm_string: str) -> Settings:
        """Return the settings of one model call.

        Raises:
            CanonicalError: it cannot be cached; the message names the part.
        """
        return self.read(llm_string).settings

    def read(self, llm_string: str) -> LlmString:
        """Return the settings, and what the string says besides.

        Raises:
            CanonicalError: see `of`.
        """
        known = self._known_of(llm_string)
        if known.read is None:
            raise CanonicalError(known.problem)
        return known.read

    def _known_of(self, llm_string: str) -> _Known:
        known = self._known.get(llm_string)
        if known is None or not known.holds():
            known = self._read(llm_string)
            with self._lock:
                if len(self._known) >= STRINGS_KEPT:
                    self._known.clear()
                self._known[llm_string] = known
        return known

    def _read(self, llm_string: str) -> _Known:
        reading = _Reading()
        try:
            params = reading.parse(llm_string)
        except CanonicalError as error:
            return _Known(None, str(error), reading.classes)
        settings = Settings(
            model=first_text(params, MODEL_NAMES),
            endpoint=first_text(params, ENDPOINTS),
            params={"framework": "langchain", "llm": params},
            stamps=self._stamps,
            seam=Seam.MODEL,
        )
        if settings.problem:
            return _Known(None, settings.problem, reading.classes)
        return _Known(LlmString(settings, reading.said), "", reading.classes)


class _Reading:
    """One parse; collects the classes that the string names, and what else it says."""

    def __init__(self) -> None:
        self.classes: dict[str, type[BaseModel]] = {}
        self.said = Said()

    def parse(self, llm_string: str) -> Mapping[str, object]:
        """Return the parameters as plain data."""
        forms: tuple[Callable[[str], Mapping[str, object]], ...] = (self._serialised, self._listed)
        for form in forms:
            try:
                return form(llm_string)
            except _UNREADABLE:
                continue
        if _ADDRESS.search(llm_string):
            raise CanonicalError(
                "a parameter of the model is an object known only by its memory address"
            )
        return {"text": llm_string}

    def _serialised(self, llm_string: str) -> Mapping[str, object]:
        head, end = json.JSONDecoder().raw_decode(llm_string)
        if not isinstance(head, dict) or not llm_string.startswith("---", end):
            raise ValueError("not the form of a serialisable model")
        kwargs = head.get("kwargs")
        known = kwargs if isinstance(kwargs, dict) else {}
        params = _entries(known, keyed.of_model)
        options = self._options(llm_string[end + 3 :])
        counts = [_count(options), _count(params)]
        self.said = Said(params, False, counts[0] or counts[1], counts[0] is not None)
        return {
            "class": head.get("id"),
            "kwargs": _uncounted(params),
            "options": _uncounted(options),
            **{name: known[name] for name in (*MODEL_NAMES, *ENDPOINTS) if name in known},
        }

    def _listed(self, llm_string: str) -> Mapping[str, object]:
        params = self._options(llm_string)
        count = _count(params)
        self.said = Said(params, True, count, count is not None)
        return _uncounted(params)

    def _options(self, listed: str) -> dict[str, object]:
        """Read ``[('name', value), ...]``; classes in it become their schemas."""
        pairs = ast.literal_eval(_QUOTED_OR_CLASS.sub(_as_literal, listed))
        if not isinstance(pairs, list):
            raise ValueError("not a list of parameters")
        read: dict[str, object] = {}
        for name, value in pairs:
            if not isinstance(name, str):
                raise ValueError("a parameter has no name")
            if keyed.of_model(name, value):
                read[name] = self._with_schemas(shaping(name, value))
        return read

    def _with_schemas(self, value: object) -> object:
        match value:
            case {"<class>": str(name)}:
                self.classes[name] = class_named(name)
                return {_CLASS: name, "schema": schema_named(name)}
            case dict():
                return {
                    name: self._with_schemas(shaping(str(name), item))
                    for name, item in value.items()
                    if keyed.no_secret(str(name), item)
                }
            case list() | tuple():
                return [self._with_schemas(item) for item in value]
        return value


def _count(params: Mapping[str, object]) -> int | None:
    count = params.get(COUNT)
    return count if isinstance(count, int) and count is not True and count >= 1 else None


def _uncounted(params: Mapping[str, object]) -> Mapping[str, object]:
    """Return the parameters, of which one tells no more than that it is a number of answers."""
    return params if _count(params) is None else {**params, COUNT: _ANY}


def _as_literal(found: re.Match[str]) -> str:
    name = found["name"]
    return found[0] if name is None else repr({_CLASS: name})


def _plain(value: object) -> object:
    """Return serialised parameters without secrets, or refuse an object without identity."""
    match value:
        case {"lc": 1, "type": "not_implemented", **rest}:
            raise CanonicalError(
                f"a parameter of the model is an object of unknown state ({rest.get('id')})"
            )
        case {"lc": 1, "type": "constructor", "id": named, "kwargs": dict(kwargs)}:
            return {"class": named, "kwargs": _entries(kwargs, keyed.of_model)}
        case dict():
            return _entries(value, keyed.no_secret)
        case list():
            return [_plain(item) for item in value]
    return value


def _entries(given: Mapping[str, object], is_keyed: keyed.Keyed) -> dict[str, object]:
    return {
        name: _plain(shaping(name, item))
        for name, item in given.items()
        if is_keyed(name, item) and not _is_marked_secret(item)
    }


def _is_marked_secret(item: object) -> bool:
    return isinstance(item, dict) and item.get("lc") == 1 and item.get("type") == "secret"
