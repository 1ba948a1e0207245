"""A process that writes to a watched index that it loads from a folder, and is killed amid that.

Usage: python li_watch_child.py URL FOLDER WHERE NAME TEXT
"""

import os
import signal
import sys
from typing import Any

from llama_index.core import Document, StorageContext, load_index_from_storage
from watched_documents import Projected

from llama_index_stampcache import watch
from stampcache import open_cache


def main(url: str, folder: str, where: str, name: str, text: str) -> None:
    """Write one document; die there."""
    context = StorageContext.from_defaults(persist_dir=folder)
    index: Any = load_index_from_storage(context, embed_model=Projected())
    cache = open_cache(url)
    watch(index, cache=cache, corpus="handbook")
    store, documents = index.vector_store.inner, index.docstore.inner
    structs = index.storage_context.index_store
    put, keep, note = store.add, documents.add_documents, structs.add_index_struct

    def die(at: str) -> None:
        if at == where:
            os.kill(os.getpid(), signal.SIGKILL)

    def add(nodes: Any, **options: Any) -> Any:
        die("before")
        done = put(nodes, **options)
        die("between")
        return done

    def add_documents(*given: Any, **options: Any) -> None:
        keep(*given, **options)
        die("at the end")

    def add_index_struct(struct: Any) -> None:
        note(struct)
        index.storage_context.persist(folder)
        if name in index.ref_doc_info:  # and not yet when it was deleted before
            die("persisted")

    object.__setattr__(store, "add", add)
    documents.add_documents = add_documents
    if where == "persisted":
        structs.add_index_struct = add_index_struct
    index.update_ref_doc(Document(text=text, id_=name))


if __name__ == "__main__":
    main(*sys.argv[1:])
