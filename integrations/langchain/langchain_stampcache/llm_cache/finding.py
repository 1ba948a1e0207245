"""The question inside what a model is sent, what it is to be answered from, and all the rest.

A model's prompt shows neither apart. They are known by the user's own template, read backwards; by a
function of the user's; or by the scope around the call. Whatever of a prompt is neither question nor
context becomes part of the Partition, so nothing that a model sees is left out of what must be equal.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.prompts import BasePromptTemplate
from msgspec import Struct

from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_cache.cutting import CutPrompt
from langchain_stampcache.llm_cache.template import (
    CONTEXT_VARIABLE,
    QUESTION_VARIABLES,
    Inverted,
    Message,
    Part,
    Shaped,
    Template,
    Turns,
    shell_of,
)
from stampcache import ConfigError, Evidence, canonical
from stampcache.adapters import surroundings

SEPARATOR = "\n\n"
_QUESTION = {"is": "question"}
_WHOLE = {"is": "the whole context"}  # tells one chunk of it from a context that repeats one


class InPrompt(Struct, frozen=True):
    """What a function finds in a text, word by word: the question, and what it is answered from."""

    question: str
    context: str | None = None


Extractor: TypeAlias = Callable[[str], "str | InPrompt | None"]


class Finding(Struct, frozen=True, kw_only=True):
    """What a prompt asks.

    ``evidence`` are the chunks that it is to be answered from; ``None``: unknown, and a part of the
    rest. ``history`` holds the turns before and after the question, and ``rest`` all else as
    canonical text, for ``Settings.system``. What is equal in all four is the very same prompt.
    """

    question: str
    evidence: tuple[Evidence, ...] | None
    history: tuple[object, ...]
    rest: str

    @property
    def has_ids(self) -> bool:
        """Whether a change to a document can be told to concern each chunk or not."""
        return all(each.source or each.chunk for each in self.evidence or ())


class Variables(Struct, frozen=True, kw_only=True):
    """What a user says of a template: the names of its variables, and how chunks are joined."""

    question: str | None = None
    context: str | None = None
    separator: str = SEPARATOR


class Finder:
    """Finds questions in prompts by what the user gave; safe for threads."""

    def __init__(
        self,
        *,
        template: BasePromptTemplate[Any] | None,
        variables: Variables,
        extract: Extractor | None,
        corpus: str,
    ) -> None:
        """Take what is known of the prompts.

        Args:
            template: from which they are rendered.
            variables: which of its variables are meant.
            extract: a function that finds the question in a text.
            corpus: that the chunks belong to, where the scope names none.

        Raises:
            ConfigError: the template cannot be read backwards, or lacks a variable.
        """
        self._separator = variables.separator
        self._marks = {
            "question": _QUESTION,
            "context": {"is": "context", "joined by": variables.separator},
        }
        self._extract = extract
        self._corpus = corpus
        self._template = None if template is None else Template(template)
        if self._template is None and (variables.question or variables.context):
            raise ConfigError("question_variable= and context_variable= are of a template=.")
        self.question_variable = self._named_question(variables.question)
        self.context_variable = self._named_context(variables.context)
        named = {self.question_variable: "question", self.context_variable: "context"}
        self._taken = {name: self._marks[what] for name, what in named.items() if name}

    @property
    def reads_context(self) -> bool:
        """Whether the template has a place for what is retrieved."""
        return bool(self.context_variable)

    def find(self, asked: prompts.Chat | str) -> Finding | None:
        """Return what a prompt asks; ``None`` where that is not certain: it is matched exactly then.

        Raises:
            Exception: whatever the user's function raises.
        """
        said = surroundings()
        given = said.evidence if said is not None else None
        found = self._by_template(asked, given) if self._template is not None else None
        told = said.question if said is not None else ""
        if found is not None or (self._extract is None and not told):
            return found
        whole = CutPrompt.of(asked)
        if whole is None:
            return None
        shown = self._extract(whole.text) if self._extract is not None and whole.text else None
        if shown is not None:
            shown = shown if isinstance(shown, InPrompt) else InPrompt(shown)
            return self._shown(whole, shown, given)
        if not told:
            return None
        everywhere = self._shown(whole, InPrompt(told, self._joined(given)), given)
        return everywhere or self._shown(whole, InPrompt(told), given)

    # -- by the template ---------------------------------------------------------------------------

    def _named_question(self, given: str | None) -> str:
        if self._template is None:
            return ""
        known = {*self._template.variables, *self._template.places}
        if given is not None:
            if given not in known:
                raise ConfigError(f"The template has no variable {given!r} (question_variable=).")
            return given
        named = [name for name in QUESTION_VARIABLES if name in self._template.variables]
        if len(named) != 1:
            seen = ", ".join(map(repr, sorted(known))) or "none"
            raise ConfigError(
                "Which variable of the template is the question? Give question_variable=;"
                f" there are {seen}."
            )
        return named[0]

    def _named_context(self, given: str | None) -> str:
        if self._template is None:
            return ""
        if given is not None and given not in self._template.variables:
            raise ConfigError(f"The template has no variable {given!r} (context_variable=).")
        if given is not None and given == self.question_variable:
            raise ConfigError("question_variable= and context_variable= name the same variable.")
        if given is not None:
            return given
        has_it = CONTEXT_VARIABLE in self._template.variables
        return CONTEXT_VARIABLE if has_it and self.question_variable != CONTEXT_VARIABLE else ""

    def _by_template(
        self, asked: prompts.Chat | str, given: tuple[Evidence, ...] | None
    ) -> Finding | None:
        inverted = self._template.inverted(asked) if self._template is not None else None
        if inverted is None:
            return None
        reading = _Reading(inverted, self.question_variable, self._taken)
        question = reading.question()
        if not question.strip():
            return None
        context = inverted.values.get(self.context_variable)
        return Finding(
            question=question,
            evidence=given if context is None else self._evidence(context, given),
            history=tuple(reading.history),
            rest=_text_of(reading.rest),
        )

    # -- by a function, or by the scope ------------------------------------------------------------

    def _shown(
        self, whole: CutPrompt, shown: InPrompt, given: tuple[Evidence, ...] | None
    ) -> Finding | None:
        """Cut out what is shown, if each of it stands there exactly once."""
        if not shown.question.strip():
            return None
        rest = whole.without(shown.question, shown.context, self._marks)
        if rest is None:
            return None
        known = given if shown.context is None else self._evidence(shown.context, given)
        return Finding(
            question=shown.question, evidence=known, history=whole.history, rest=_text_of(rest)
        )

    def _joined(self, given: tuple[Evidence, ...] | None) -> str | None:
        texts = [each.text for each in given or ()]
        return self._separator.join(texts) if texts and all(texts) else None

    # -- evidence ----------------------------------------------------------------------------------

    def _evidence(self, context: str, given: tuple[Evidence, ...] | None) -> tuple[Evidence, ...]:
        """Return a context as chunks, with the ids that the scope gives to them.

        Their contents are always those of the context, since that is what the model reads. Where the
        scope's chunks are not joined as it is, each stands for the whole of it.
        """
        if not given or not context:
            return self._pieces(context)
        texts = [each.text for each in given]
        if self._separator.join(texts) == context and all(texts):
            return tuple(map(self._with_text, given, texts))
        return tuple(self._with_text(each, context, _WHOLE) for each in given)

    def _pieces(self, context: str) -> tuple[Evidence, ...]:
        if not context:
            return ()
        texts = context.split(self._separator) if self._separator else [context]
        if not all(texts):
            texts = [context]  # a chunk of no text could not be told from no chunk
        return tuple(
            Evidence(corpus=self._corpus, text=text, rank=rank) for rank, text in enumerate(texts)
        )

    def _with_text(
        self, given: Evidence, text: str, metadata: Mapping[str, object] | None = None
    ) -> Evidence:
        return Evidence(
            corpus=given.corpus or self._corpus,
            source=given.source,
            chunk=given.chunk,
            text=text,
            metadata=metadata,
            score=given.score,
            rank=given.rank,
        )


def _text_of(rest: Sequence[object]) -> str:
    return canonical.value(rest).decode("utf-8", "surrogatepass")


class _Reading:
    """Sorts what a template was rendered from into the question, the history, and the rest."""

    def __init__(
        self, inverted: Inverted, question: str, taken: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._values = inverted.values
        self._variable = question
        self._taken = taken
        self._asked = inverted.values.get(question, "")
        self.history: list[object] = []
        self.rest: list[object] = [self._kept(part, messages) for part, messages in inverted.parts]

    def question(self) -> str:
        """Return the question, or an empty text where there is none."""
        return self._asked

    def _kept(self, part: Part, messages: tuple[Message, ...]) -> object:
        match part:
            case Shaped():
                text = part.pattern.rest(self._values, self._taken)
                return {"shell": part.shell, "text": text}
            case Turns(name=name):
                return {"turns": name, **self._turns(name, messages)}
        return {"message": messages[0]}

    def _turns(self, name: str, messages: tuple[Message, ...]) -> dict[str, object]:
        """Keep messages as history; the last one asks, if the placeholder is the question's."""
        asks = name == self._variable and messages and prompts.Chat(messages[-1:]).last_text
        before = messages[:-1] if asks else messages
        self.history.extend({"turns": name, "message": each} for each in before)
        kept: dict[str, object] = {"count": len(before)}
        if asks:
            self._asked = asks
            kept["asked"] = {"shell": shell_of(messages[-1]), "text": [_QUESTION]}
        return kept
