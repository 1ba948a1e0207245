"""Which versions are known for the entries of a store, and what an unknown one means."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from stampcache.cli.check_result import CheckResult, ok, warn
from stampcache.model import Stamps
from stampcache.stores.sqlite_survey import StampCount

_NOT_NEEDED = MappingProxyType(
    {
        "tokenizer": "questions are compared by their text",
        "embedder": "exact hits only",
    }
)
_NEEDED = MappingProxyType(
    {
        "model": "give the model's name in each request, or stamps=Stamps(model=...)",
        "prompt": "give stamps=Stamps(prompt=...) and change it with the template",
        "index": "give stamps=Stamps(index=...) and change it with chunking and retrieval",
    }
)


def stamp_findings(counts: Sequence[StampCount]) -> Iterator[CheckResult]:
    """Yield one finding per stamp over the distinct stamps of all entries."""
    total = sum(one.entries for one in counts)
    if not total:
        yield ok("stamps", "no entries yet, so no stamps")
        return
    for name in Stamps.__struct_fields__:
        unknown = sum(one.entries for one in counts if not getattr(one.stamps, name))
        versions = len({getattr(one.stamps, name) for one in counts} - {""})
        yield _finding(name, unknown, total, versions)


def _finding(name: str, unknown: int, total: int, versions: int) -> CheckResult:
    check = f"stamp {name}"
    known = f"{versions} version{'' if versions == 1 else 's'}"
    if not unknown:
        return ok(check, f"known for all {total:,} entries, {known}")
    found = f"unknown for {unknown:,} of {total:,} entries"
    found += f", {known} among the others" if versions else ""
    if name in _NOT_NEEDED:
        return ok(check, f"{found}: {_NOT_NEEDED[name]}")
    return warn(check, f"{found}: a change of it would not be noticed there", _NEEDED[name])
