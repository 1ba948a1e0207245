"""`CachedChain`: retrieval and answer as one Runnable, whose answers are kept while they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable

from langchain_stampcache.requests import Requests
from langchain_stampcache.retrieving import Retriever, Retrieving
from langchain_stampcache.serving import ChainParts, Serving
from langchain_stampcache.turn import Turn
from stampcache import AsyncCache, Cache, ConfigError, Manifest, Stamps
from stampcache.adapters import Explanation, Grounding, Validity, VersionOf, checked

Output: TypeAlias = dict[str, Any]


class CachedChain(Runnable[dict[str, Any], dict[str, Any]]):
    """Retrieves and answers; what was answered before and still holds comes from the cache.

    Takes ``{"input": question, ...}`` and returns ``{"input", "context", "answer", "cache"}``;
    ``cache`` tells hit, level, similarity, reason, entry_id and saved. Errors of the retriever and
    of the answer chain reach the caller unchanged; failures of the cache are counted and logged,
    and the answer is made without it.
    """

    def __init__(
        self,
        *,
        retriever: Retriever | None,
        answer: Runnable[Any, Any] | Callable[[dict[str, Any]], Any],
        cache: Cache | AsyncCache,
        grounding: Grounding = "recheck",
        version_of: VersionOf = "sources",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        """Put a cache before a retriever and an answer chain.

        Args:
            retriever: a retriever or a plain function is asked with the question; any other
                Runnable with the inputs, as in ``create_retrieval_chain``. ``None``: an app without
                documents.
            answer: a Runnable or a function that gets the inputs, and the documents as ``context``;
                it returns a text, a message, a pydantic object, or a mapping with ``answer``.
            cache: an open cache.
            grounding: ``"recheck"`` retrieves for each question and serves an answer only while it
                retrieves the chunks that the answer was made from. ``"version"`` retrieves on a
                miss only; ``cache.invalidate(...)`` makes the answers stale that a change touches.
                ``"none"`` retrieves on a miss only, for documents that do not change: time ends the
                life of an answer.
            version_of: under ``"version"``, what is compared: ``"sources"`` are those that an
                answer cites (a new document is not noticed), ``"corpus"`` is any write to it.
            corpus: the name of the body of documents, for ``cache.invalidate(corpus=...)``.
            stamps: versions that cannot be seen from here. Under ``"version"`` and ``"none"`` that
                of the index must be known.
            manifest: of the index, or the path of the file that ingestion wrote: gives ``corpus``
                and the stamp of the index, and refuses another tokenizer than the one in use.
            kind: of data, which says how long answers live (`stampcache.KINDS`).
            allow_stale: serve an answer that no longer holds rather than make a new one; ``cache``
                then says ``hit: False``, and why.
            name: of its runs in traces.
            version: stands for the parts of the chain that cannot be identified, and for its index;
                change it with them.

        Raises:
            ConfigError: a part cannot be identified and there is no ``version``; the version of the
                index must be known and is not; versions contradict each other; another setting is
                wrong.
        """
        given = Validity(
            grounding=grounding,
            version_of=version_of,
            corpus=corpus,
            kind=kind,
            allow_stale=allow_stale,
            stamps=stamps or Stamps(),
            version=version,
        )
        core = cache.core
        validity = checked(core, given, manifest=manifest, has_index=retriever is not None)
        self.name = name
        runnable = coerce_to_runnable(answer)
        retrieving = Retrieving(retriever)
        requests = Requests(runnable, retrieving, validity, core.intake.stamps)
        requests.check()
        self._serving = Serving(
            core,
            ChainParts(
                retrieving=retrieving, answer=runnable, requests=requests, validity=validity
            ),
        )

    @classmethod
    def around(
        cls,
        chain: Runnable[Any, Any],  # noqa: ARG003 - the signature is fixed, its time is to come
        *,
        cache: Cache | AsyncCache,  # noqa: ARG003 - as above
        grounding: str = "version",
    ) -> NoReturn:
        """Refuse: opaque chains are not supported in this version.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"CachedChain.around(grounding={grounding!r}) is not built yet; give the parts, as in"
            " CachedChain(retriever=..., answer=..., cache=...)."
        )

    def invoke(
        self,
        input: Output,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Output:
        """Return the answer with its documents and the fields of the cache."""
        _refuse(kwargs)

        def call(
            inputs: Output,
            run_manager: CallbackManagerForChainRun,  # noqa: ARG001 - how the framework calls it
            config: RunnableConfig,
        ) -> Output:
            return self._serving.front.run(self._serving.serve(Turn(inputs, config)))

        return self._call_with_config(call, input, config)

    async def ainvoke(
        self,
        input: Output,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Output:
        """See `invoke`; the event loop is never blocked by the cache."""
        _refuse(kwargs)

        async def call(
            inputs: Output,
            run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG001 - as above
            config: RunnableConfig,
        ) -> Output:
            return await self._serving.front.arun(self._serving.serve(Turn(inputs, config)))

        return await self._acall_with_config(call, input, config)

    def explain(self, input: Output, config: RunnableConfig | None = None) -> Explanation:  # noqa: A002 - as in invoke
        """Tell which check of the cache would decide about these inputs now, and why.

        It retrieves as `invoke` would; nothing is made, served or counted.
        """
        return self._serving.front.run(self._serving.explain(Turn(input, ensure_config(config))))

    async def aexplain(self, input: Output, config: RunnableConfig | None = None) -> Explanation:  # noqa: A002 - as in invoke
        """See `explain`."""
        return await self._serving.front.arun(
            self._serving.explain(Turn(input, ensure_config(config)))
        )


def _refuse(options: dict[str, Any]) -> None:
    if options:
        names = ", ".join(sorted(options))
        raise TypeError(f"CachedChain takes no call options ({names}); bind them to its parts.")
