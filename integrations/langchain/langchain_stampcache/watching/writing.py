"""What is written to a watched store: each write is announced, made by the store, and told."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from msgspec.structs import replace

from langchain_stampcache.watching.adding import Addition, Landed, ids_in, told_of
from langchain_stampcache.watching.chunks import ChunkForm
from langchain_stampcache.watching.embedder import Heard, HeardEmbeddings, Vector
from langchain_stampcache.watching.views import Keeping, Known
from stampcache.adapters import Change, Chunk, Flow, Step, Watch, as_bytes


class Writes:
    """The writes to one store; safe for threads and tasks."""

    def __init__(
        self,
        store: VectorStore,
        watch: Watch,
        form: ChunkForm,
        known: Known,
        embeddings: HeardEmbeddings | None,
    ) -> None:
        self._store = store
        self._watch = watch
        self._form = form
        self._known = known
        self._embeddings = embeddings
        self._embeds_ahead = embeddings is not None
        self._takes_ids: bool | None = True if known.numbered else None
        """Whether ids are those that are given; ``None`` where that was not seen yet."""

    @property
    def sees_vectors(self) -> bool:
        """Whether the vectors that the store embeds are seen."""
        return self._embeddings is not None

    # -- adding ------------------------------------------------------------------------------------

    def documents(
        self, documents: list[Document], args: Sequence[Any], options: dict[str, Any]
    ) -> Addition:
        """Return what a call of ``add_documents`` adds."""
        own = None if all(one.id is None for one in documents) else [one.id for one in documents]
        store = self._store
        return self._numbered(
            Addition(
                texts=[one.page_content for one in documents],
                metadatas=[one.metadata for one in documents],
                ids=own,
                items=documents,
                args=args,
                options=options,
                sync=store.add_documents,
                aio=store.aadd_documents,
            )
        )

    def texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None,
        args: Sequence[Any],
        options: dict[str, Any],
    ) -> Addition:
        """Return what a call of ``add_texts`` adds."""
        given, store = list(texts), self._store
        return self._numbered(
            Addition(
                texts=given,
                metadatas=metadatas or [{}] * len(given),
                ids=None,
                items=given,
                args=(metadatas, *args),
                options=options,
                sync=store.add_texts,
                aio=store.aadd_texts,
            )
        )

    def add(self, addition: Addition) -> list[str]:
        """Add, as the store does."""
        ahead = self._embeddings if self._embeds_ahead else None
        vectors = ahead.ahead(list(addition.texts)) if ahead is not None else []
        return self._watch.run(self._adding(addition, vectors))

    async def aadd(self, addition: Addition) -> list[str]:
        """See `add`."""
        ahead = self._embeddings if self._embeds_ahead else None
        vectors = await ahead.aahead(list(addition.texts)) if ahead is not None else []
        return await self._watch.arun(self._adding(addition, vectors))

    def _numbered(self, addition: Addition) -> Addition:
        """Give ids where the store would give random ones, so that they are known beforehand."""
        given = addition.given_ids()
        if given is not None:
            return replace(addition, ids=given)
        if addition.ids is not None or not self._known.numbered or addition.is_bound_by_place:
            return addition
        ids = [str(uuid.uuid4()) for _ in addition.texts]
        return replace(addition, ids=ids, options={**addition.options, "ids": ids})

    def _adding(self, addition: Addition, vectors: Sequence[Vector]) -> Flow[list[str]]:
        heard = Heard(addition.texts, vectors)
        ids = addition.known_ids if self._takes_ids else None
        seen = [as_bytes(vector) for vector in vectors]
        planned = [] if ids is None else addition.chunks(self._form, ids, seen)

        def told(landed: Landed) -> Change | None:
            self._learn(addition, landed, heard)
            given = heard.vectors_of(addition.texts)
            return told_of(self._form, self._known.keeping, addition, landed, given)

        landed = yield from self._watch.writing(
            self._landing(addition, heard), told=told, ids=ids, planned=planned
        )
        return landed.result

    def _landing(self, addition: Addition, heard: Heard) -> Step[Landed]:
        """Return the step that adds, and then looks what is there if that may be something else."""
        call = addition.step

        def sync() -> Landed:
            with self._hearing(heard):
                result = call.sync()
            look = self._looking(result)
            return Landed(result, None if look is None else look.sync())

        async def aio() -> Landed:
            with self._hearing(heard):
                result = await call.aio()
            look = self._looking(result)
            return Landed(result, None if look is None else await look.aio())

        return Step(sync=sync, aio=aio)

    def _looking(self, result: object) -> Step[Sequence[Chunk] | None] | None:
        look, ids = self._known.view.look, ids_in(result)
        if self._known.keeping is Keeping.GIVEN or look is None or ids is None:
            return None
        step = look(ids)

        def sync() -> Sequence[Chunk] | None:
            try:
                return step.sync()
            except Exception as error:  # noqa: BLE001 - counted; the write was made, and is told of
                self._watch.core.counters.note("watch.unread", error)
                return None

        async def aio() -> Sequence[Chunk] | None:
            try:
                return await step.aio()
            except Exception as error:  # noqa: BLE001 - as above
                self._watch.core.counters.note("watch.unread", error)
                return None

        return Step(sync=sync, aio=aio)

    def _learn(self, addition: Addition, landed: Landed, heard: Heard) -> None:
        """Learn how the store goes about ids and embedding, for its next writes."""
        known = addition.known_ids
        if known is not None and known:
            self._takes_ids = self._takes_ids is not False and landed.result == list(known)
        if self._embeds_ahead and heard.is_otherwise:
            self._embeds_ahead = False
            self._watch.core.counters.event("watch.embeds_otherwise")

    def _hearing(self, heard: Heard) -> AbstractContextManager[None]:
        return nullcontext() if self._embeddings is None else self._embeddings.hearing(heard)

    # -- deleting ----------------------------------------------------------------------------------

    def delete(self, args: Sequence[Any], options: Mapping[str, Any]) -> bool | None:
        """Delete, as the store does."""
        return self._watch.run(self._deleting(args, options))

    async def adelete(self, args: Sequence[Any], options: Mapping[str, Any]) -> bool | None:
        """See `delete`."""
        return await self._watch.arun(self._deleting(args, options))

    def _deleting(self, args: Sequence[Any], options: Mapping[str, Any]) -> Flow[bool | None]:
        store = self._store
        ids = _deleted(args, options) if self._takes_ids is not False else None

        def told(done: bool | None) -> Change | None:
            return None if ids is None or done is False else Change(removed=ids)

        write = Step[bool | None](
            sync=lambda: store.delete(*args, **options),
            aio=lambda: store.adelete(*args, **options),
        )
        return (yield from self._watch.writing(write, told=told, ids=ids))


def _deleted(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the ids that a call deletes; ``None`` where it says it in another way."""
    if len(args) > 1 or options.keys() - {"ids"} or (args and options):
        return None
    ids = args[0] if args else options.get("ids")
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not ids:
        return None
    return tuple(ids) if all(isinstance(one, str) for one in ids) else None
