"""The prompt of the judge: a template file, in English or Chinese, and what is put into it."""

import re
import secrets
import string
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import ClassVar, TypeVar

from stampcache.errors import ConfigError
from stampcache.freshness import Freshness
from stampcache.ports import Facts

_FIELDS = frozenset({"mark", "question", "answer", "updated", "now", "kind", "kind_asked", "rate"})
_NEEDED = frozenset({"question", "answer", "updated", "now", "rate"})
LANGUAGES = ("en", "zh")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LONGEST_TEXT = 12_000

OfOurs = TypeVar("OfOurs", bound="Template")


class Template:
    """A prompt with fields in braces; double braces stand for braces.

    Raises:
        ConfigError: a field is missing, or is none of ours.
    """

    fields: ClassVar[frozenset[str]] = _FIELDS
    needed: ClassVar[frozenset[str]] = _NEEDED

    def __init__(self, text: str, *, where: str) -> None:
        try:
            named = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        except ValueError as error:
            raise ConfigError(f"The template {where} cannot be read ({error}).") from error
        if named - self.fields or self.needed - named:
            raise ConfigError(
                f"The template {where} has the fields {sorted(named)}; it needs"
                f" {sorted(self.needed)} and may have {sorted(self.fields - self.needed)}."
            )
        self._text = text

    @classmethod
    def read(cls: "type[OfOurs]", path: str | Path) -> "OfOurs":
        """Return the template in a file.

        Raises:
            ConfigError: it cannot be read, or is none.
        """
        try:
            return cls(Path(path).read_text(encoding="utf-8"), where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The template {path} cannot be read ({error}).") from error

    def render(self, facts: Facts, *, kinds: Sequence[str]) -> str:
        """Return the prompt. What was asked and answered stands between marks that nobody can guess."""
        entry = facts.entry
        asked = "" if entry.kind or not kinds else f', "kind": one of {", ".join(kinds)}'
        fields: Mapping[str, str] = {
            "mark": f"=== {secrets.token_hex(6)}",
            "question": _shortened(entry.question),
            "answer": _shortened(entry.answer.text),
            "updated": _said(facts.updated_at),
            "now": _said(facts.now),
            "kind": entry.kind or "unknown",
            "kind_asked": asked,
            "rate": str(facts.observed),
        }
        return self.fill(fields)

    def fill(self, fields: Mapping[str, str]) -> str:
        """Return the text with something in each field."""
        return self._text.format_map(fields)


def templates(settings: Freshness) -> Mapping[str, Template]:
    """Return the templates by language: those that are shipped, or one of the user's for all.

    Raises:
        ConfigError: the user's cannot be read, or is none.
    """
    if settings.template:
        own = Template.read(settings.template)
        return dict.fromkeys(LANGUAGES, own)
    form = "freshness-json" if settings.json_mode else "freshness"
    return {language: shipped(f"{form}.{language}.txt", Template) for language in LANGUAGES}


def shipped(name: str, form: type[OfOurs]) -> OfOurs:
    """Return a template that this package carries."""
    file = resources.files("stampcache.judging") / "templates" / name
    return form(file.read_text(encoding="utf-8"), where=name)


def language_of(question: str) -> str:
    """Return in which language a judge is asked about a question."""
    return "zh" if _HAN.search(question) else "en"


def _said(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%A, %Y-%m-%d %H:%M UTC")


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"
