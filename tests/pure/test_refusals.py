"""Refusals and apologies are recognised; answers about them are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.refusals import looks_refused


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot assist with this request.",
        "Sorry, I am unable to do that.",
        "I am very sorry, but I'm not able to share this.",
        "We are sorry, something went wrong.",
        "I apologize, but I cannot do this.",
        "I'm afraid I can't do that, Dave.",
        "I cannot help with that.",
        "I can't provide that information.",
        "I won't assist with this.",
        "I must decline to answer.",
        "I'm unable to help with that request.",
        "I’m not able to discuss this.",
        "We're unable to process your request right now.",
        "Unfortunately, I'm unable to assist.",
        "Unfortunately, I cannot comply with this.",
        "As an AI language model, I cannot have opinions.",
        "Oops, something went wrong!",
        "Sorry, please try again later.",
        "Error: the request timed out",
        "An error occurred: internal error",
        "Internal server error",
        "an unexpected error",
        "  **Sorry**, the service is unavailable.",
        "抱歉，我无法回答这个问题。",
        "对不起,我不能提供帮助",
        "很遗憾，没办法处理。",
        "服务繁忙，请稍后再试",
        "系统异常",
    ],
)
def test_n1_n3_refusals_and_apologies(text: str) -> None:
    assert looks_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes.",
        "You can help by sending a patch.",
        "I can help you with that: open the settings.",
        "We can answer it in two steps.",
        "A TypeError is raised when the types do not fit.",
        "To apologise in English, say: I am sorry.",
        "The message means that the disk is full. Try again after freeing space.",
        "The API cannot process files above 2 GB.",
        "服务器重启需要五分钟。",
        "Python does not help here; it cannot assist the linker.",
    ],
)
def test_answers_are_not_taken_for_refusals(text: str) -> None:
    assert not looks_refused(text)


def test_only_short_texts_are_looked_at() -> None:
    refusal = "I'm sorry, but I can't help with that."
    assert looks_refused(refusal + " " * (400 - len(refusal)))
    assert not looks_refused(refusal + " " * (401 - len(refusal)))


@given(st.text(max_size=400))
def test_no_text_breaks_it(text: str) -> None:
    looks_refused(text)
