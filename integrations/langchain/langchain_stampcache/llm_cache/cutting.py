"""A prompt out of which question and context are cut, and what is left of it then."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_cache.template import Message, shell_of

Marks: TypeAlias = Mapping[str, Mapping[str, str]]


class CutPrompt(Struct, frozen=True):
    """A prompt and the text in it that asks: the last message of a human, or a whole plain prompt.

    Messages of the system are kept apart from the turns of the conversation.
    """

    text: str
    at: int
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, asked: prompts.Chat | str) -> "CutPrompt | None":
        """Return a prompt by the text in it that asks, or ``None`` where no human's text is."""
        if isinstance(asked, str):
            return cls(asked, 0, ({"content": asked},))
        for at in range(len(asked.messages) - 1, -1, -1):
            if asked.messages[at].get("type") == "human":
                content = asked.messages[at].get("content")
                return cls(content, at, asked.messages) if isinstance(content, str) else None
        return None

    @property
    def history(self) -> tuple[object, ...]:
        """The turns of the conversation besides the one that asks."""
        return tuple(each for at, each in enumerate(self.messages) if self._is_turn(at))

    def without(self, question: str, context: str | None, marks: Marks) -> list[object] | None:
        """Return all but the turns, with question and context cut out; ``None`` where unclear."""
        rest: list[object] = []
        places = 0
        for at, message in enumerate(self.messages):
            content = message.get("content")
            if self._is_turn(at) or not isinstance(content, str):
                rest.append({"turn": at} if self._is_turn(at) else {"message": message})
                continue
            parts: list[object] = [content]
            if context:
                parts = _cut(parts, context, marks["context"])
                places += parts.count(marks["context"])
            if at == self.at:
                parts = _cut(parts, question, marks["question"])
                if parts.count(marks["question"]) != 1:
                    return None
            rest.append({"shell": shell_of(message), "text": parts})
        return None if context and places != 1 else rest

    def _is_turn(self, at: int) -> bool:
        return at != self.at and self.messages[at].get("type") != "system"


def _cut(parts: Sequence[object], text: str, mark: Mapping[str, str]) -> list[object]:
    """Return the parts with a mark for each place of a text."""
    cut: list[object] = []
    for part in parts:
        cut += _cut_out(part, text, mark) if isinstance(part, str) else [part]
    return cut


def _cut_out(part: str, text: str, mark: Mapping[str, str]) -> Iterator[object]:
    left = part
    while (begin := left.find(text)) >= 0:
        yield left[:begin]
        yield mark
        if 0 <= left.find(text, begin + 1) < begin + len(text):
            yield mark  # a place that overlaps: two of them, of which one cannot be cut out
        left = left[begin + len(text) :]
    yield left
