"""The Lua functions of the Redis store: one file per verb, with the parts it needs in front of it."""

import hashlib
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

_PARTS = MappingProxyType(
    {
        "put": ("fencing",),
        "judged": ("keeping",),
        "shelve": ("keeping",),
        "unshelve": ("keeping",),
        "forget": ("keeping",),
        "since": ("fencing",),
        "invalidate": ("selecting", "sweeping"),
        "sweep": ("selecting", "sweeping"),
        "declare": ("corpora",),
        "begin": ("corpora",),
        "note": ("corpora",),
        "standing": ("corpora",),
        "chunks": ("corpora",),
        "alike": ("corpora",),
        "commit": ("corpora", "selecting"),
        "take": ("tickets",),
        "renew-tickets": ("tickets",),
        "ticket": ("tickets",),
        "give": ("tickets",),
    }
)
_VERBS = (
    *(
        "beside",
        "check",
        "clear",
        "confirm",
        "damaged",
        "due",
        "end-due",
        "fetch",
        "follow",
    ),
    *("list-due", "rows", "take-due"),
    *("log-change", "observe", "purge", "reach", "reached", "reaches", "remove", "renew", "report"),
    *("sample", "shelved", "tally", "uses", "verdict", "verdicts"),
)


_FREEING = frozenset(
    {
        *("begin", "clear", "commit", "confirm", "damaged", "declare", "invalidate", "log-change"),
        *("forget", "give", "note", "purge", "remove", "renew-tickets", "report", "sweep"),
        "unshelve",
    }
)
"""What must go on where the server's memory is full: it says what is no longer true, or frees memory."""


class Script(Struct, frozen=True):
    """The source of a verb, and the digest by which a server knows it."""

    source: str
    sha: str


def load_scripts() -> dict[str, Script]:
    """Return all verbs by name."""
    folder = files("stampcache.stores.redis") / "lua"

    def source(name: str) -> str:
        return (folder / f"{name}.lua").read_text("utf-8")

    found = {}
    for verb in (*_PARTS, *_VERBS):
        text = "\n".join(source(name) for name in ("prelude", *_PARTS.get(verb, ()), verb))
        if verb in _FREEING:
            text = f"#!lua flags=allow-oom\n{text}"
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        found[verb] = Script(text, sha)
    return found
