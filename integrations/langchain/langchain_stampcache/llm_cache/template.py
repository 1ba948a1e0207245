"""The user's own prompt template, read backwards: from what a model is sent to what was put in.

What is found renders the very same messages again. Where that is not certain nothing is found: another
prompt, two ways to read one, a question that stands in two places and is not the same in both.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage, ChatMessage, HumanMessage
from langchain_core.prompts import (
    AIMessagePromptTemplate,
    BasePromptTemplate,
    ChatMessagePromptTemplate,
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
    SystemMessagePromptTemplate,
)
from msgspec import Struct

from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_cache.template_text import Pattern, pattern_of
from stampcache import ConfigError
from stampcache.adapters import CanonicalError

Message: TypeAlias = Mapping[str, object]
QUESTION_VARIABLES = ("input", "question", "query")
CONTEXT_VARIABLE = "context"
MOST_PLACEHOLDERS = 2
_OF_TEXT = (
    HumanMessagePromptTemplate,
    SystemMessagePromptTemplate,
    AIMessagePromptTemplate,
)


class Fixed(Struct, frozen=True):
    """A message that is always the same."""

    message: Message


class Shaped(Struct, frozen=True):
    """A message of a text with variables; ``shell`` is all of it but the text."""

    shell: Message
    pattern: Pattern


class Turns(Struct, frozen=True):
    """A place for any number of messages."""

    name: str


Part = Fixed | Shaped | Turns


class Inverted(Struct, frozen=True):
    """What a prompt was rendered from: each part of the template, and the messages that it became."""

    values: Mapping[str, str]
    parts: tuple[tuple[Part, tuple[Message, ...]], ...]


class Template:
    """One template, compiled once; safe for threads."""

    def __init__(self, template: BasePromptTemplate[Any]) -> None:
        """Take a ``ChatPromptTemplate``, or a ``PromptTemplate`` for models of plain text.

        Raises:
            ConfigError: it cannot be read backwards.
        """
        self._is_text = type(template) is PromptTemplate
        try:
            self.parts = tuple(_compiled(template, {}))
        except CanonicalError as error:
            raise ConfigError(f"The template cannot be told from another one: {error}.") from error
        self.places = [part.name for part in self.parts if isinstance(part, Turns)]
        if len(self.places) > MOST_PLACEHOLDERS:
            raise ConfigError(
                f"The template has {len(self.places)} placeholders for messages; with more than"
                f" {MOST_PLACEHOLDERS} nobody can tell which message belongs to which."
            )
        if len(set(self.places)) < len(self.places):
            raise ConfigError("The template has one placeholder for messages twice.")

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables whose values are texts."""
        shaped = (part for part in self.parts if isinstance(part, Shaped))
        return frozenset(hole.name for part in shaped for hole in part.pattern.holes)

    def inverted(self, asked: prompts.Chat | str) -> Inverted | None:
        """Return what a prompt was rendered from, or ``None`` where that is not certain."""
        if isinstance(asked, str) and not self._is_text:
            return None
        given = (_human(asked),) if isinstance(asked, str) else asked.messages
        ways = list(itertools.islice(self._aligned(given), 2))
        if len(ways) != 1:
            return None
        parts = tuple(zip(self.parts, ways[0], strict=True))
        values: dict[str, str] = {}
        for part, messages in parts:
            if not isinstance(part, Shaped):
                continue
            found = part.pattern.values(str(messages[0]["content"]))
            if found is None:
                return None
            if any(values.setdefault(name, value) != value for name, value in found.items()):
                return None
        return Inverted(values, parts)

    def _aligned(self, messages: Sequence[Message]) -> Iterator[list[tuple[Message, ...]]]:
        """Give each way in which the parts of the template could have become these messages."""
        spare = len(messages) - (len(self.parts) - len(self.places))
        for lengths in _lengths(spare, len(self.places)):
            left = iter(lengths)
            slices: list[tuple[Message, ...]] = []
            at = 0
            for part in self.parts:
                end = at + (next(left) if isinstance(part, Turns) else 1)
                slices.append(tuple(messages[at:end]))
                if not _fits(part, slices[-1]):
                    break
                at = end
            else:
                yield slices


def _lengths(spare: int, places: int) -> Iterator[tuple[int, ...]]:
    """Give each way to divide the messages that no fixed part takes among the placeholders."""
    if spare < 0 or (places == 0 and spare):
        return
    match places:
        case 0:
            yield ()
        case 1:
            yield (spare,)
        case _:
            yield from ((first, spare - first) for first in range(spare + 1))


def _fits(part: Part, messages: tuple[Message, ...]) -> bool:
    match part:
        case Fixed():
            return messages[0] == part.message
        case Shaped():
            content = messages[0].get("content")
            if not isinstance(content, str) or shell_of(messages[0]) != part.shell:
                return False
            return part.pattern.fits(content)
    return True


def shell_of(message: Message) -> Message:
    """Return all of a message but its content."""
    return {name: item for name, item in message.items() if name != "content"}


def _human(text: str) -> Message:
    return prompts.of_messages([HumanMessage(text)]).messages[0]


# -- from LangChain's templates to parts -----------------------------------------------------------


def _compiled(template: object, given: Mapping[str, object]) -> Iterator[Part]:
    """Give the parts of a template; ``given`` are values that templates around it have fixed."""
    match template:
        case BaseMessage():
            [message] = prompts.of_messages([template]).messages
            yield Fixed(message)
        case MessagesPlaceholder():
            yield Turns(template.variable_name)
        case PromptTemplate():
            yield _shaped(HumanMessage(""), template, given)
        case ChatMessagePromptTemplate(prompt=PromptTemplate() as prompt):
            extra = template.additional_kwargs
            shell = ChatMessage(content="", role=template.role, additional_kwargs=extra)
            yield _shaped(shell, prompt, given)
        case (
            HumanMessagePromptTemplate() | SystemMessagePromptTemplate() | AIMessagePromptTemplate()
        ) if isinstance(template.prompt, PromptTemplate) and type(template) in _OF_TEXT:
            made = template._msg_class("", additional_kwargs=template.additional_kwargs)
            yield _shaped(made, template.prompt, given)
        case FewShotChatMessagePromptTemplate(example_selector=None):
            for message in prompts.of_messages(template.format_messages()).messages:
                yield Fixed(message)
        case ChatPromptTemplate() if _renders_plainly(template):
            inner = {**template.partial_variables, **given}
            for each in template.messages:
                yield from _compiled(each, inner)
        case _:
            raise _unreadable(template)


def _renders_plainly(template: ChatPromptTemplate) -> bool:
    """Tell whether a class renders as LangChain's own does, whatever it has added to it."""
    return type(template).format_messages is ChatPromptTemplate.format_messages


def _shaped(shell: BaseMessage, prompt: PromptTemplate, given: Mapping[str, object]) -> Part:
    [message] = prompts.of_messages([shell]).messages
    return Shaped(shell_of(message), pattern_of(prompt, given))


def _unreadable(template: object) -> ConfigError:
    parts = type(template) in _OF_TEXT
    what = "a message of several parts" if parts else f"a {type(template).__name__}"
    return ConfigError(
        f"The template has {what}, so the question cannot be read out of a rendered prompt; give the"
        " question with question= or stampcache.scope(question=...) instead."
    )
