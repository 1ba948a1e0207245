"""`CachedChatModel`: a chat model behind which a cache is asked first, however the model is called."""

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, Literal, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import AnyConfigurableField
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr

from langchain_stampcache.chat.binding import ConfigurableCachedModel, with_model_cached
from langchain_stampcache.chat.call import ChatCall
from langchain_stampcache.chat.caller import called_by, with_caller, without_caller
from langchain_stampcache.chat.face import InnerFace
from langchain_stampcache.chat.requests import ChatRequests
from langchain_stampcache.chat.serving import ChatServing
from stampcache import AsyncCache, Cache, ConfigError, Stamps
from stampcache.adapters import Explanation


class CachedChatModel(InnerFace):
    """Calls its inner model, unless the cache has the answer; it is used like that model.

    ``invoke``, ``stream``, ``batch``, their async forms, events, bound tools and structured output all
    go through one cache, and fill it for each other. Callbacks, traces and tokens are those of the inner
    model. A hit has no tokens used, and in ``response_metadata["cache"]`` what it saved; a miss says
    there why it was one. Failures of the inner model reach the caller unchanged; failures of the cache
    are counted and logged, and the model is called.

    Neither the inner model's own ``cache=`` nor the global cache is asked.
    """

    answers: Cache = Field(exclude=True, repr=False)
    """The cache, for `stats`, `invalidate` and so on; ``cache`` is LangChain's field, and ``False``."""

    version: str | None = None
    kind: str = Field(default="", exclude=True)
    stamps: Stamps = Field(default_factory=Stamps, exclude=True)

    _serving: ChatServing = PrivateAttr()

    def __init__(
        self,
        *,
        inner: BaseChatModel,
        cache: Cache | AsyncCache,
        kind: str = "",
        stamps: Stamps | None = None,
        version: str | None = None,
    ) -> None:
        """Put a cache before a chat model.

        The model's callbacks, tags, metadata, ``verbose`` and ``output_version`` are taken over now;
        everything else is read from it at each call.

        Args:
            inner: the model that answers. What it is set to is part of each key.
            cache: an open cache.
            kind: of data, which says how long answers live (`stampcache.KINDS`).
            stamps: versions that cannot be seen from here: of the weights behind a name, for example.
            version: stands for a part of the model that cannot be identified; change it with that.

        Raises:
            ConfigError: the model cannot be identified and there is no ``version``, or an argument is
                of another type.
        """
        if not isinstance(inner, BaseChatModel):
            raise ConfigError(f"inner= takes a chat model of LangChain, not {inner!r}.")
        if isinstance(inner, CachedChatModel):
            raise ConfigError("inner= is behind a cache already; give the model itself.")
        if not isinstance(cache, Cache | AsyncCache):
            raise ConfigError(f"cache= takes an open cache, not {cache!r}; see open_cache(...).")
        answers = cache.sync if isinstance(cache, AsyncCache) else cache
        answers.core.parts.terms.rules.lifetime(kind)
        given = stamps or Stamps()
        requests = ChatRequests(answers.core, version=version, stamps=given, kind=kind)
        requests.check(inner)
        own: dict[str, Any] = {
            "answers": answers,
            "kind": kind,
            "stamps": given,
            "version": version,
        }
        super().__init__(inner=inner, cache=False, **own, **InnerFace.taken_over(inner))
        self._serving = ChatServing(answers.core, requests)

    # -- calls: who asks is read where the config of the call is at hand ------------------------------

    def invoke(
        self,
        input: LanguageModelInput,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the model's message."""
        return super().invoke(input, config, stop=stop, **with_caller(kwargs, config))

    async def ainvoke(
        self,
        input: LanguageModelInput,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """See `invoke`."""
        return await super().ainvoke(input, config, stop=stop, **with_caller(kwargs, config))

    def stream(
        self,
        input: LanguageModelInput,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        """Return the model's message in chunks; a hit comes in chunks, too."""
        return super().stream(input, config, stop=stop, **with_caller(kwargs, config))

    def astream(
        self,
        input: LanguageModelInput,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        """See `stream`."""
        return super().astream(input, config, stop=stop, **with_caller(kwargs, config))

    def _chat_model_stream_v3(
        self,
        input: Any,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        return super()._chat_model_stream_v3(input, config, **with_caller(kwargs, config))

    async def _achat_model_stream_v3(
        self,
        input: Any,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        return await super()._achat_model_stream_v3(input, config, **with_caller(kwargs, config))

    def explain(
        self,
        input: LanguageModelInput,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Tell which check of the cache would decide about this call now; nothing is made or counted."""
        messages = self._convert_input(input).to_messages()
        call = self._call(messages, stop, None, with_caller(kwargs, config))
        return self._serving.front.run(self._serving.explain(call))

    # -- what LangChain runs inside of a call ---------------------------------------------------------

    def _generate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = with_caller(kwargs, None, run_manager)
        return super()._generate_with_cache(messages, stop, run_manager, **asked)

    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = with_caller(kwargs, None, run_manager)
        return await super()._agenerate_with_cache(messages, stop, run_manager, **asked)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, run_manager, kwargs)
        return self._serving.front.run(self._serving.serve(call))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, run_manager, kwargs)
        return await self._serving.front.arun(self._serving.serve(call))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call = self._call(messages, stop, run_manager, kwargs)
        with closing(self._serving.stream(call)) as chunks:
            for chunk in chunks:
                if run_manager:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = self._call(messages, stop, run_manager, kwargs)
        async with aclosing(self._serving.astream(call)) as chunks:
            async for chunk in chunks:
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        kwargs: dict[str, Any],
    ) -> ChatCall:
        asked = with_caller(kwargs, None, run_manager)
        return ChatCall(
            inner=self.inner,
            messages=messages,
            stop=stop,
            options=without_caller(asked),
            called=called_by(asked),
            run_manager=run_manager,
        )

    # -- what the inner model makes of itself ---------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | Literal["auto", "any"] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return what the inner model binds, cached."""
        chosen: dict[str, Any] = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self._cached(self.inner.bind_tools(tools, **chosen, **kwargs))

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        include_raw: bool = False,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return what the inner model makes of the schema, cached."""
        built = self.inner.with_structured_output(
            cast(Any, schema), include_raw=include_raw, **kwargs
        )
        return self._cached(built)

    def configurable_fields(self, **kwargs: AnyConfigurableField) -> RunnableSerializable[Any, Any]:
        """Return itself with fields of the inner model that the config of a call may set."""
        of_inner = self.inner.configurable_fields(**kwargs)
        return ConfigurableCachedModel(
            default=self, fields=kwargs, of_inner=of_inner, around=self._around
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "CachedChatModel":
        """Return one like it, with its own inner model and the same cache."""
        inner = copy.deepcopy(self.inner, memo)
        return cast(CachedChatModel, self._around(inner))

    def _cached(self, built: Runnable[Any, Any]) -> Runnable[Any, Any]:
        cached = with_model_cached(built, self._around)
        if cached is built:
            self._serving.front.event("adapter.opaque_binding")
        return cached

    def _around(self, inner: BaseChatModel) -> BaseChatModel:
        """Return this for its inner model, and one like it for a model that was made of that."""
        if inner is self.inner:
            return self
        return CachedChatModel(
            inner=inner,
            cache=self.answers,
            kind=self.kind,
            stamps=self.stamps,
            version=self.version,
        )
