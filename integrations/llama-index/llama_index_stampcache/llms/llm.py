"""`CachedLLM`: any LlamaIndex model, behind the cache."""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import msgspec
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from msgspec import Struct

from llama_index_stampcache.llms.forms import Call, Form
from llama_index_stampcache.llms.identity import LLMRequests
from llama_index_stampcache.llms.serving import LLMServing
from stampcache import AsyncCache, Cache, ConfigError, Stamps, open_cache
from stampcache.adapters import CanonicalError, Core, Front, Validity, checked

_CLASSES_KEPT = 256
# Where an object of pydantic's keeps its fields.
_STATE = (
    "__dict__",
    "__pydantic_private__",
    "__pydantic_extra__",
    "__pydantic_fields_set__",
)


class _Behind(Struct, frozen=True, kw_only=True):
    """What stands behind a cached model."""

    inner: LLM
    cache: Cache | AsyncCache
    serving: LLMServing
    validity: Validity


class CachedLLM(LLM):
    """A model whose calls are answered from the cache where the very same call was answered before.

    It is of its inner model's class, and shares its fields: whatever was asked of the inner one can be
    asked of it, ``isinstance`` and ``metadata`` say what they said, and a parameter that is changed on
    either is changed on both. What the inner model builds of its eight calls (``predict``,
    ``structured_predict``, ``chat_with_tools``, ``predict_and_call`` and others) is built of the
    cached ones. ``response.additional_kwargs["cache"]`` tells whether it was a hit, and why.

    Nothing of the cache can fail a call: then the inner model answers, and it is counted.
    """

    __slots__ = ("_behind",)  # no field of pydantic's: those are the inner model's
    if TYPE_CHECKING:
        _behind: _Behind

    def __new__(cls, inner: LLM | None = None, **_: object) -> Self:
        """Return an object of the inner model's class, too."""
        if inner is None or not isinstance(inner, LLM):
            raise ConfigError(f"inner= is a {type(inner).__qualname__}; give a model, an LLM.")
        if isinstance(inner, CachedLLM):
            raise ConfigError("This model is cached already; give the one inside of it.")
        if isinstance(inner, StructuredLLM):
            raise ConfigError(
                "Cache the model inside of a structured one: CachedLLM(llm, ...).as_structured_llm(...)."
            )
        return cast(Self, object.__new__(_of_both(cls, type(inner))))

    def __init__(
        self,
        inner: LLM,
        *,
        cache: Cache | AsyncCache | str,
        stamps: Stamps | None = None,
        kind: str = "",
        version: str | None = None,
    ) -> None:
        """Put a cache in front of a model.

        Args:
            inner: the model that answers on a miss.
            cache: an open cache, or the URL of one.
            stamps: versions that cannot be read from the model, such as that of its weights.
            kind: the kind of data, which says how long answers live (``lifetimes=`` of the cache).
            version: stands for the parts of the model that have no identity of their own, such as a
                tokenizer object; change it whenever one of them changes.

        Raises:
            ConfigError: the model cannot be cached; the sentence says what to change.
        """
        given = Validity(grounding="none", kind=kind, stamps=stamps or Stamps(), version=version)
        opened = open_cache(cache) if isinstance(cache, str) else cache
        try:
            validity = checked(opened.core, given, manifest=None, has_index=False)
            serving = _served(inner, opened.core, validity)
        except BaseException:
            if isinstance(cache, str) and isinstance(opened, Cache):
                opened.close()
            raise
        behind = _Behind(inner=inner, cache=opened, serving=serving, validity=validity)
        object.__setattr__(self, "_behind", behind)
        self._share()

    def _share(self) -> None:
        """Have the very fields of the inner model."""
        for name in _STATE:
            object.__setattr__(self, name, getattr(self.inner, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)
        self._share()  # some classes make all of their fields anew

    @property
    def inner(self) -> LLM:
        """The model that answers on a miss."""
        return self._behind.inner

    @property
    def metadata(self) -> LLMMetadata:
        """What the inner model tells about itself."""
        return self.inner.metadata

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs; close it if it was given by its URL."""
        return self._behind.cache

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies this model inside of an engine: what it would run on a miss."""
        validity = self._behind.validity
        return {
            "inner": self.inner,
            "version": validity.version,
            "stamps": msgspec.structs.asdict(validity.stamps),
        }

    # -- the calls of a model ---------------------------------------------------------------------

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a dialogue."""
        call = Call(form=Form.CHAT, messages=_listed(messages), kwargs=kwargs)
        return cast(ChatResponse, self._behind.serving.answer(call))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """See `chat`."""
        call = Call(form=Form.CHAT, messages=_listed(messages), kwargs=kwargs)
        return cast(ChatResponse, await self._behind.serving.aanswer(call))

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Answer a dialogue as a stream; it is stored when it was read to its end."""
        call = _streamed_chat(messages, kwargs)
        return cast(ChatResponseGen, self._behind.serving.stream(call))

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """See `stream_chat`."""
        call = _streamed_chat(messages, kwargs)
        return cast(ChatResponseAsyncGen, await self._behind.serving.astream(call))

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Complete a prompt."""
        call = Call(form=Form.COMPLETION, prompt=prompt, formatted=formatted, kwargs=kwargs)
        return cast(CompletionResponse, self._behind.serving.answer(call))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """See `complete`."""
        call = Call(form=Form.COMPLETION, prompt=prompt, formatted=formatted, kwargs=kwargs)
        return cast(CompletionResponse, await self._behind.serving.aanswer(call))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Complete a prompt as a stream; it is stored when it was read to its end."""
        call = _streamed_completion(prompt, formatted, kwargs)
        return cast(CompletionResponseGen, self._behind.serving.stream(call))

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """See `stream_complete`."""
        call = _streamed_completion(prompt, formatted, kwargs)
        return cast(CompletionResponseAsyncGen, await self._behind.serving.astream(call))

    # -- copies -----------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        return self._around(copy.copy(self.inner))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self._around(copy.deepcopy(self.inner, memo))

    def _around(self, inner: LLM) -> Self:
        """Return a copy of the model behind the same cache."""
        validity = self._behind.validity
        return cast(
            Self,
            CachedLLM(
                inner,
                cache=self.cache,
                stamps=validity.stamps,
                kind=validity.kind,
                version=validity.version,
            ),
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A cached model cannot be pickled; pickle its inner one, and cache it there."
        )


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def _of_both(cls: type[CachedLLM], kind: type[LLM]) -> type[Any]:
    """Return the class of a model's class and of the cached ones; the latter go first."""
    made: Any = type(cls)  # the class of pydantic's classes
    names = {"__module__": __name__, "__qualname__": f"Cached{kind.__qualname__}"}
    both: type[Any] = made(f"Cached{kind.__name__}", (cls, kind), {**names, "__doc__": cls.__doc__})
    return both


def _served(inner: LLM, core: Core, validity: Validity) -> LLMServing:
    try:
        requests = LLMRequests(inner, validity)
        requests.settings(aio=False)
    except CanonicalError as error:
        known = validity.version is not None
        advice = (
            "pass plain settings"
            if known
            else 'pass version="..." and change it whenever that part changes'
        )
        raise ConfigError(
            f"This model has a part without identity: {error} Or {advice}."
        ) from error
    return LLMServing(inner, Front(core, kind="llama-index.llm"), requests)


def _listed(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages that can be read more than once, as some callers do not give them so."""
    return messages if isinstance(messages, Sequence) else list(messages)


def _streamed_chat(messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> Call:
    return Call(form=Form.CHAT, messages=_listed(messages), streamed=True, kwargs=kwargs)


def _streamed_completion(prompt: str, formatted: bool, kwargs: dict[str, Any]) -> Call:
    return Call(
        form=Form.COMPLETION, prompt=prompt, formatted=formatted, streamed=True, kwargs=kwargs
    )
