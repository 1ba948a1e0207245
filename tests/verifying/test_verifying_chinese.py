"""The verifier for Chinese: how it reads, what it compares, what it accepts, rejects and refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stampcache.errors import VerifierError
from stampcache.verifying import load, reading
from stampcache.verifying.chinese import pair, vocabulary
from stampcache.verifying.chinese.reading import costs, kind, plain, reader, segmented
from stampcache.verifying.table import Table, unpack
from stampcache.verifying.trained import TrainedVerifier

WORDS = ["退款", "申请", "提交", "退", "款", "申", "请", "手机", "手", "机", "店", "海"]
TABLE: Table = unpack("s-test", WORDS, bytes([90, 80, 95, 60, 80, 120, 70, 60, 40, 60, 70, 50]), bytes(
    [at * 7 % 100 for at in range(12 * 4)]
))  # fmt: skip
READ = reader(TABLE)
SAME = [
    ("怎么取消会员的自动续费？", "如何取消会员的自动续费", 0.99),
    ("请问护照办理要多少钱？", "护照办理的费用是多少", 0.96),
    ("水电费在哪里交？", "请问水电费去哪儿交", 0.97),
]
OTHERS = [
    ("怎么开启自动续费？", "怎么关闭自动续费？", 0.97),
    ("从苏州到无锡的车票多少钱？", "从无锡到苏州的车票多少钱？", 0.99),
    ("护照有效期是几年？", "护照办理要几天？", 0.93),
    ("图书馆几点关门？", "金鱼一天喂几次？", 0.82),
    ("三天内可以退货吗？", "七天内可以退货吗？", 0.97),
]


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("退款申请怎么提交？", ["退款", "申请", "怎么", "提交"]),
        ("退款 API v2.1 申请！", ["退款", "api", "v2.1", "申请"]),
        ("鱻退款", ["鱻", "退款"]),
        ("𠮷退款", ["𠮷", "退款"]),
        ("退款α通道，café", ["退款", "α", "通", "道", "café"]),
        ("？！", []),
    ],
)
def test_a_text_is_cut_into_the_most_frequent_words(text: str, words: list[str]):
    assert segmented(plain(text), costs(TABLE)) == words


@pytest.mark.parametrize(
    "form", ["如何退款", "怎样退款", "该怎么退款", "我应该如何退款", "ＡＢＣ怎么退款"]
)
def test_forms_of_asking_are_one_word(form: str):
    assert plain(form).removeprefix("abc") == "怎么退款"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("多少钱", "cost"),
        ("谁负责", "who"),
        ("退款多久", "long"),
        ("为什么退款", "why"),
        ("退款", ""),
    ],
)
def test_the_kind_of_a_question(text: str, name: str):
    names = ["", *(one for one, _ in vocabulary.KINDS)]
    assert names[kind(text)] == name


def test_a_side_holds_words_content_and_names():
    side = READ("请问怎么申请退钱，订单 A17？")
    assert side.words == ["请问", "怎么", "申请", "退钱", "订单", "a17"]
    assert side.stems == ["申请", "退钱", "订单", "a17"]
    assert side.content == ["申请", "退款", "订单", "a17"]
    assert [side.stems[at] for at in side.names] == ["a17"]
    assert reading.decode(reading.encode(side), TABLE.version) == side


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("退款" * 200, "more than 256 characters"),
        ("How do I pay?", "is in English"),
        ("どうやって払いますか", "is in another language"),
        ("", "is in English"),
    ],
)
def test_what_it_does_not_read(question: str, why: str):
    with pytest.raises(VerifierError, match=why):
        READ(question)


def test_no_bits_of_closed_classes_are_too_many_to_be_stored():
    assert all(len(one) < 64 for one in vocabulary.CLOSED)


# -- comparing -------------------------------------------------------------------------------------


def features(one: str, other: str) -> dict[str, float]:
    values = pair.against(READ(one), TABLE)(READ(other), 0.9)
    return dict(zip(pair.NAMES, values, strict=True))


def test_features_of_characters():
    found = features("手机退款申请", "退款申请手机")
    assert found["characters shared"] == found["characters of content shared"] == 1
    assert found["in order, less"] == pytest.approx(4 / 6)
    assert found["unmatched characters, more"] == 0
    found = features("退款申请", "退货申请")
    assert (found["unmatched characters, less"], found["unmatched characters, more"]) == (1, 1)
    assert found["span that differs, more"] == 1
    assert found["most unmatched character, more"] == 1, "a character that the table has not"
    assert features("退款退款", "退款")["unmatched characters, more"] == 2
    assert features("手机", "手海机")["words in pieces, more"] == 2, (
        "one of one side, two of the other"
    )


def test_a_question_of_small_words_is_compared():
    found = features("怎么", "为什么呢")
    assert found["characters of content shared"] == 1
    assert 0 <= found["characters shared"] < 1


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        ("", "", 0),
        ("abc", "", 0),
        ("abcd", "acbd", 3),
        ("aab", "ab", 2),
        ("退款申请", "申请退款", 2),
    ],
)
def test_the_longest_common_subsequence(one: str, other: str, length: int):
    assert pair.subsequence(one, other) == pair.subsequence(other, one) == length


CHINESE = st.text("退款申请提交手机店海怎么多少钱吗的三3a ？", min_size=1, max_size=20).map(
    "退{}".format
)


@settings(max_examples=200)
@given(CHINESE, CHINESE)
def test_features_do_not_depend_on_who_asks(one: str, other: str):
    assert features(one, other) == features(other, one)


# -- the verifier that is shipped ------------------------------------------------------------------


@pytest.fixture(scope="module")
def verifier() -> TrainedVerifier:
    return load("chinese")


@pytest.mark.parametrize(("asked", "stored", "similarity"), SAME)
def test_the_same_question_in_other_words_is_accepted(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    one, other = verifier.asking(asked), verifier.asking(stored)
    score = one.score(stored, b"", similarity)
    assert score >= verifier.threshold
    assert one.score(stored, other.seen, similarity) == score
    assert other.score(asked, one.seen, similarity) == score


@pytest.mark.parametrize(("asked", "stored", "similarity"), OTHERS)
def test_near_misses_are_rejected(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    assert verifier.asking(asked).score(stored, b"", similarity) < verifier.threshold


@pytest.mark.parametrize("question", [one for one, _, _ in (*SAME, *OTHERS)])
def test_a_question_is_itself(verifier: TrainedVerifier, question: str):
    assert verifier.asking(question).score(question, b"", 1.0) > 0.9


@pytest.mark.parametrize("question", ["How do I pay?", "退款" * 200, "お支払い方法は？"])
def test_it_abstains(verifier: TrainedVerifier, question: str):
    asking = verifier.asking(question)
    assert asking.seen == b""
    with pytest.raises(VerifierError):
        asking.score("怎么付款？", b"", 0.9)
    with pytest.raises(VerifierError):
        verifier.asking("怎么付款？").score(question, b"", 0.9)


@pytest.mark.parametrize(
    ("asked", "stored", "similarity"),
    [
        ("α粒子是什么？", "β粒子是什么？", 0.94),
        ("𠮷野家在哪里？", "𠀋野家在哪里？", 0.99),
        ("怎么打出λ？", "怎么打出π？", 0.92),
        ("x>5怎么解？", "如何解x＜5", 0.99),
        ("-5度要穿什么？", "5度要穿什么？", 0.99),
        ("3×4等于多少？", "3÷4等于多少？", 0.97),
        ("$5的套餐有吗？", "€5的套餐有吗？", 0.95),
        ("怎么算10%？", "怎么算10‰？", 0.92),
        ("甲→乙怎么走？", "甲←乙怎么走？", 0.99),
    ],
)
def test_letters_and_signs_of_other_kinds_are_told_apart(
    verifier: TrainedVerifier, asked: str, stored: str, similarity: float
):
    assert verifier.asking(asked).score(stored, b"", similarity) < verifier.threshold
    assert verifier.asking(asked).score(asked, b"", 1.0) >= verifier.threshold


def test_it_explains_by_the_features_of_its_language(verifier: TrainedVerifier):
    shown = verifier.asking("怎么开启自动续费？").explain("怎么关闭自动续费？", b"", 0.97)
    assert 1 <= len(shown) <= 3
    assert all(one.rpartition(" (")[0].rpartition(" ")[0] in pair.NAMES for one in shown)


def test_what_was_read_for_another_language_is_read_again(verifier: TrainedVerifier):
    english = load().asking("How do I pay?").seen
    asking = verifier.asking("怎么付款？")
    assert asking.score("如何付款？", english, 0.98) == asking.score("如何付款？", b"", 0.98)
