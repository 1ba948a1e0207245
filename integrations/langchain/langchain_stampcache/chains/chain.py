"""`CachedChain`: retrieval and answer as one Runnable, whose answers are kept while they hold."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable

from langchain_stampcache.caller import Caller, caller_of
from langchain_stampcache.chains.building import Setup, around, in_parts
from langchain_stampcache.chains.opaque import Form
from langchain_stampcache.chains.retrieving import Retriever
from langchain_stampcache.chains.serving import Serving
from langchain_stampcache.chains.streaming import ChainStreaming, awithin, within
from langchain_stampcache.chains.turn import Turn
from stampcache import AsyncCache, Cache, Manifest, Stamps
from stampcache.adapters import Explanation, Grounding, Sweep, Validity, VersionOf

Given = TypeVar("Given")
Result = TypeVar("Result")
Entries: TypeAlias = dict[str, Any]
Condense: TypeAlias = Runnable[Any, Any] | Callable[[Entries], str]


class CachedChain(Runnable[Given, Result]):
    """Retrieves and answers; what was answered before and still holds comes from the cache.

    Takes ``{"input": question, ...}`` and returns ``{"input", "context", "answer", "cache"}``;
    ``cache`` tells hit, level, similarity, reason, entry_id and saved. `around` takes and returns what
    its chain does. Streams give chunks that add up to the same. Errors of the app's own parts reach the
    caller unchanged, and nothing is stored; failures of the cache are counted and logged, and the
    answer is made without it.

    Who asks is said by `stampcache.scope`, else by ``metadata`` or ``configurable`` of the config:
    ``tenant``, ``namespace`` and ``audience``; what one call is to do otherwise by the scope or by a
    mapping under ``stampcache`` there: ``no_cache``, ``no_store``, ``ttl_s``, ``variety``, ``kind``.
    """

    def __init__(
        self: "CachedChain[Entries, Entries]",
        *,
        retriever: Retriever | None,
        answer: Runnable[Any, Any] | Callable[[Entries], Any],
        cache: Cache | AsyncCache,
        grounding: Grounding = "recheck",
        version_of: VersionOf = "sources",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        condense: Condense | None = None,
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
                ``"watch"`` retrieves on a miss only, too; every index that the retriever reads from is
                a watched one (see `langchain_stampcache.watch`), which tells what was written to it.
                White space and metadata that does not last are no change there: do not prompt with it.
                ``"none"`` retrieves on a miss only, for documents that do not change: time ends the
                life of an answer.
            version_of: under ``"version"``, what is compared: ``"sources"`` are those that an
                answer cites (a new document is not noticed), ``"corpus"`` is any write to it.
            corpus: the name of the body of documents, for ``cache.invalidate(corpus=...)``; under
                ``"watch"`` it is that of the watched index.
            stamps: versions that cannot be seen from here. Under ``"version"`` and ``"none"`` that
                of the index must be known.
            manifest: of the index, or the path of the file that ingestion wrote: gives ``corpus``
                and the stamp of the index, and refuses another tokenizer than the one in use.
            kind: of data, which says how long answers live (`stampcache.KINDS`).
            allow_stale: serve an answer that no longer holds rather than make a new one; ``cache``
                then says ``hit: False``, and why.
            condense: makes a question that stands alone of the inputs, where there is a history. That
                one is looked up, retrieved for and answered, with an empty history; the output has
                it under ``question``. Without it, the history is part of the question.
            name: of its runs in traces.
            version: stands for the parts of the chain that cannot be identified, and for its index;
                change it with them.

        Raises:
            ConfigError: a part cannot be identified and there is no ``version``; the version of the
                index must be known and is not; versions contradict each other; a part of what is to be
                watched is not; another setting is wrong.
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
        setup = Setup(cache.core, given, manifest, _runnable(condense))
        self._set(in_parts(setup, retriever, coerce_to_runnable(answer)), name, Entries, Entries)

    @classmethod
    def around(
        cls,
        chain: Runnable[Any, Any] | Callable[[Any], Any],
        *,
        cache: Cache | AsyncCache,
        grounding: Grounding = "version",
        version_of: VersionOf = "sources",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        retriever: Retriever | None = None,
        question_key: str = "",
        with_fields: bool = False,
        condense: Condense | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> "CachedChain[Any, Any]":
        """Put a cache around a chain that is not looked into.

        It is asked with what ``chain`` takes: the question as a text, or a mapping with it under
        ``input``, ``question`` or ``question_key``; further entries are part of what is asked. It returns
        what ``chain`` returns: of a mapping with the fields under ``cache``, of a message with
        ``response_metadata["cache"]``. A text and a pydantic object have no place for the fields: see
        ``with_fields`` and `explain`.

        An answer was made from the documents under ``context`` of the output, else from those that
        retrievers found in its very run. Where neither is known it is not stored, unless any write to a
        named corpus makes it stale (``version_of="corpus"``, ``corpus=``), or time alone (``"none"``).

        Args:
            chain: a Runnable, a graph or a function.
            cache: an open cache.
            grounding: ``"version"``, ``"watch"`` or ``"none"``; ``"recheck"`` with ``retriever=`` only.
                Under ``"watch"`` the watched index must be all that the chain reads from. Any write to
                it makes an answer stale of which it is not seen how it was searched for.
            version_of: see `CachedChain`.
            corpus: see `CachedChain`; under ``"watch"`` that of the watched index, where the index is not
                seen from here.
            stamps: see `CachedChain`. Where no version of the index is known, answers are found again
                by this very object only, and not after a restart.
            manifest: see `CachedChain`.
            kind: see `CachedChain`.
            allow_stale: see `CachedChain`.
            retriever: the one that ``chain`` uses, for ``"recheck"``: it is asked for each question.
            question_key: under which key of the input the question is.
            with_fields: return ``{"answer": ..., "cache": fields}`` where the output is no mapping.
            condense: see `CachedChain`; the chain gets the question that stands alone in the place of
                the other one.
            name: of its runs in traces.
            version: stands for what cannot be identified, such as a graph or a client, and for the
                index; change it with them.

        Raises:
            ConfigError: see `CachedChain`.
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
        form = Form(
            question_key=question_key, with_fields=with_fields, condenses=condense is not None
        )
        runnable = coerce_to_runnable(chain)
        serving = around(
            Setup(cache.core, given, manifest, _runnable(condense)), runnable, form, retriever
        )
        made: CachedChain[Any, Any] = cls.__new__(cls)
        made._set(serving, name, runnable, Entries if with_fields else runnable)
        return made

    def _set(self, serving: Serving, name: str | None, takes: Any, gives: Any) -> None:
        self.name = name
        self._serving = serving
        self._streaming = ChainStreaming(serving)
        self._takes = takes
        self._gives = gives

    @property
    def InputType(self) -> Any:
        """What it takes."""
        return self._takes.InputType if isinstance(self._takes, Runnable) else self._takes

    @property
    def OutputType(self) -> Any:
        """What it returns."""
        return self._gives.OutputType if isinstance(self._gives, Runnable) else self._gives

    def invoke(
        self,
        input: Given,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Result:
        """Return the answer with its documents and the fields of the cache."""
        _refuse(kwargs)

        def call(
            inputs: Given,
            run_manager: CallbackManagerForChainRun,  # noqa: ARG001 - how the framework calls it
            config: RunnableConfig,
        ) -> Result:
            turn = self._turn(inputs, config, caller_of(config))
            answer: Result = self._serving.front.run(self._serving.serve(turn))
            return answer

        return self._call_with_config(call, input, config)

    async def ainvoke(
        self,
        input: Given,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Result:
        """See `invoke`; the event loop is never blocked by the cache."""
        _refuse(kwargs)

        async def call(
            inputs: Given,
            run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG001 - as above
            config: RunnableConfig,
        ) -> Result:
            turn = self._turn(inputs, config, caller_of(config))
            answer: Result = await self._serving.front.arun(self._serving.serve(turn))
            return answer

        return await self._acall_with_config(call, input, config)

    def stream(
        self,
        input: Given,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Result]:
        """Yield chunks that add up to what `invoke` returns; on a miss as the chain makes them.

        Who asks is taken now, and not where the chunks are read.
        """
        _refuse(kwargs)
        caller = caller_of(ensure_config(config))

        def chunks(
            inputs: Iterator[Given],
            run_manager: CallbackManagerForChainRun,  # noqa: ARG001 - how the framework calls it
            config: RunnableConfig,
        ) -> Iterator[Result]:
            for one in inputs:
                yield from within(caller, self._streaming.stream(self._turn(one, config, caller)))

        return self._transform_stream_with_config(iter([input]), chunks, config)

    def astream(
        self,
        input: Given,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Result]:
        """See `stream`."""
        _refuse(kwargs)
        caller = caller_of(ensure_config(config))

        async def chunks(
            inputs: AsyncIterator[Given],
            run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG001 - as above
            config: RunnableConfig,
        ) -> AsyncIterator[Result]:
            async for one in inputs:
                made = self._streaming.astream(self._turn(one, config, caller))
                async with aclosing(awithin(caller, made)) as given:
                    async for chunk in given:
                        yield chunk

        return self._atransform_stream_with_config(_one(input), chunks, config)

    def sweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """Retrieve again for a random sample of watched answers, and report which ones drifted.

        Those are stale from then on. With more of them than ``tolerate`` nothing of the corpus is served
        until it was resynced. It looks at answers to a question alone: no history, no other inputs,
        nothing configured. In a scope it looks at the answers of that scope only: where it depends on who
        asks what is retrieved, call it in each.

        Args:
            sample: so many answers at most.
            tolerate: the share that may have drifted, as in an approximate index.

        Raises:
            ConfigError: nothing is watched, a chain that is not looked into was given no ``retriever``,
                or a number is out of range.
        """
        return self._serving.front.run(self._serving.sweep(sample=sample, tolerate=tolerate))

    async def asweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `sweep`; the event loop is never blocked by the cache."""
        return await self._serving.front.arun(self._serving.sweep(sample=sample, tolerate=tolerate))

    def explain(self, input: Given, config: RunnableConfig | None = None) -> Explanation:  # noqa: A002 - as in invoke
        """Tell which check of the cache would decide about these inputs now, and why.

        It condenses and retrieves as `invoke` would; nothing is answered, served or counted.
        """
        return self._serving.front.run(self._serving.explain(self._asked(input, config)))

    async def aexplain(self, input: Given, config: RunnableConfig | None = None) -> Explanation:  # noqa: A002 - as in invoke
        """See `explain`."""
        return await self._serving.front.arun(self._serving.explain(self._asked(input, config)))

    def _asked(self, given: Given, config: RunnableConfig | None) -> Turn:
        ensured = ensure_config(config)
        return self._turn(given, ensured, caller_of(ensured))

    def _turn(self, given: Given, config: RunnableConfig, caller: Caller) -> Turn:
        return self._serving.parts.begin(given, config, caller)


async def _one(given: Given) -> AsyncIterator[Given]:
    yield given


def _runnable(condense: Condense | None) -> Runnable[Any, Any] | None:
    return None if condense is None else coerce_to_runnable(condense)


def _refuse(options: Entries) -> None:
    if options:
        names = ", ".join(sorted(options))
        raise TypeError(f"CachedChain takes no call options ({names}); bind them to its parts.")
