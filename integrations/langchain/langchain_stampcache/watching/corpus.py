"""The watch over the corpus of one vector store, record manager or document store."""

from langchain_stampcache.watching.chunks import ChunkForm
from stampcache.adapters import Core, IndexView, Watch


class CorpusWatch(Watch):
    """The watch over one corpus, and the metadata there that says nothing."""

    def __init__(
        self,
        core: Core,
        corpus: str,
        view: IndexView,
        *,
        silence_s: float | None,
        form: ChunkForm,
        index: str = "",
    ) -> None:
        """See `Watch`."""
        super().__init__(core, corpus, view, silence_s=silence_s, index=index)
        self.volatile = form.volatile
