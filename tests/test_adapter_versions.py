"""What a wrapper is told about validity is checked when it is made, in words."""

from typing import Any

import pytest

from stampcache import Cache, ConfigError, Manifest, Stamps, open_cache
from stampcache.adapters import Validity, checked

MADE = Manifest(corpus="handbook", version="7", tokenizer="v1")


def check(given: Validity, *, cache: Cache | None = None, **options: Any) -> Validity:
    with cache or open_cache("memory://") as opened:
        return checked(opened.core, given, **{"manifest": None, "has_index": True, **options})


@pytest.mark.parametrize("grounding", ["version", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {"given": Validity(stamps=Stamps(index="7"))},
        {"given": Validity(version="7")},
        {"given": Validity(), "manifest": MADE},
        {"given": Validity(), "cache": "manifest"},
        {"given": Validity(), "cache": "stamps"},
    ],
)
def test_d9_the_index_version_is_known_in_one_of_these_ways(
    grounding: Any, options: dict[str, Any]
) -> None:
    given = Validity(
        grounding=grounding, stamps=options["given"].stamps, version=options["given"].version
    )
    caches = {
        "manifest": lambda: open_cache("memory://", manifest=MADE),
        "stamps": lambda: open_cache("memory://", stamps=Stamps(index="7")),
        None: lambda: None,
    }
    cache = caches[options.get("cache")]()
    told = check(given, cache=cache, manifest=options.get("manifest"))
    assert told.grounding == grounding


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_an_unknown_index_version_is_refused(grounding: Any) -> None:
    with pytest.raises(ConfigError, match="its version must be known: give stamps=Stamps"):
        check(Validity(grounding=grounding, corpus="handbook"))


def test_without_an_index_there_is_no_version_of_it() -> None:
    assert check(Validity(grounding="none"), has_index=False).grounding == "none"
    for grounding in ("recheck", "version"):
        with pytest.raises(ConfigError, match="Without a retriever there is nothing to"):
            check(Validity(grounding=grounding), has_index=False)  # type: ignore[arg-type]


def test_the_manifest_names_the_corpus_and_the_stamps() -> None:
    told = check(Validity(), manifest=MADE)
    assert (told.corpus, told.stamps) == ("handbook", Stamps(tokenizer="v1", index=MADE.index))
    with pytest.raises(ConfigError, match="corpus versions: the manifest has 'handbook', but here"):
        check(Validity(corpus="other"), manifest=MADE)


def test_a_wrapper_over_an_index_of_another_tokenizer_is_refused_by_name() -> None:
    cache = open_cache("memory://", stamps=Stamps(tokenizer="v2"))
    with pytest.raises(ConfigError, match="tokenizer versions: the index has 'v1', but here 'v2'"):
        check(Validity(), cache=cache, manifest=MADE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Validity(grounding="watch"), "there are 'recheck', 'version', 'none'"),  # type: ignore[arg-type]
        (Validity(version_of="chunks"), 'give "sources" or "corpus"'),  # type: ignore[arg-type]
        (Validity(kind="nws"), "kind= is 'nws'; this cache knows 'static'"),
    ],
)
def test_a_word_that_is_none_of_ours_is_refused(given: Validity, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(given)


@pytest.mark.parametrize(
    ("given", "rechecked", "whole"),
    [
        (Validity(), True, False),
        (Validity(grounding="none"), False, False),
        (Validity(grounding="version"), False, False),
        (Validity(grounding="version", version_of="corpus"), False, True),
        (Validity(version_of="corpus"), True, False),
    ],
)
def test_what_a_grounding_means(given: Validity, rechecked: bool, whole: bool) -> None:
    assert (given.rechecked, given.whole_corpus) == (rechecked, whole)
