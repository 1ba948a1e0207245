"""What a model that stands before another one tells of it: names, parameters, tokens, fields."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from langchain_stampcache.chat.caller import without_caller

_TAKEN_OVER = (
    "callbacks", "custom_get_token_ids", "disable_streaming", "name", "output_version", "profile",
    "tags", "verbose",
)  # fmt: skip
_UNSET = object()


class InnerFace(BaseChatModel):
    """Looks like its inner model, to LangChain, to traces and to who reads its attributes."""

    inner: BaseChatModel

    @staticmethod
    def taken_over(inner: BaseChatModel) -> dict[str, Any]:
        """Return the fields that LangChain reads of the outer model, as the inner one has them."""
        taken = {name: getattr(inner, name) for name in _TAKEN_OVER}
        metadata = None if inner.metadata is None else dict(inner.metadata)
        return {**taken, "metadata": metadata}

    # -- what traces are told -------------------------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.inner._identifying_params)

    @property
    def _serialized(self) -> dict[str, Any]:
        return self.inner._serialized

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """Return the name of the inner model."""
        return self.inner.get_name(suffix, name=name or self.name)

    def asdict(self) -> dict[str, Any]:
        """Return the inner model as LangChain tells it."""
        return self.inner.asdict()

    def _dict_for_compat(self) -> dict[str, Any]:
        return self.inner._dict_for_compat()

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **without_caller(kwargs))

    def _get_ls_params_with_defaults(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> LangSmithParams:
        return self.inner._get_ls_params_with_defaults(stop=stop, **without_caller(kwargs))

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return self.inner._get_invocation_params(stop=stop, **without_caller(kwargs))

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None], /) -> dict[str, Any]:
        return self.inner._combine_llm_outputs(llm_outputs)

    # -- how it is called -----------------------------------------------------------------------------

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        return self.inner._should_stream(
            async_api=async_api, run_manager=run_manager, **without_caller(kwargs)
        )

    def _should_use_protocol_streaming(
        self, *, async_api: bool, run_manager: Any = None, **kwargs: Any
    ) -> bool:
        kind = type(self.inner)
        streams = kind._stream is not BaseChatModel._stream or (
            async_api and kind._astream is not BaseChatModel._astream
        )
        return streams and self.inner._should_use_protocol_streaming(
            async_api=async_api, run_manager=run_manager, **without_caller(kwargs)
        )

    # -- tokens ---------------------------------------------------------------------------------------

    def get_token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text, by the inner model."""
        return self.inner.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """Return how many tokens a text has, by the inner model."""
        return self.inner.get_num_tokens(text)

    def get_num_tokens_from_messages(
        self,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
        **kwargs: Any,
    ) -> int:
        """Return how many tokens messages have, by the inner model."""
        return self.inner.get_num_tokens_from_messages(messages, tools, **kwargs)

    # -- fields ---------------------------------------------------------------------------------------

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of the inner model that this one does not have itself."""
            try:
                return super().__getattr__(name)
            except AttributeError:
                inner = self.__dict__.get("inner")
                if inner is None or name.startswith("_"):
                    raise
                return getattr(inner, name)

        def __setattr__(self, name: str, value: Any) -> None:
            """Set a field of the inner model; one that LangChain reads of the outer one, in both."""
            inner = self.__dict__.get("inner")
            own = name.startswith("_") or name in type(self).model_fields
            theirs = inner is not None and (name in (*_TAKEN_OVER, "metadata") or not own)
            if theirs and getattr(inner, name, _UNSET) is not value:
                setattr(inner, name, value)
            if own or inner is None:
                super().__setattr__(name, value)
