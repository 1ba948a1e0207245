"""Which watched corpus an engine reads from; every part of it must read from that one.

Nobody tells the cache of what is written to an index that is not watched. So a part that reads from one,
or from what it holds itself, is refused when the wrapper is made, and named.
"""

from collections.abc import Iterable, Iterator, Mapping

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.graph_stores.types import GraphStore, PropertyGraphStore
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.objects import ObjectRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.tools.types import BaseTool
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.parts import Described, class_name, objects_behind
from llama_index_stampcache.watching.documents import WatchedDocumentStore
from llama_index_stampcache.watching.index import SeenIndex
from llama_index_stampcache.watching.store import WatchedVectorStore
from llama_index_stampcache.watching.stores import Scale
from stampcache import ConfigError
from stampcache.adapters import Core, Validity, Watch

_ELSE = 'or take grounding="recheck"'
_MAX_DEPTH = 24
_OURS = "llama_index_stampcache."
_TELL_TIME = (
    "EmbeddingRecencyPostprocessor",
    "FixedRecencyPostprocessor",
    "TimeWeightedPostprocessor",
)
# What they keep of the nodes depends on these nodes only; the others choose anew.
_KEEPING = frozenset({
    "llama_index.core.postprocessor.metadata_replacement.MetadataReplacementPostProcessor",
    "llama_index.core.postprocessor.node.KeywordNodePostprocessor",
    "llama_index.core.postprocessor.node.SimilarityPostprocessor",
})  # fmt: skip
# Of these it is known that they answer a question from what is retrieved for it, once.
_ASKING_ONCE = frozenset({
    "llama_index.core.chat_engine.condense_plus_context.CondensePlusContextChatEngine",
    "llama_index.core.chat_engine.context.ContextChatEngine",
    "llama_index.core.query_engine.citation_query_engine.CitationQueryEngine",
    "llama_index.core.query_engine.retriever_query_engine.RetrieverQueryEngine",
})  # fmt: skip


_UNSEEN = (BaseIndex, BasePydanticVectorStore, BaseDocumentStore, GraphStore, PropertyGraphStore)
_PARTS = (
    BaseChatEngine, BaseNodePostprocessor, BaseQueryEngine, BaseRetriever, BaseTool, StorageContext,
)  # fmt: skip


class Source(Struct, frozen=True, kw_only=True):
    """What an engine reads from: a corpus, and the metadata that does not count there.

    ``why`` says why its answers are not simply made from the k nearest chunks; empty where they are.
    ``scale`` turns the index's similarities into scores.
    """

    corpus: str
    volatile: frozenset[str] = frozenset()
    why: str = ""
    scale: Scale | None = None


def source_of(thing: object, core: Core) -> Source:
    """Return what an engine or a retriever reads from.

    Args:
        thing: the engine, chat engine or retriever.
        core: of the cache that answers for it, which must be the one that is told of writes.

    Raises:
        ConfigError: a part of it reads from what nobody watches, or from several corpora.
    """
    walk = _Walk(core)
    walk.look(thing, type(thing).__name__)
    if walk.source is None:
        raise ConfigError(
            f"{type(thing).__name__} reads from no watched index: call watch(...) on the index that it"
            f" reads from, and make it from that, {_ELSE}."
        )
    return replace(walk.source, why=walk.why)


def of_source(given: Validity, source: Source) -> Validity:
    """Return how answers are kept true with the corpus that is watched.

    Raises:
        ConfigError: another one was given.
    """
    if given.corpus not in ("", source.corpus):
        raise ConfigError(
            f"corpus= is {given.corpus!r}, and what is retrieved from is watched as"
            f" {source.corpus!r}; leave corpus= out, or give the same name to watch(...)."
        )
    return replace(given, corpus=source.corpus)


class _Walk:
    """One walk over the parts of an engine."""

    def __init__(self, core: Core) -> None:
        self.source: Source | None = None
        self.why = ""
        self._core = core
        self._first = ""
        self._seen: dict[int, bool] = {}

    def look(self, part: object, where: str, depth: int = 0) -> bool:
        """Tell whether a part reads from a watched index; refuse it where it reads from another."""
        if part is None:
            return False
        if depth > _MAX_DEPTH:
            raise ConfigError(_said(part, where, "is too deep inside to be looked into"))
        if id(part) not in self._seen:
            self._seen[id(part)] = False  # for one that leads back to itself
            self._seen[id(part)] = self._look(part, where, depth)
        return self._seen[id(part)]

    def _look(self, part: object, where: str, depth: int) -> bool:
        _check_kept(part, where)
        match part:
            case WatchedVectorStore():
                found = self._note(part.watched, part.writes.form.volatile, where)
                self.source = (
                    replace(self.source, scale=part.searches.scale) if self.source else None
                )
                return found
            case WatchedDocumentStore():
                return self._note(part.watched, frozenset(), where)
            case BaseIndex() if isinstance(part, SeenIndex):
                return self.look(part.vector_store, f"{where}.vector_store")
            case _ if isinstance(part, _UNSEEN):
                raise ConfigError(
                    _said(part, where, "is watched by nobody: call watch(...) on its index")
                )
            case BaseNode():
                raise ConfigError(
                    _said(part, where, "is held outside of any index: put it into a watched one")
                )
            case BaseRetriever() | BaseQueryEngine() if isinstance(part, Described) and _is_ours(
                part
            ):
                return self._any(_told_by(part), where, depth)
            case VectorIndexRetriever():
                return self._of_index(part, where, depth)
            case BaseRetriever():
                return self._retriever(part, where, depth)
            case BaseNodePostprocessor():
                return self._postprocessor(part, where, depth)
            case BaseQueryEngine() | BaseChatEngine():
                if class_name(type(part)) not in _ASKING_ONCE:
                    self._also(f"a {type(part).__name__} searches in its own way")
            case ObjectRetriever():
                self._also("it chooses among engines")
        return self._any(_held_by(part), where, depth)

    def _any(self, parts: Iterable[tuple[str, object]], where: str, depth: int) -> bool:
        found = [self.look(part, where + name, depth + 1) for name, part in parts]
        return any(found)

    def _retriever(self, part: BaseRetriever, where: str, depth: int) -> bool:
        self._also(f"a {type(part).__name__} searches in its own way")
        if not self._any(_held_by(part), where, depth):
            raise ConfigError(_said(part, where, "reads from no watched index"))
        return self._behind(part, where, depth)

    def _of_index(self, part: VectorIndexRetriever, where: str, depth: int) -> bool:
        store = part._vector_store
        if isinstance(part._index, SeenIndex) and part._index.vector_store is not store:
            raise ConfigError(
                _said(part, where, "was made before its index was watched: make it anew")
            )
        if type(part) is not VectorIndexRetriever:
            self._also(f"a {type(part).__name__} searches in its own way")
        self.look(store, f"{where}.vector_store")
        if not store.stores_text:
            self.look(part._docstore, f"{where}.docstore")
        return self._behind(part, where, depth)

    def _behind(self, part: BaseRetriever, where: str, depth: int) -> bool:
        objects = getattr(part, "object_map", None)
        if objects:
            self._also("what is behind the nodes found is retrieved, too")
            self._any([(".object_map", objects)], where, depth)
        return True

    def _postprocessor(self, part: BaseNodePostprocessor, where: str, depth: int) -> bool:
        if type(part).__name__ in _TELL_TIME:
            raise ConfigError(
                _said(part, where, "chooses by time, which no write tells of: leave it out")
            )
        if class_name(type(part)) not in _KEEPING:
            self._also(f"a {type(part).__name__} chooses from what was found")
        return self._any(_held_by(part), where, depth)

    def _also(self, why: str) -> None:
        self.why = self.why or why

    def _note(self, watch: Watch, volatile: frozenset[str], where: str) -> bool:
        if watch.core is not self._core:
            raise ConfigError(f"{where} is watched for another cache: give the same one to both.")
        before = self.source or Source(corpus=watch.corpus)
        if before.corpus != watch.corpus:
            raise ConfigError(
                f"{where} reads from corpus {watch.corpus!r} and {self._first} from"
                f" {before.corpus!r}; answers from several corpora cannot be watched: read from one,"
                f" {_ELSE}."
            )
        self._first = self._first or where
        self.source = replace(before, volatile=before.volatile | volatile)
        return True


def _held_by(part: object) -> Iterator[tuple[str, object]]:
    """Yield what a part holds, each with how it is reached from there."""
    match part:
        case Mapping():
            yield from ((f"[{name!r}]", one) for name, one in part.items())
            return
        case list() | tuple() | set() | frozenset():
            yield from ((f"[{at}]", one) for at, one in enumerate(part))
            return
        case ObjectRetriever():
            yield ".retriever", part.retriever
            yield ".objects", objects_behind(part)
            return
        case StorageContext():  # what is in its other stores is no text of a node
            yield ".docstore", part.docstore
            yield ".vector_store", part.vector_store
            return
        case _ if not isinstance(part, _PARTS):
            return  # a model, a prompt: it reads no documents
    if isinstance(part, Described):  # of one's own: what it tells, and what it does not
        yield from _told_by(part)
    held = {**getattr(part, "__dict__", {}), **(getattr(part, "__pydantic_private__", None) or {})}
    for name, one in held.items():
        if not isinstance(one, BaseLLM) and name != "object_map":
            yield f".{name.lstrip('_')}", one


def _told_by(part: Described) -> Iterator[tuple[str, object]]:
    return ((f".{name}", one) for name, one in part.identity_parts().items())


def _is_ours(part: object) -> bool:
    """Tell whether what a part tells of itself is all that it reads from."""
    return type(part).__module__.startswith(_OURS)


def _check_kept(part: object, where: str) -> None:
    """Refuse a cache that keeps answers or nodes of its own, and gives what may not hold any more.

    Raises:
        ConfigError: it does.
    """
    if not isinstance(part, BaseRetriever | BaseQueryEngine | BaseChatEngine):
        return
    if getattr(part, "grounding", "watch") != "watch":
        needs = 'keeps what may be older than its index: give it grounding="watch"'
        raise ConfigError(_said(part, where, needs))
    if getattr(part, "allow_stale", False):
        raise ConfigError(_said(part, where, "gives what no longer holds: leave out allow_stale="))


def _said(part: object, where: str, what: str) -> str:
    return f"{where} ({type(part).__name__}) {what}, {_ELSE}."
