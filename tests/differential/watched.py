"""The LangChain application over a watched index that processes share."""

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore

from langchain_stampcache import CachedChain, watch
from stampcache import Cache
from tests.differential.apps import PROMPTS, DigestChat, Halt, Reply, with_texts
from tests.differential.index import IndexFile, Row, embed
from tests.differential.process import Write
from tests.differential.world import CORPUS, Chunk, K, State


class WordEmbeddings(Embeddings):
    """Embeds as the world does."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class FileStore(VectorStore):
    """A vector store on an `IndexFile`."""

    def __init__(self, file: IndexFile) -> None:
        self.file = file
        self._embedding = WordEmbeddings()

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        given = list(texts)
        names = ids or [secrets.token_hex(4) for _ in given]
        rows = [Row(*row) for row in zip(names, given, metadatas or [], strict=True)]
        self.file.add(rows, self.embeddings.embed_documents(given))
        return names

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        self.file.delete(ids or [])
        return True

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        return [one for one in self.listing() if one.id in ids]

    def listing(self) -> list[Document]:
        return [_document(row) for row in self.file.rows()]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: dict[str, str] | None = None,  # noqa: A002 - as stores call it
        **kwargs: Any,
    ) -> list[Document]:
        vector = self.embeddings.embed_query(query)
        return [_document(row) for row in self.file.search(vector, k, (filter or {}).get("source"))]

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _document(row: Row) -> Document:
    return Document(row.text, id=row.id, metadata=row.metadata)


class LangChainIndex:
    """The watched store of one process; it is written to by the ways that apps have."""

    def __init__(self, cache: Cache, path: Path, halt: Halt | None) -> None:
        self.file = IndexFile(path, halt)
        self.plain = FileStore(IndexFile(path))
        inner = FileStore(self.file)
        listing = inner.listing if path.stem.endswith(("1", "3", "5", "7", "9")) else None
        self.store = watch(inner, cache=cache, corpus=CORPUS, metric="cosine", listing=listing)
        self._records = path.with_suffix(".records")

    def write(self, asked: Write) -> None:
        """Ingest or delete a document."""
        documents = [_written(one, asked) for one in asked.chunks]
        old = self.file.ids_of(asked.source)
        match asked.way:
            case "index":
                self._index(asked.source, documents)
            case "replace":
                if old:
                    self.store.delete(old)
                if documents:
                    self.store.add_documents(documents)
            case "upsert":
                if documents:
                    self.store.add_documents(documents)
                gone = [one for one in old if one not in {each.id for each in documents}]
                if gone:
                    self.store.delete(gone)
            case "anew":
                if old:
                    self.store.delete(ids=old)
                if documents:
                    texts = [one.page_content for one in documents]
                    self.store.add_texts(texts, [one.metadata for one in documents])

    def _index(self, source: str, documents: list[Document]) -> None:
        """Ingest by LangChain's index(); who dies of it leaves records that are older than the index."""
        records = InMemoryRecordManager("world")
        if self._records.exists():
            records.records = msgspec.json.decode(self._records.read_bytes())
        if documents:
            index(
                documents,
                records,
                self.store,
                cleanup="incremental",
                source_id_key="source",
                key_encoder="blake2b",
            )
        else:
            keys = records.list_keys(group_ids=[source])
            self.store.delete(keys)
            records.delete_keys(keys)
        self._records.write_bytes(msgspec.json.encode(records.records))


def _written(chunk: Chunk, asked: Write) -> Document:
    text = chunk.text.replace(" ", "  ") if asked.spaced else chunk.text
    metadata = {"source": chunk.source, "updated_at": asked.state.now}
    return Document(text, id=chunk.id, metadata=metadata)


def shown(found: list[Document]) -> list[Document]:
    """Return documents as the prompt shows them: with their source, and white space says nothing."""
    return [
        Document(f"{one.metadata['source']}: {' '.join(one.page_content.split())}") for one in found
    ]


def backwards(found: list[Document]) -> list[Document]:
    return found[::-1]


def also(question: str) -> str:
    return f"{question} and lunch"


class Both(BaseRetriever):
    """Finds what two retrievers find."""

    first: BaseRetriever
    second: BaseRetriever

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [*self.first.invoke(query), *self.second.invoke(query)]


def retriever_of(store: VectorStore, search: str) -> Runnable[Any, list[Document]]:
    """Return what finds documents; by which of the ways that there are."""
    flat = store.as_retriever(search_kwargs={"k": K})
    match search:
        case "all":
            return store.as_retriever(search_kwargs={"k": 50})
        case "filtered":
            return store.as_retriever(search_kwargs={"k": K, "filter": {"source": "a.md"}})
        case "two":
            return Both(first=flat, second=store.as_retriever(search_kwargs={"k": 3}))
        case "ranked":
            return RunnableLambda(_question) | flat | RunnableLambda(backwards)
        case "other":
            return RunnableLambda(_question) | RunnableLambda(also) | flat
    return flat


def _question(given: dict[str, Any]) -> str:
    return str(given["input"])


def with_shown(inputs: dict[str, Any]) -> dict[str, str]:
    return with_texts({**inputs, "context": shown(inputs["context"])})


class WatchedChainApp:
    """A `CachedChain` over a watched index."""

    def __init__(
        self, cache: Cache, index: LangChainIndex, state: State, halt: Halt | None = None
    ) -> None:
        self.state = state
        chat = DigestChat(model=state.model)
        chat._halt = halt
        prompt = ChatPromptTemplate.from_template(PROMPTS[state.prompt])
        self._answer: Any = with_shown | prompt | chat | StrOutputParser()
        self._plain = retriever_of(index.plain, state.search)
        self._chain = CachedChain(
            retriever=retriever_of(index.store, state.search),
            answer=self._answer,
            cache=cache,
            grounding="watch",
        )

    def ask(self, question: str) -> Reply:
        told = self._chain.invoke({"input": question})
        fields = told["cache"]
        level = fields["level"] if fields["hit"] else ""
        cited = [document.page_content for document in shown(told["context"])]
        return Reply(str(told["answer"]), cited, level, fields["reason"])

    def uncached(self, question: str) -> Reply:
        plain: Any = self._plain
        asked = {"input": question} if self.state.search in ("ranked", "other") else question
        found = plain.invoke(asked)
        text = self._answer.invoke({"input": question, "context": found})
        return Reply(str(text), [document.page_content for document in shown(found)])
