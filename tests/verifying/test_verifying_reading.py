"""What is read in one question, when nothing is read, and what its bytes are good for."""

import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.errors import VerifierError
from stampcache.verifying import reading, table, vocabulary
from stampcache.verifying.reading import kind, read, stem

WORDS = ["card", "lost", "refund", "paris", "london", "cost"]
ROWS = np.eye(len(WORDS), 8, dtype=np.int8).tobytes()
TABLE = table.unpack("t1", WORDS, bytes([100, 90, 120, 180, 170, 80]), ROWS)


def test_a_question_is_read_into_words_stems_and_numbers():
    side = read("I don't know: how do I get back two lost cards in Paris?", TABLE)
    assert "not" in side.words and "2" in side.words and "recover" in side.words
    assert "card" in side.stems and "paris" in side.stems
    assert len(side.stems) == len(side.content) == len(side.rows) == len(side.weights)
    assert side.weights[side.stems.index("card")] == 100
    assert side.weights[side.stems.index("2")] == reading.HEAVIEST
    assert side.stems.index("paris") in side.names


def test_contractions_without_apostrophes_are_written_out():
    assert read("whats the cost", TABLE).words == ["what", "is", "the", "cost"]


def test_accents_do_not_matter():
    assert read("Which café is open?", TABLE).words == read("Which cafe is open?", TABLE).words


def test_capitals_say_nothing_in_a_title():
    assert read("How To Get A Refund For Lost Cards", TABLE).names == []


def test_words_of_one_concept_are_the_same_content():
    assert read("the price of a card", TABLE).content == read("the cost of a card", TABLE).content


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cards", "card"), ("cities", "city"), ("boxes", "box"), ("stopped", "stop"),
        ("cancelled", "cancel"), ("canceling", "cancel"), ("quickly", "quick"), ("issues", "issue"),
        ("used", "used"), ("class", "class"), ("api2", "api2"), ("calls", "call"), ("calling", "call"),
        ("making", "make"),
    ],
)  # fmt: skip
def test_endings_are_cut(one: str, other: str):
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("how much does a card cost", "cost"), ("how many cards are there", "many"),
        ("how long does it take", "long"), ("how often is it paid", "often"),
        ("how far is paris", "degree"), ("when does it open", "when"), ("where is it", "where"),
        ("who pays", "who"), ("why is it so", "why"), ("how do i pay", "howto"),
        ("can i pay later", "yesno"), ("which card", "which"), ("define a card", "define"),
        ("what a card", "what"), ("cats versus dogs", "difference"),
    ],
)  # fmt: skip
def test_kinds_of_questions(text: str, name: str):
    assert vocabulary.KINDS[kind(text) - 1][0] == name


def test_a_statement_has_no_kind():
    assert kind("my card arrived") == 0


@pytest.mark.parametrize(
    ("question", "saying"),
    [
        ("", "holds no words"),
        ("?!", "holds no words"),
        ("card " * 103, "512 characters"),
        ("a b " * 50, "96 words"),
        ("怎么重置密码？", "English only"),
        ("What does 你好 mean?", "English only"),
        ("Как сбросить пароль?", "English only"),
        ("Wie kann ich das Passwort ändern?", "look like English"),
        ("¿Cómo puedo cambiar la contraseña?", "look like English"),
        ("Comment est-ce que je change mon mot de passe ?", "look like English"),
    ],
)
def test_what_cannot_be_compared_is_refused(question: str, saying: str):
    with pytest.raises(VerifierError, match=saying):
        read(question, TABLE)


@pytest.mark.parametrize(
    "question",
    [
        "reset password",
        "What does 5 µm mean?",
        "best café",
        "C++ 20",
        "What does und mean in the text?",
    ],
)
def test_short_and_odd_english_is_read(question: str):
    assert read(question, TABLE).words


def test_bytes_come_back_as_they_were():
    side = read("How do I reset my password within 24 hours in Germany?", TABLE)
    assert reading.decode(reading.encode(side), "t1") == side


def test_bytes_of_another_version_or_damaged_are_nothing():
    seen = reading.encode(read("Where is my card?", TABLE))
    assert reading.decode(seen, "t2") is None
    assert reading.decode(b"", "t1") is None
    assert reading.decode(b"\xc1", "t1") is None
    assert reading.decode(msgspec.msgpack.encode(["t1"]), "t1") is None
    for whole in (b"\xc1", msgspec.msgpack.encode(["t1"])):  # whole bytes, of no side
        assert reading.decode(zlib.crc32(whole).to_bytes(4) + whole, "t1") is None


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_nothing(seen: bytes):
    assert reading.decode(seen, "t1") is None


@given(st.text(max_size=600))
def test_any_text_is_read_or_refused(text: str):
    try:
        side = read(text, TABLE)
    except VerifierError:
        return
    assert reading.decode(reading.encode(side), "t1") == side
