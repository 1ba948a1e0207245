"""What is found in prompts stands for the very prompt: two that differ are never taken for one."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

import stampcache
from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_cache.finding import Finder, Finding, InPrompt, Variables
from stampcache import Evidence

ONE = ChatPromptTemplate.from_template("C:{context}\nQ:{input}")
SPLIT = ChatPromptTemplate(
    [("system", "{tone} {context}"), ("placeholder", "{history}"), ("human", "{input}!")]
)
texts = st.lists(
    st.sampled_from(["a", "b", " ", "\n", "\n\n", "C:", "Q:", "!", "|", "{input}", '{"is":']),
    max_size=4,
).map("".join)
conversations = st.lists(
    st.builds(
        lambda kind, text: kind(text),
        st.sampled_from([HumanMessage, AIMessage, SystemMessage]),
        texts,
    ),
    max_size=2,
)


def extract(text: str) -> InPrompt | str | None:
    context, found, question = text.removeprefix("C:").partition("\nQ:")
    return InPrompt(question, context) if found and context else question or text[-1:]


def finder(template: Any, separator: str, *, asks: bool) -> Finder:
    return Finder(
        template=template,
        variables=Variables(separator=separator),
        extract=extract if asks else None,
        corpus="",
    )


FINDERS = [
    finder(template, separator, asks=asks)
    for template in (None, ONE, SPLIT)
    for separator in ("\n\n", "|", "")
    for asks in (False, True)
]


@st.composite
def rendered(draw: st.DrawFn) -> list[BaseMessage]:
    put = {"context": draw(texts), "input": draw(texts)}
    if draw(st.booleans()):
        return ONE.format_messages(**put)
    return SPLIT.format_messages(**put, tone=draw(texts), history=draw(conversations))


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[BaseMessage], Finding | None]:
    messages = draw(rendered())
    chunks = draw(st.none() | st.lists(texts, max_size=2))
    evidence = None if chunks is None else [Evidence(source="s", text=text) for text in chunks]
    question = draw(st.none() | texts)
    with stampcache.scope(question=question, evidence=evidence):
        return messages, draw(st.sampled_from(FINDERS)).find(prompts.of_messages(messages))


def key_of(found: Finding) -> object:
    digests = None if found.evidence is None else tuple(each.digest for each in found.evidence)
    return found.question, digests, repr(found.history), found.rest


@given(st.lists(asked(), min_size=2, max_size=12))
def test_equal_findings_are_of_equal_prompts(
    pairs: Sequence[tuple[list[BaseMessage], Finding | None]],
) -> None:
    seen: dict[object, list[BaseMessage]] = {}
    for messages, found in pairs:
        if found is None:
            continue
        before = seen.setdefault(key_of(found), messages)
        assert prompts.of_messages(before) == prompts.of_messages(messages)


@given(rendered(), rendered())
def test_one_finder_never_takes_two_prompts_for_one(
    first: list[BaseMessage], second: list[BaseMessage]
) -> None:
    for one in FINDERS:
        found = [one.find(prompts.of_messages(each)) for each in (first, second)]
        if found[0] is not None and found[1] is not None and key_of(found[0]) == key_of(found[1]):
            assert prompts.of_messages(first) == prompts.of_messages(second)


@given(texts, texts, st.sampled_from(["\n\n", "|", ""]))
def test_what_is_found_stands_in_the_prompt(context: str, question: str, separator: str) -> None:
    messages = ONE.format_messages(context=context, input=question)
    found = finder(ONE, separator, asks=False).find(prompts.of_messages(messages))
    if found is None:
        assert not question.strip() or "\nQ:" in context + question
        return
    assert found.question == question
    assert found.history == ()
    chunks = [each.text for each in found.evidence or ()]
    assert chunks in ([context], context.split(separator or "\0"), [])
    assert bool(chunks) == bool(context)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("C: x. Q: y", InPrompt("y", "z")),
        ("C: x. Q: y", InPrompt("x. Q: y", "Q: y")),
        ("C: x, x. Q: y", InPrompt("y", "x")),
        ("C: aaa. Q: y", InPrompt("y", "aa")),
    ],
)
def test_what_is_shown_but_not_there_once_is_not_believed(text: str, shown: InPrompt) -> None:
    one = Finder(template=None, variables=Variables(), extract=lambda _: shown, corpus="")
    assert one.find(text) is None


def test_chunks_that_do_not_fit_are_not_taken_for_a_context_that_repeats_one() -> None:
    one = finder(ONE, "\n\n", asks=False)
    repeated = one.find(prompts.of_messages(ONE.format_messages(context="a\n\na", input="q")))
    with stampcache.scope(evidence=[Evidence(source="s", text="x"), Evidence(source="t")]):
        single = one.find(prompts.of_messages(ONE.format_messages(context="a", input="q")))
    assert repeated is not None
    assert single is not None
    assert len(single.evidence or ()) == len(repeated.evidence or ()) == 2
    assert key_of(single) != key_of(repeated)


def test_a_prompt_without_a_human_is_matched_exactly() -> None:
    one = Finder(template=None, variables=Variables(), extract=lambda text: text, corpus="")
    for messages in ([], [SystemMessage("s")], [HumanMessage([{"type": "text", "text": "q"}])]):
        assert one.find(prompts.of_messages(messages)) is None


def test_a_plain_template_is_read_in_a_chat_of_one_message_too() -> None:
    one = Finder(
        template=PromptTemplate.from_template("Q:{question}"),
        variables=Variables(),
        extract=None,
        corpus="",
    )
    plain, chat = one.find("Q:why"), one.find(prompts.of_messages([HumanMessage("Q:why")]))
    assert plain == chat
    assert plain is not None
    assert (plain.question, plain.evidence, plain.has_ids) == ("why", None, True)
