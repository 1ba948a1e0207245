"""Keys by token ids: lossless tokenizers by ids alone, the others by ids and text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel

import stampcache
from stampcache import ConfigError, Hit, Miss, Request
from stampcache.tokens import TokenIds, as_tokenizer

VOCABULARY = ["[UNK]", "What", "what", "is", "a", "map", "None"]


def by_words() -> Tokenizer:
    """Return a tokenizer that knows few words, as every word-level tokenizer does."""
    ids = {word: at for at, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def by_bytes() -> Tokenizer:
    """Return a byte-level tokenizer, as DeepSeek and most others have: it loses nothing."""
    letters = {letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}
    merged = "Ġa"
    tokenizer = Tokenizer(models.BPE({**letters, merged: len(letters)}, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def test_the_stamp_stands_for_the_whole_definition() -> None:
    one, other = by_words(), by_words()
    assert TokenIds(one).stamp == TokenIds(other).stamp
    other.normalizer = normalizers.Lowercase()
    assert TokenIds(one).stamp != TokenIds(other).stamp != TokenIds(by_bytes()).stamp


def test_known_words_are_keyed_by_four_bytes_per_id() -> None:
    assert TokenIds(by_words()).tokens("What is") == bytes([1, 0, 0, 0, 3, 0, 0, 0])
    assert len(TokenIds(by_bytes()).tokens("what a")) == 4 * 5


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_two_texts_share_their_tokens(one: str, other: str) -> None:
    for tokens in (TokenIds(by_words()).tokens, TokenIds(by_bytes()).tokens):
        assert (tokens(one) == tokens(other)) == (one == other)


@given(st.text(max_size=20))
def test_a_byte_level_tokenizer_needs_no_text_beside_its_ids(text: str) -> None:
    assert len(TokenIds(by_bytes()).tokens(text)) % 4 == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is Rust", "What is Python"),  # both words unknown
        ("什么是猫？", "什么是狗？"),
        ("What  is", "What is"),
    ],
)
def test_unknown_words_are_told_apart(one: str, other: str) -> None:
    tokens = TokenIds(by_words()).tokens
    assert tokens(one) != tokens(other)


def test_a_tokenizer_that_lowers_case_or_cuts_off_confuses_no_questions() -> None:
    lower = by_words()
    lower.normalizer = normalizers.Lowercase()
    assert TokenIds(lower).tokens("None") != TokenIds(lower).tokens("none")
    short = by_bytes()
    short.enable_truncation(max_length=3)
    assert TokenIds(short).tokens("abcd") != TokenIds(short).tokens("abce")


def test_a_cache_with_a_tokenizer_serves_equal_questions_only() -> None:
    cache = stampcache.open_cache("memory://", tokenizer=by_words())
    cache.update(Request(question="What is Rust"), "A language.")
    assert isinstance(cache.lookup(Request(question=" What  is Rust\n")), Hit)
    assert not isinstance(cache.lookup(Request(question="What is Python")), Hit)
    cache.close()


def test_another_tokenizer_is_another_partition() -> None:
    store = stampcache.open_cache("memory://").core.store
    one = stampcache.open_cache("memory://", secret=b"s" * 16, tokenizer=by_words())
    other = stampcache.open_cache("memory://", secret=b"s" * 16, tokenizer=by_bytes())
    misses = [cache.lookup(Request(question="q")) for cache in (one, other)]
    assert all(isinstance(miss, Miss) for miss in misses)
    partitions = {miss.identity.partition for miss in misses if miss.identity}  # type: ignore[union-attr]
    assert len(partitions) == 2
    assert store.stats().entries == 0


class Words:
    stamp = "words-1"

    def tokens(self, text: str) -> bytes:
        return text.encode()


def test_what_may_be_passed_as_a_tokenizer() -> None:
    assert as_tokenizer(None) is None
    own = Words()
    assert as_tokenizer(own) is own
    assert isinstance(as_tokenizer(by_words()), TokenIds)
    for wrong in ("deepseek", object(), len):
        with pytest.raises(ConfigError, match=r"takes a tokenizers\.Tokenizer"):
            as_tokenizer(wrong)
