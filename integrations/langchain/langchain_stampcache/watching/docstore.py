"""`WatchedDocstore`: a store of whole documents, beside an index of their parts, that is heard of."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from langchain_core.stores import BaseStore

from langchain_stampcache.watching.names import is_function, is_write
from langchain_stampcache.watching.unknown import Anything
from stampcache.adapters import Reading, Watch, hear

Key = TypeVar("Key")
Value = TypeVar("Value")

_OWN = frozenset({"_inner", "_watch", "_writes"})
_PROBLEM = "parent documents were fetched by their keys"


class WatchedDocstore(BaseStore[Key, Value], Generic[Key, Value]):
    """Stands where a store of documents stood, and does what that does; the cache hears of it.

    Any write ends all answers of the corpus: which of them were made from a document is not seen.
    """

    def __init__(self, inner: BaseStore[Key, Value], watch: Watch) -> None:
        """Use `langchain_stampcache.watch`."""
        self._inner = inner
        self._watch = watch
        self._writes = Anything(watch, beyond=True)

    @property
    def inner(self) -> BaseStore[Key, Value]:
        """The store that is watched; what is written to it directly is not seen."""
        return self._inner

    @property
    def watched(self) -> Watch:
        """The watch over its corpus."""
        return self._watch

    def mget(self, keys: Sequence[Key]) -> list[Value | None]:
        """Return values, as the inner store does; any write ends what is made from them."""
        self._tell()
        return self._inner.mget(keys)

    async def amget(self, keys: Sequence[Key]) -> list[Value | None]:
        """See `mget`."""
        self._tell()
        return await self._inner.amget(keys)

    def mset(self, key_value_pairs: Sequence[tuple[Key, Value]]) -> None:
        """Set values, as the inner store does."""
        self._writes.of(self._inner.mset)(key_value_pairs)

    async def amset(self, key_value_pairs: Sequence[tuple[Key, Value]]) -> None:
        """See `mset`."""
        await self._writes.of(self._inner.amset)(key_value_pairs)

    def mdelete(self, keys: Sequence[Key]) -> None:
        """Delete values, as the inner store does."""
        self._writes.of(self._inner.mdelete)(keys)

    async def amdelete(self, keys: Sequence[Key]) -> None:
        """See `mdelete`."""
        await self._writes.of(self._inner.amdelete)(keys)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[Key] | Iterator[str]:
        """Give the keys, as the inner store does."""
        self._tell()
        return self._inner.yield_keys(prefix=prefix)

    def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[Key] | AsyncIterator[str]:
        """See `yield_keys`."""
        self._tell()
        return self._inner.ayield_keys(prefix=prefix)

    def _tell(self) -> None:
        hear(Reading(corpus=self._watch.corpus, problem=_PROBLEM))

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        value = getattr(self._inner, name)
        return self._writes.of(value) if is_write(name) and is_function(value) else value

    def __repr__(self) -> str:
        return f"watched({self._inner!r}, corpus={self._watch.corpus!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A watched store is neither pickled nor copied; do that with its inner store."
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError(
            "A watched store is neither pickled nor copied; do that with its inner store."
        )
