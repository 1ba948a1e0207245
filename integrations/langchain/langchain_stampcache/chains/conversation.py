"""Which inputs are the history of a conversation, and what is left without them (ADR 0018)."""

from collections.abc import Mapping

from langchain_core.messages import BaseMessage

from langchain_stampcache import prompt as prompts

HISTORY_KEYS = frozenset({"chat_history", "history", "messages"})


def is_history(name: str, value: object) -> bool:
    """Tell whether an input holds turns of a conversation: by its name, or since it holds messages."""
    return name in HISTORY_KEYS or _holds_messages(value)


def has_history(inputs: Mapping[str, object]) -> bool:
    """Tell whether something was said before."""
    return any(bool(value) and is_history(name, value) for name, value in inputs.items())


def without_history(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return the inputs as if nothing had been said before."""
    return {
        name: _emptied(value) if is_history(name, value) else value
        for name, value in inputs.items()
    }


def turns_of(name: str, value: object) -> list[object]:
    """Return the turns of a conversation in canonical form; nothing for an empty one."""
    turns = list(value) if isinstance(value, list | tuple) else [value] if value else []
    if not turns:
        return []
    if all(isinstance(turn, BaseMessage) for turn in turns):
        spoken = prompts.of_messages([turn for turn in turns if isinstance(turn, BaseMessage)])
        return [{"input": name, "messages": list(spoken.messages)}]
    return [{"input": name, "turns": [_plain_turn(turn) for turn in turns]}]


def _emptied(value: object) -> object:
    return "" if isinstance(value, str) else () if isinstance(value, tuple) else []


def _holds_messages(value: object) -> bool:
    if isinstance(value, BaseMessage):
        return True
    return isinstance(value, list | tuple) and any(isinstance(one, BaseMessage) for one in value)


def _plain_turn(turn: object) -> object:
    if isinstance(turn, BaseMessage):
        return {"message": list(prompts.of_messages([turn]).messages)}
    return turn
