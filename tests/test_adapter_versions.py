"""What a wrapper is told about validity is checked when it is made, in words."""

from typing import Any

import pytest

from stampcache import Cache, ConfigError, Manifest, Stamps, open_cache
from stampcache.adapters import (
    SOURCE_NAMES,
    CanonicalError,
    Validity,
    checked,
    named_source,
    seen_stamp,
)

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
            check(Validity(grounding=grounding), has_index=False)  # type: ignore[arg-type]  # given as the test has it


def test_the_manifest_names_the_corpus_and_the_stamps() -> None:
    told = check(Validity(), manifest=MADE)
    assert (told.corpus, told.stamps) == ("handbook", Stamps(tokenizer="v1", index=MADE.index))
    with pytest.raises(ConfigError, match="corpus versions: the manifest has 'handbook', but here"):
        check(Validity(corpus="other"), manifest=MADE)


@pytest.mark.parametrize("own", [{"manifest": MADE}, {"stamps": Stamps(index=MADE.index)}])
def test_a_manifest_that_contradicts_the_index_of_the_cache_is_refused(own: dict[str, Any]) -> None:
    newer = Manifest(corpus="handbook", version="8", tokenizer="v1")
    with pytest.raises(ConfigError, match="index versions: the manifest has 'handbook@8"):
        check(Validity(), cache=open_cache("memory://", **own), manifest=newer)
    told = check(Validity(), cache=open_cache("memory://", **own), manifest=MADE)
    assert told.stamps.index == MADE.index


@pytest.mark.parametrize(
    ("given", "has_index", "corpus"),
    [("", True, "handbook"), ("faq", True, "faq"), ("", False, "")],
)
def test_the_corpus_of_the_cache_stands_for_one_that_nobody_names(
    given: str, has_index: bool, corpus: str
) -> None:
    cache = open_cache("memory://", manifest=MADE)
    validity = Validity(grounding="none", corpus=given)
    assert check(validity, cache=cache, has_index=has_index).corpus == corpus


def test_a_wrapper_over_an_index_of_another_tokenizer_is_refused_by_name() -> None:
    cache = open_cache("memory://", stamps=Stamps(tokenizer="v2"))
    with pytest.raises(ConfigError, match="tokenizer versions: the index has 'v1', but here 'v2'"):
        check(Validity(), cache=cache, manifest=MADE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Validity(grounding="always"), "there are 'recheck', 'watch', 'version', 'none'"),  # type: ignore[arg-type]  # given as the test has it
        (Validity(version_of="chunks"), 'give "sources" or "corpus"'),  # type: ignore[arg-type]  # given as the test has it
        (Validity(kind="nws"), "kind= is 'nws'; this cache knows 'static'"),
    ],
)
def test_a_word_that_is_none_of_ours_is_refused(given: Validity, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(given)


@pytest.mark.parametrize(
    ("given", "rechecked", "whole", "needs_evidence"),
    [
        (Validity(), True, False, True),
        (Validity(grounding="none"), False, False, False),
        (Validity(grounding="version"), False, False, True),
        (Validity(grounding="version", version_of="corpus"), False, True, True),
        (Validity(version_of="corpus"), True, False, True),
    ],
)
def test_what_a_grounding_means(
    given: Validity, rechecked: bool, whole: bool, needs_evidence: bool
) -> None:
    assert (given.rechecked, given.whole_corpus) == (rechecked, whole)
    assert given.needs_evidence == needs_evidence


def test_what_is_seen_is_stamped_by_its_content_and_nothing_is_unknown() -> None:
    stamp = seen_stamp({"k": 3, "filter": ["a"]})
    assert stamp == seen_stamp({"filter": ["a"], "k": 3.0}) != seen_stamp({"k": 4})
    assert stamp.startswith("seen:") and stamp.count(":") == 1
    assert seen_stamp({}) == seen_stamp([]) == ""
    with pytest.raises(CanonicalError):
        seen_stamp([object()])


def test_the_first_text_that_metadata_calls_a_source_names_it() -> None:
    for name in SOURCE_NAMES:
        assert named_source({"page": 3, name: "leave.md"}) == "leave.md"
    assert named_source({"source": None, "file_path": "", "url": "u", "path": "p"}) == "u"
    assert named_source({"source": 7, "title": "Leave"}) == ""
