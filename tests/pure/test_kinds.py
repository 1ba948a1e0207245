"""Which kind of data a question asks for, by rule; and that a guess only shortens a life."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.kinds import kind_of, shorter
from stampcache.ttl import DAY_S, KINDS, Lifetime

COMMON = {**KINDS, "": Lifetime(ttl_s=7 * DAY_S)}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is the weather in Oslo?", "news"),
        ("What is the LATEST release?", "news"),
        ("今天有什么新闻？", "news"),
        ("How much is the Pro plan?", "price"),
        ("What is the exchange rate of the euro?", "price"),
        ("专业版多少钱？", "price"),
        ("What is my balance?", "personal"),
        ("Do I have any open invoices?", "personal"),
        ("我还有几天年假？", "personal"),
        ("What is the leave policy?", "policy"),
        ("差旅报销制度是什么？", "policy"),
        ("Which products do you sell?", "catalogue"),
        ("这个型号有哪些功能？", "catalogue"),
        ("What does yield do in Python?", ""),
        ("勾股定理是什么？", ""),
        ("", ""),
        ("Is a newspaper made of pricelessness?", ""),
    ],
)
def test_words_that_change_at_a_known_pace(question: str, kind: str) -> None:
    assert kind_of(question) == kind


def test_the_fastest_kind_wins() -> None:
    assert kind_of("What does my order cost today?") == "news"
    assert kind_of("What is the price of my ticket under the policy?") == "price"


@pytest.mark.parametrize(
    ("kind", "common", "expected"),
    [
        ("price", 7 * DAY_S, "price"),
        ("price", None, "price"),
        ("price", 60.0, ""),
        ("policy", 7 * DAY_S, ""),
        ("static", 7 * DAY_S, ""),
        ("unknown", 7 * DAY_S, ""),
        ("", 7 * DAY_S, ""),
    ],
)
def test_a_guess_only_shortens(kind: str, common: float | None, expected: str) -> None:
    assert shorter(kind, {**KINDS, "": Lifetime(ttl_s=common)}) == expected


def test_without_a_common_life_or_a_life_at_all_nothing_is_guessed() -> None:
    assert shorter("price", KINDS) == ""
    assert shorter("price", {**COMMON, "price": Lifetime(ttl_s=None)}) == ""


@given(st.text())
def test_any_question_has_a_kind_that_is_known(question: str) -> None:
    kind = shorter(kind_of(question), COMMON)
    assert kind == "" or (COMMON[kind].ttl_s or 0) < 7 * DAY_S
