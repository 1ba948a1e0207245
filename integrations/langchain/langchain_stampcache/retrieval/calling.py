"""One call of a retriever behind a cache, as it would run without one."""

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import patch_config

CONFIG_OPTION = "stampcache_config"
"""The call option in which the config travels to where documents are made."""


class Call:
    """One call of the inner retriever, as it would run without a cache."""

    def __init__(self, inner: Runnable[Any, Any], query: str, options: dict[str, Any]) -> None:
        self.config: RunnableConfig = options.pop(CONFIG_OPTION, None) or ensure_config()
        self.options = options
        self._inner = inner
        self._query = query

    def retrieve(self, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        """Return what the inner retriever finds: inside of the proxy's run, where possible."""
        inner = self._inner
        if isinstance(inner, BaseRetriever) and _has_no_run_of_its_own(inner):
            options = self.options if inner._expects_other_args else {}
            return inner._get_relevant_documents(self._query, run_manager=run_manager, **options)
        config = patch_config(self.config, callbacks=run_manager.get_child())
        found: list[Document] = inner.invoke(self._query, config, **self.options)
        return found

    async def aretrieve(self, run_manager: AsyncCallbackManagerForRetrieverRun) -> list[Document]:
        """See `retrieve`."""
        inner = self._inner
        if isinstance(inner, BaseRetriever) and _has_no_run_of_its_own(inner):
            options = self.options if inner._expects_other_args else {}
            return await inner._aget_relevant_documents(
                self._query, run_manager=run_manager, **options
            )
        config = patch_config(self.config, callbacks=run_manager.get_child())
        found: list[Document] = await inner.ainvoke(self._query, config, **self.options)
        return found


def _has_no_run_of_its_own(inner: BaseRetriever) -> bool:
    """Tell whether the run of a retriever is the plain one, so that the proxy's stands for it."""
    kind = type(inner)
    plain = kind.invoke is BaseRetriever.invoke and kind.ainvoke is BaseRetriever.ainvoke
    return plain and inner._new_arg_supported
