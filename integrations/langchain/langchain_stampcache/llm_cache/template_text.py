"""Text templates read backwards: from a rendered text to the values that were put into it.

Only templates of literal text and plain variables can be read backwards. They are found or refused when
the template is given, in each of LangChain's three formats. A rendered text is read only if exactly one
set of values renders it: where the text between two variables occurs in a value, nobody can tell where
the value ends.
"""

import string
from collections.abc import Mapping, Sequence

from langchain_core.prompts import PromptTemplate
from langchain_core.utils import mustache
from msgspec import Struct

from stampcache import ConfigError

_REPLACED = (('"', "&quot;"), ("<", "&lt;"), (">", "&gt;"))


class Hole(Struct, frozen=True):
    """Where a value stands; ``escaped`` says that it is rendered as HTML (mustache's ``{{name}}``)."""

    name: str
    escaped: bool = False


Piece = str | Hole


class Pattern:
    """One text with holes."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Take literals and holes in order.

        Raises:
            ConfigError: no text stands between two of the variables.
        """
        self.holes: list[Hole] = []
        self._literals = [""]
        for piece in pieces:
            if isinstance(piece, str):
                self._literals[-1] += piece
                continue
            if self.holes and not self._literals[-1]:
                names = f"{self.holes[-1].name!r} and {piece.name!r}"
                raise ConfigError(
                    f"The variables {names} of the template stand next to each other, so nobody can"
                    " tell where one ends; put text between them."
                )
            self.holes.append(piece)
            self._literals.append("")

    def fits(self, text: str) -> bool:
        """Tell whether some values render this text."""
        return self._starts(text, from_left=True) is not None

    def values(self, text: str) -> dict[str, str] | None:
        """Return the values that render this text, or ``None`` if there are none or several."""
        starts = self._starts(text, from_left=True)
        if starts is None or starts != self._starts(text, from_left=False):
            return None
        found: dict[str, str] = {}
        begin = len(self._literals[0])
        ends = [*starts, len(text) - len(self._literals[-1])]
        for hole, end, literal in zip(self.holes, ends, self._literals[1:], strict=False):
            value = _unescaped(text[begin:end]) if hole.escaped else text[begin:end]
            if value is None or found.setdefault(hole.name, value) != value:
                return None
            begin = end + len(literal)
        return found

    def _starts(self, text: str, *, from_left: bool) -> list[int] | None:
        """Return where the inner literals begin if each is taken as early, or as late, as it can be.

        Where both ways agree there is no third one.
        """
        first, last = self._literals[0], self._literals[-1]
        if not self.holes:
            return [] if text == first else None
        low, high = len(first), len(text) - len(last)
        if low > high or not text.startswith(first) or not text.endswith(last):
            return None
        starts: list[int] = []
        inner = self._literals[1:-1]
        for literal in inner if from_left else reversed(inner):
            at = text.find(literal, low, high) if from_left else text.rfind(literal, low, high)
            if at < 0:
                return None
            starts.append(at)
            low, high = (at + len(literal), high) if from_left else (low, at)
        return starts if from_left else starts[::-1]

    def rest(self, values: Mapping[str, str], taken: Mapping[str, object]) -> list[object]:
        """Return the text as parts.

        Args:
            values: what `values` found.
            taken: what stands in place of the values of some variables.
        """
        parts: list[object] = [self._literals[0]]
        for hole, literal in zip(self.holes, self._literals[1:], strict=True):
            mark = taken.get(hole.name)
            parts += [{"value": values[hole.name]} if mark is None else mark, literal]
        return parts


def pattern_of(prompt: PromptTemplate, given: Mapping[str, object]) -> Pattern:
    """Return a text template as a pattern.

    Args:
        prompt: the template.
        given: values of variables that were fixed around it, which come before its own.

    Raises:
        ConfigError: it cannot be read backwards.
    """
    fixed = {**prompt.partial_variables, **given}
    pieces: list[Piece] = []
    for piece in _READERS[prompt.template_format](prompt.template):
        value = fixed.get(piece.name) if isinstance(piece, Hole) else None
        if isinstance(piece, str) or not isinstance(value, str):
            pieces.append(piece)  # a function, or a number, is read as whatever it was rendered to
        else:
            pieces.append(_escaped(value) if piece.escaped else value)
    return Pattern(pieces)


def _f_string(template: str) -> list[Piece]:
    pieces: list[Piece] = []
    for literal, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(literal)
        if name is None:
            continue
        if spec or conversion not in (None, "s"):
            raise _refused(f"formats {name!r} in a way of its own")
        pieces.append(Hole(name))
    return pieces


def _mustache(template: str) -> list[Piece]:
    pieces: list[Piece] = []
    for kind, text in mustache.tokenize(template):
        match kind:
            case "literal":
                pieces.append(text)
            case "variable" | "no escape" if text != ".":
                pieces.append(Hole(text, escaped=kind == "variable"))
            case _:
                raise _refused(f"has a {kind} {text!r}")
    return pieces


def _jinja2(template: str) -> list[Piece]:
    from jinja2 import nodes  # only who has such a template has jinja2
    from jinja2.sandbox import SandboxedEnvironment

    pieces: list[Piece] = []
    for statement in SandboxedEnvironment().parse(template).body:
        if not isinstance(statement, nodes.Output):
            raise _refused(f"has the statement {type(statement).__name__.lower()!r}")
        for node in statement.nodes:
            match node:
                case nodes.TemplateData():
                    pieces.append(node.data)
                case nodes.Name():
                    pieces.append(Hole(node.name))
                case _:
                    raise _refused(f"has the expression {type(node).__name__.lower()!r}")
    return pieces


_READERS = {"f-string": _f_string, "mustache": _mustache, "jinja2": _jinja2}


def _refused(what: str) -> ConfigError:
    return ConfigError(
        f"The template {what}, so the question cannot be read out of a rendered prompt; use text and"
        " plain variables only."
    )


def _escaped(value: str) -> str:
    """Return a value as mustache renders it."""
    text = value.replace("&", "&amp;")
    for raw, entity in _REPLACED:
        text = text.replace(raw, entity)
    return text


def _unescaped(rendered: str) -> str | None:
    """Return the value that mustache rendered so, or ``None`` if it renders none so."""
    value = rendered
    for raw, entity in _REPLACED:
        value = value.replace(entity, raw)
    value = value.replace("&amp;", "&")
    return value if _escaped(value) == rendered else None
