"""One call of the model behind a `CachedChatModel`, made as LangChain itself would make it."""

import functools
import inspect
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, TypeGuard

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from msgspec import Struct
from pydantic import BaseModel

from langchain_stampcache.chat.caller import Called
from langchain_stampcache.parameters import attribute_of, is_provider

_CLASSES_KEPT = 128


class ChatCall(Struct, frozen=True, kw_only=True):
    """What is called, with what, and for whom; nothing of it is shared between calls.

    The inner model's own methods are called below those that ask a cache or start a run, and its rate
    limiter is asked first, as LangChain does for a model that is not cached.
    """

    inner: BaseChatModel
    messages: list[BaseMessage]
    stop: list[str] | None
    options: Mapping[str, Any]
    called: Called
    run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None = None

    @property
    def choices(self) -> int:
        """How many answers are asked for (``n``)."""
        extra = attribute_of(self.inner, "model_kwargs")
        places = (self.options, {"n": attribute_of(self.inner, "n")}, extra)
        given = [place.get("n") for place in places if isinstance(place, Mapping)]
        return next((each for each in given if is_choices(each)), 1)

    @property
    def schema(self) -> type[BaseModel] | None:
        """The class whose object the provider's client makes of the answer, if there is one."""
        asked = self.options.get("response_format")
        return asked if isinstance(asked, type) and issubclass(asked, BaseModel) else None

    @property
    def says_its_end(self) -> bool:
        """Whether a whole answer of this model says why it ended, as those of providers do."""
        return any(is_provider(base) for base in type(self.inner).__mro__)

    def generate(self) -> ChatResult:
        """Call the model."""
        if self.inner.rate_limiter:
            self.inner.rate_limiter.acquire(blocking=True)
        return self.inner._generate(self.messages, stop=self.stop, **self._managed("_generate"))

    async def agenerate(self) -> ChatResult:
        """See `generate`."""
        if self.inner.rate_limiter:
            await self.inner.rate_limiter.aacquire(blocking=True)
        managed = self._managed("_agenerate")
        return await self.inner._agenerate(self.messages, stop=self.stop, **managed)

    def stream(self) -> Iterator[ChatGenerationChunk]:
        """Stream from the model; tokens are told to the run by whoever reads them."""
        if self.inner.rate_limiter:
            self.inner.rate_limiter.acquire(blocking=True)
        yield from self.inner._stream(self.messages, stop=self.stop, **self.options)

    async def astream(self) -> AsyncGenerator[ChatGenerationChunk, None]:
        """See `stream`."""
        if self.inner.rate_limiter:
            await self.inner.rate_limiter.aacquire(blocking=True)
        chunks = self.inner._astream(self.messages, stop=self.stop, **self.options)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    def _managed(self, method: str) -> dict[str, Any]:
        if not _takes_run_manager(type(self.inner), method):
            return dict(self.options)
        return {"run_manager": self.run_manager, **self.options}


def is_choices(given: object) -> TypeGuard[int]:
    """Tell whether a value is a number of answers."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def _takes_run_manager(kind: type, method: str) -> bool:
    return "run_manager" in inspect.signature(getattr(kind, method)).parameters
