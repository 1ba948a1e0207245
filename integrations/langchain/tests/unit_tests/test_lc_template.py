"""Prompt templates read backwards: the very values that were put in, or nothing."""

import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import (
    ChatMessagePromptTemplate,
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    FewShotPromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
)

from langchain_stampcache import prompt as prompts
from langchain_stampcache.llm_cache.template import Template
from langchain_stampcache.llm_cache.template_text import Hole, Pattern
from stampcache import ConfigError

MARKS = [
    "", " ", "\n", "\n\n", "{", "}", "{{", "}}", "{input}", "{{input}}", "{context}", "Question:",
    "\n\nQuestion: ", "Use: ", ".", "é", "e\u0301", "\u200b", "漢", "😀", "&", "&amp;", "<", '"',
    "&quot;", "%s", "$", "\\", "\r\n", "{% raw %}", "{# #}", "None", "a", "aa",
]  # fmt: skip
values = st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=5).map("".join)
literals = st.lists(st.sampled_from(["a", "aa", "\n", "Question: ", ".", " "]), max_size=3).map(
    "".join
)


def chat_of(messages: list[BaseMessage]) -> prompts.Chat:
    chat = prompts.read(dumps(messages))
    assert isinstance(chat, prompts.Chat)
    assert chat == prompts.of_messages(messages)
    return chat


def every_reading(pattern: Pattern, text: str) -> set[tuple[str, ...]]:
    """Return all values that render a text, by trying every cut."""
    found = set()
    count = len(pattern.holes)
    for cuts in itertools.combinations_with_replacement(range(len(text) + 1), 2 * count):
        parts = [text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True)]
        if parts[0::2] == pattern._literals:
            found.add(tuple(parts[1::2]))
    return found


# -- one text --------------------------------------------------------------------------------------


@given(st.lists(literals, min_size=2, max_size=3), st.text("a.\n ", max_size=7))
def test_a_text_is_read_exactly_if_one_set_of_values_renders_it(
    texts: list[str], text: str
) -> None:
    assume(all(texts[1:-1]))
    pieces: list[Any] = [texts[0]]
    for number, literal in enumerate(texts[1:]):
        pieces += [Hole(f"v{number}"), literal]
    pattern = Pattern(pieces)
    readings = every_reading(pattern, text)
    assert pattern.fits(text) == bool(readings)
    found = pattern.values(text)
    if len(readings) == 1:
        assert found is not None
        assert tuple(found.values()) in readings
    else:
        assert found is None


def test_a_variable_that_stands_twice_has_one_value() -> None:
    template = Template(PromptTemplate.from_template("{query}? Again: {query}"))
    found = template.inverted("why? Again: why")
    assert found is not None
    assert found.values == {"query": "why"}
    assert template.inverted("why? Again: how") is None


# -- a rendered template gives its values back, or nothing -----------------------------------------

FORMS = {
    "f-string": "Use: {context}\n\nQuestion: {input}.",
    "mustache": "Use: {{context}}\n\nQuestion: {{{input}}}.",
    "jinja2": "Use: {{ context }}\n\nQuestion: {{ input }}.{# said #}",
}


@pytest.mark.parametrize("form", FORMS)
@given(context=values, question=values)
def test_what_was_put_into_one_message_comes_back_or_nothing(
    form: str, context: str, question: str
) -> None:
    prompt = ChatPromptTemplate.from_template(FORMS[form], template_format=form)
    put = {"context": context, "input": question}
    messages = prompt.format_messages(**put)
    found = Template(prompt).inverted(chat_of(messages))
    if "\n\nQuestion: " not in context + question:
        assert found is not None
    if found is not None:
        assert found.values == put
        assert prompt.format_messages(**found.values) == messages


@pytest.mark.parametrize("form", FORMS)
@given(context=values, question=values)
def test_what_was_put_into_a_plain_prompt_comes_back_or_nothing(
    form: str, context: str, question: str
) -> None:
    prompt = PromptTemplate.from_template(FORMS[form], template_format=form)
    put = {"context": context, "input": question}
    text = prompt.format(**put)
    template = Template(prompt)
    found = template.inverted(text)
    assert found == template.inverted(chat_of([HumanMessage(text)]))
    if found is not None:
        assert found.values == put
        assert prompt.format(**found.values) == text


SPLIT = ChatPromptTemplate(
    [
        ("system", "Answer in {language}, from this only:\n{context}"),
        ("human", "What is 2 + 2?"),
        ("ai", "4"),
        MessagesPlaceholder("history", optional=True),
        ("human", "{input}"),
    ]
)
turns = st.lists(
    st.builds(lambda kind, text: kind(text), st.sampled_from([HumanMessage, AIMessage]), values),
    max_size=3,
)


@given(language=values, context=values, question=values, history=turns)
def test_what_was_put_into_a_conversation_comes_back(
    language: str, context: str, question: str, history: list[BaseMessage]
) -> None:
    put = {"language": language, "context": context, "input": question}
    messages = SPLIT.format_messages(**put, history=history)
    found = Template(SPLIT).inverted(chat_of(messages))
    if ", from this only:\n" not in language + context:
        assert found is not None
    if found is not None:
        assert found.values == put
        [spoken] = [told for part, told in found.parts if getattr(part, "name", "") == "history"]
        assert [each["content"] for each in spoken] == [turn.content for turn in history]


@given(st.lists(st.sampled_from("ha"), max_size=4), st.lists(st.sampled_from("ha"), max_size=3))
def test_two_placeholders_are_told_apart_or_nothing_is_found(
    before: list[str], after: list[str]
) -> None:
    template = ChatPromptTemplate(
        [("placeholder", "{history}"), ("human", "{input}"), ("placeholder", "{scratchpad}")]
    )
    kinds = {"h": HumanMessage, "a": AIMessage}
    put = {
        "history": [kinds[each]("said") for each in before],
        "scratchpad": [kinds[each]("said") for each in after],
    }
    found = Template(template).inverted(chat_of(template.format_messages(input="why", **put)))
    if "h" in before or "h" in after:
        assert found is None
    else:
        assert found is not None
        assert found.values == {"input": "why"}


# -- another prompt --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HumanMessage("Use: x\n\nQuestion: y")],
        [HumanMessage("Use: \n\nQuestion.")],
        [SystemMessage("Use: x\n\nQuestion: y.")],
        [HumanMessage("Use: x\n\nQuestion: y.", name="ann")],
        [HumanMessage([{"type": "text", "text": "Use: x\n\nQuestion: y."}])],
        [HumanMessage("Use: x\n\nQuestion: y."), AIMessage("z")],
        [HumanMessage("Use: x\n\nQuestion: y\n\nQuestion: z.")],
    ],
)
def test_nothing_is_found_in_another_prompt(messages: list[BaseMessage]) -> None:
    template = Template(ChatPromptTemplate.from_template(FORMS["f-string"]))
    assert template.inverted(prompts.of_messages(messages)) is None
    assert template.inverted("Use: x\n\nQuestion: y.") is None


def test_a_mustache_value_is_read_only_as_it_would_be_rendered() -> None:
    template = Template(PromptTemplate.from_template("Q: {{input}}", template_format="mustache"))
    for rendered, value in {"&lt;b&gt; &amp; &amp;quot;": "<b> & &quot;", "plain": "plain"}.items():
        found = template.inverted("Q: " + rendered)
        assert found is not None
        assert found.values == {"input": value}
    for never_rendered in ("<b>", "a & b", "&eacute;", '"'):
        assert template.inverted("Q: " + never_rendered) is None


# -- partial values, parts of templates ------------------------------------------------------------


def test_a_fixed_value_is_text_and_one_that_is_computed_is_read() -> None:
    prompt = ChatPromptTemplate.from_template("In {language}, on {day}: {input}").partial(
        language="French", day=lambda: "Monday"
    )
    template = Template(prompt)
    [message] = prompt.format_messages(input="why")
    found = template.inverted(chat_of([message]))
    assert found is not None
    assert found.values == {"day": "Monday", "input": "why"}
    [other] = prompt.format_messages(input="why", language="German")
    assert template.inverted(chat_of([other])) is None


def test_a_fixed_value_of_a_message_gives_way_to_that_of_the_chat() -> None:
    inner = PromptTemplate.from_template("{tone}: {input}", partial_variables={"tone": "kind"})
    prompt = ChatPromptTemplate([HumanMessagePromptTemplate(prompt=inner)])
    for given_too in ({}, {"tone": "curt"}):
        chat = prompt.partial(**given_too)
        found = Template(chat).inverted(chat_of(chat.format_messages(input="why")))
        assert found is not None
        assert found.values == {"input": "why"}


def test_a_fixed_mustache_value_is_escaped_as_it_is_rendered() -> None:
    prompt = PromptTemplate.from_template(
        "{{unit}}: {{input}}", template_format="mustache", partial_variables={"unit": "<m> & k"}
    )
    found = Template(prompt).inverted(prompt.format(input="why"))
    assert found is not None
    assert found.values == {"input": "why"}


def test_examples_chats_within_chats_and_roles_are_read() -> None:
    examples = FewShotChatMessagePromptTemplate(
        examples=[{"q": "2+2", "a": "4"}, {"q": "2+3", "a": "5"}],
        example_prompt=ChatPromptTemplate([("human", "{q}"), ("ai", "{a}")]),
    )
    role = ChatMessagePromptTemplate.from_template("Ask {input}", role="critic")
    inner = ChatPromptTemplate([SystemMessage("Be brief"), examples])
    prompt = ChatPromptTemplate([inner, role])
    found = Template(prompt).inverted(chat_of(prompt.format_messages(input="why")))
    assert found is not None
    assert found.values == {"input": "why"}


# -- what cannot be read backwards is refused when it is given --------------------------------------


class Louder(ChatPromptTemplate):
    def format_messages(self, **kwargs: Any) -> list[BaseMessage]:
        return [
            HumanMessage(str(each.content).upper()) for each in super().format_messages(**kwargs)
        ]


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (PromptTemplate.from_template("{context}{input}"), "next to each other"),
        (PromptTemplate.from_template("{input!r}"), "formats 'input'"),
        (PromptTemplate.from_template("{input:>9}"), "formats 'input'"),
        (
            PromptTemplate.from_template("{{#a}}{{input}}{{/a}}", template_format="mustache"),
            "has a section 'a'",
        ),
        (
            PromptTemplate.from_template("{{^a}}x{{/a}}{{input}}", template_format="mustache"),
            "has a inverted section 'a'",
        ),
        (
            PromptTemplate.from_template("{{ input|upper }}", template_format="jinja2"),
            "expression 'filter'",
        ),
        (
            PromptTemplate.from_template(
                "{% for one in context %}{{ one }}{% endfor %}{{ input }}", template_format="jinja2"
            ),
            "statement 'for'",
        ),
        (
            ChatPromptTemplate([("human", [{"type": "text", "text": "{input}"}])]),
            "message of several parts",
        ),
        (Louder([("human", "{input}")]), "a Louder"),
        (
            FewShotPromptTemplate(
                examples=[], example_prompt=PromptTemplate.from_template("x"), suffix="{input}"
            ),
            "a FewShotPromptTemplate",
        ),
        (
            ChatPromptTemplate([("placeholder", f"{{{name}}}") for name in "abc"]),
            "3 placeholders",
        ),
        (ChatPromptTemplate([("placeholder", "{a}"), ("placeholder", "{a}")]), "twice"),
        (
            ChatPromptTemplate([HumanMessage("x", additional_kwargs={"at": object()})]),
            "cannot be told",
        ),
    ],
)
def test_what_cannot_be_read_backwards_is_refused(template: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Template(template)
