"""Chat messages as they are keyed: all that reaches a model, nothing that is drawn anew for each call.

The ids of tool calls are numbered as they appear, so that an answer still belongs to its call but two
equal dialogues are equal (cases B1, B8). What a provider tells about a message (its tokens) and what
the cache tells about it are left out. Media are keyed by their bytes; where they are named by a path or
an address only, what stands there may change unseen, and the message has no identity.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from pydantic import BaseModel

from llama_index_stampcache.describing import Describer
from llama_index_stampcache.parts import Position
from stampcache import canonical
from stampcache.adapters import CanonicalError

Plain: TypeAlias = dict[str, object]
_MEDIA_NAMES = {
    "ImageBlock": "image",
    "AudioBlock": "audio",
    "VideoBlock": "video",
    "DocumentBlock": "data",
}
_BLOCK_NAMES = (
    "TextBlock", "ThinkingBlock", "ToolCallBlock", "CachePoint", "CitableBlock", "CitationBlock",
)  # fmt: skip
# Older versions of the framework have not all of them.
_MEDIA: Mapping[type, str] = {
    getattr(types, name): data for name, data in _MEDIA_NAMES.items() if hasattr(types, name)
}
_BLOCKS = frozenset(
    (*_MEDIA, *(getattr(types, name) for name in _BLOCK_NAMES if hasattr(types, name)))
)
_MESSAGE = frozenset(ChatMessage.model_fields)
# What is told about a message, and never sent with it.
_TOLD = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "num_tokens"})


def keyed_messages(messages: Sequence[ChatMessage], describer: Describer) -> list[Plain]:
    """Return a dialogue as plain data.

    Raises:
        CanonicalError: a part of it has no identity; the message names it.
    """
    keying = _Keying(describer)
    return [keying.message(message, at) for at, message in enumerate(messages)]


class _Keying:
    """One dialogue; knows the ids that it has met."""

    def __init__(self, describer: Describer) -> None:
        self._describer = describer
        self._ids: dict[str, int] = {}

    def message(self, message: ChatMessage, at: int) -> Plain:
        """Return one message."""
        where = f"messages[{at}]"
        if not isinstance(message, ChatMessage):
            raise CanonicalError(f"{where} is a {type(message).__qualname__}, no ChatMessage.")
        more = {
            name: self._described(getattr(message, name), f"{where}.{name}")
            for name in (*type(message).model_fields, *(message.model_extra or {}))
            if name not in _MESSAGE
        }
        return {
            "role": message.role.value,
            "blocks": [self._block(block, f"{where}.blocks") for block in message.blocks],
            "with": self._additional(message.additional_kwargs, f"{where}.additional_kwargs"),
            **({"more": more} if more else {}),
        }

    def _block(self, block: BaseModel, where: str) -> Plain:
        kind = type(block)
        if kind is TextBlock:
            return {"text": block.text}  # type: ignore[attr-defined]  # of a TextBlock
        if kind not in _BLOCKS:
            raise CanonicalError(f"{where} has a {kind.__qualname__}, which is not known.")
        if kind in _MEDIA:
            return _media(block, _MEDIA[kind], where)
        parts = {name: getattr(block, name) for name in kind.model_fields if name not in _TOLD}
        return {name: self._part(name, part, where) for name, part in parts.items()}

    def _part(self, name: str, part: object, where: str) -> object:
        if name == "tool_call_id":
            return self._numbered(part)
        if type(part) in _BLOCKS and isinstance(part, BaseModel):
            return self._block(part, where)
        if isinstance(part, list) and all(type(one) in _BLOCKS for one in part):
            return [self._block(one, where) for one in part]
        return self._described(part, f"{where}.{name}")

    def _additional(self, given: Mapping[str, object], where: str) -> Plain:
        kept: Plain = {}
        for name, value in given.items():
            if name in _TOLD or (name == "cache" and _is_report(value)):
                continue
            if name == "tool_call_id":
                kept[name] = self._numbered(value)
            elif name == "tool_calls" and isinstance(value, list | tuple):
                kept[name] = [self._call(call, f"{where}.{name}") for call in value]
            else:
                kept[name] = self._described(value, f"{where}.{name}")
        return kept

    def _call(self, call: object, where: str) -> object:
        """Return a tool call, whether it is an object of the provider's or plain data."""
        known = _bare(self._described(call, where))
        if isinstance(known, dict) and "id" in known:
            return {**known, "id": self._numbered(known["id"])}
        return known

    def _numbered(self, id_: object) -> object:
        return self._ids.setdefault(id_, len(self._ids)) if isinstance(id_, str) else id_

    def _described(self, value: object, where: str) -> object:
        return self._describer.describe(value, Position(where=where))


def _media(block: BaseModel, data_name: str, where: str) -> Plain:
    fields = {name: getattr(block, name) for name in type(block).model_fields}
    data, path, url = fields.pop(data_name), fields.pop("path"), fields.pop("url")
    address = "" if url is None else str(url)
    if path is not None or (address and not address.startswith("data:")):
        raise CanonicalError(
            f"{where} names its {data_name} by a path or an address, where it may change unseen; "
            "give its bytes."
        )
    if data is not None and not isinstance(data, bytes):
        raise CanonicalError(f"{where} has {data_name} in an open file; give its bytes.")
    content = [data or b"", canonical.encode(address)]
    return {**fields, "content": canonical.digest(content, person=b"media")}


def _is_report(value: object) -> bool:
    return isinstance(value, Mapping) and {"hit", "entry_id", "saved"} <= value.keys()


def _bare(described: object) -> object:
    """Return data without the names of classes and without what is not set."""
    if isinstance(described, dict):
        kept = described.items()
        return {k: _bare(v) for k, v in kept if v is not None and k not in ("class", "index")}
    return [_bare(one) for one in described] if isinstance(described, list) else described
