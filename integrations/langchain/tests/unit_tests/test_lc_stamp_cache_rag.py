"""`StampCache` below a RAG prompt: the question in it, the chunks in it, and what else it holds."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_fakes import CountingChat, CountingLLM

import stampcache
from langchain_stampcache import StampCache
from langchain_stampcache.llm_cache.finding import InPrompt
from stampcache import ConfigError, Evidence, Manifest, Stamps
from stampcache.testing import AngleEmbedder

ASKED, NEAR, FAR = "What is the leave policy?", "Tell me the leave policy", "Where is lunch?"
LEAVE, TRAVEL = "Staff have 30 days of leave.", "Trains are booked by the office."
ONE_MESSAGE = ChatPromptTemplate.from_template("Use: {context}\n\nQuestion: {input}")
SPLIT = ChatPromptTemplate(
    [
        ("system", "Answer in {language}, from this only:\n{context}"),
        MessagesPlaceholder("history", optional=True),
        ("human", "{input}"),
    ]
)
INDEX = Stamps(index="built-1")


class Recording(AngleEmbedder):
    """Keeps the texts that it was given."""

    def __init__(self) -> None:
        super().__init__({ASKED: 0.0, NEAR: 5.0, FAR: 90.0})
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts.extend(texts)
        return super().embed(texts)


class App:
    """A model behind a cache of its own, asked through a prompt template."""

    def __init__(self, prompt: Any = ONE_MESSAGE, **options: Any) -> None:
        self.embedder = Recording()
        options.setdefault("template", prompt)
        self.cache = StampCache("memory://", embedder=self.embedder, calibration=0.9, **options)
        self.embedder.texts.clear()  # what it was tried with
        self.model = CountingChat(cache=self.cache)
        self.prompt = prompt

    def ask(self, question: str = ASKED, *chunks: str, **values: Any) -> BaseMessage:
        context = "\n\n".join(chunks)
        return self.model.invoke(
            self.prompt.format_messages(input=question, context=context, **values)
        )

    def reported(self, question: str = ASKED, *chunks: str, **values: Any) -> tuple[Any, ...]:
        cache = self.ask(question, *chunks, **values).response_metadata["cache"]
        return cache["hit"], cache["level"], cache["reason"]

    @property
    def counters(self) -> dict[str, int]:
        return dict(self.cache.cache.stats(everything=True).counters)


HIT = (True, "exact", "same tokens")
NEAR_HIT = (True, "semantic", "same question")
STALE = (False, None, "evidence changed")
NOT_FOUND = (False, None, "not found")
BELOW = (False, None, "below threshold")


# -- the question is found by the template ---------------------------------------------------------


@pytest.mark.parametrize("prompt", [ONE_MESSAGE, SPLIT.partial(language="English")])
def test_b11_b12_c2_a_paraphrase_hits_inside_a_rag_prompt(prompt: Any) -> None:
    app = App(prompt)
    first = app.ask(ASKED, LEAVE, TRAVEL)
    assert app.reported(ASKED, LEAVE, TRAVEL) == HIT
    near = app.ask(NEAR, LEAVE, TRAVEL)
    assert near.content == first.content
    assert near.response_metadata["cache"]["level"] == "semantic"
    assert app.reported(FAR, LEAVE, TRAVEL) == BELOW
    assert app.model.calls == 2
    assert set(app.embedder.texts) == {ASKED, NEAR, FAR}


async def test_async_finds_the_same() -> None:
    app = App()
    for question, expected in ((ASKED, NOT_FOUND), (ASKED, HIT), (NEAR, NEAR_HIT)):
        messages = ONE_MESSAGE.format_messages(input=question, context=LEAVE)
        cache = (await app.model.ainvoke(messages)).response_metadata["cache"]
        assert (cache["hit"], cache["level"], cache["reason"]) == expected


def test_f1_f2_a_changed_chunk_is_stale_and_the_answer_is_made_anew() -> None:
    app = App()
    app.ask(ASKED, LEAVE, TRAVEL)
    assert app.reported(ASKED, "Staff have 32 days of leave.", TRAVEL) == STALE
    assert app.reported(ASKED, "Staff have 32 days of leave.", TRAVEL) == HIT
    assert app.reported(ASKED, LEAVE, TRAVEL) == STALE
    assert app.model.calls == 3
    assert app.cache.cache.stats(everything=True).entries == 1


@pytest.mark.parametrize(
    "chunks", [(), (LEAVE,), (LEAVE, TRAVEL, "More."), (LEAVE + TRAVEL,), (TRAVEL, LEAVE)]
)
def test_other_chunks_are_stale_for_the_same_question(chunks: tuple[str, ...]) -> None:
    app = App()
    app.ask(ASKED, LEAVE, TRAVEL)
    assert app.reported(ASKED, *chunks) == STALE


def test_by_meaning_the_set_of_chunks_must_be_the_same_in_whatever_order() -> None:
    app = App()
    app.ask(ASKED, LEAVE, TRAVEL)
    assert app.reported(NEAR, TRAVEL, LEAVE) == NEAR_HIT
    for chunks in ((LEAVE,), (LEAVE, TRAVEL, LEAVE), (LEAVE, "Trains are late."), ()):
        hit, level, _ = app.reported(NEAR, *chunks)
        assert (hit, level) == (False, None)


def test_what_was_found_in_nothing_is_not_served_once_something_is_found() -> None:
    app = App()
    app.ask(ASKED)
    assert app.reported(ASKED) == HIT
    assert app.reported(ASKED, LEAVE) == STALE


@pytest.mark.parametrize(
    "values",
    [
        {"language": "French"},
        {"language": "English\n"},
    ],
)
def test_d1_another_value_in_the_prompt_is_another_partition(values: dict[str, str]) -> None:
    app = App(SPLIT)
    app.ask(ASKED, LEAVE, language="English")
    assert app.reported(ASKED, LEAVE, **values) == NOT_FOUND
    assert app.reported(NEAR, LEAVE, **values) == NEAR_HIT  # of the answer just made


def test_another_template_is_another_partition() -> None:
    app = App()
    app.ask(ASKED, LEAVE)
    with stampcache.scope():
        other = StampCache(
            app.cache.cache, template=ChatPromptTemplate.from_template("{context}\n\n{input}")
        )
        model = CountingChat(cache=other)
        model.invoke(f"{LEAVE}\n\n{NEAR}")
    assert model.calls == 1


def test_d4_d8_with_a_history_it_is_matched_exactly_only() -> None:
    app = App(SPLIT)
    history = [HumanMessage("Hello"), AIMessage("Hello!")]
    app.ask(ASKED, LEAVE, language="English")
    assert app.reported(ASKED, LEAVE, language="English", history=history) == NOT_FOUND
    assert app.reported(ASKED, LEAVE, language="English", history=history) == HIT
    assert app.reported(ASKED, TRAVEL, language="English", history=history) == STALE
    assert app.reported(NEAR, LEAVE, language="English", history=history)[0] is False
    other = [HumanMessage("Hi"), AIMessage("Hello!")]
    assert app.reported(ASKED, LEAVE, language="English", history=other) == NOT_FOUND


def test_a_placeholder_may_hold_the_question() -> None:
    prompt = ChatPromptTemplate([("system", "Use {context}"), ("placeholder", "{messages}")])
    app = App(prompt, question_variable="messages")
    turns = [HumanMessage(ASKED)]
    app.ask(ASKED, LEAVE, messages=turns)
    assert app.reported(ASKED, LEAVE, messages=[HumanMessage(NEAR)]) == NEAR_HIT
    assert app.reported(ASKED, TRAVEL, messages=turns) == STALE
    longer = [HumanMessage("Hello"), AIMessage("Hello!"), *turns]
    assert app.reported(ASKED, LEAVE, messages=longer) == NOT_FOUND
    assert app.reported(ASKED, LEAVE, messages=longer) == HIT
    waiting = [*turns, AIMessage("Hm")]
    assert app.reported(ASKED, LEAVE, messages=waiting) == NOT_FOUND
    assert app.reported(ASKED, LEAVE, messages=waiting) == HIT


def test_where_two_readings_are_possible_only_the_whole_prompt_hits() -> None:
    app = App()
    inside = f"{LEAVE}\n\nQuestion: {ASKED}"
    app.ask(ASKED, inside)
    assert app.reported(ASKED, inside) == HIT
    assert app.reported(NEAR, inside) == NOT_FOUND
    assert app.reported(ASKED, inside, TRAVEL) == NOT_FOUND
    assert app.embedder.texts == []


def test_another_prompt_below_the_same_cache_is_matched_exactly() -> None:
    app = App()
    for expected in (1, 1):
        app.model.invoke("Rephrase: why")
        assert app.model.calls == expected
    assert app.embedder.texts == []


def test_a_plain_prompt_of_a_text_model_is_read_too() -> None:
    template = PromptTemplate.from_template("Use: {context}\n\nQuestion: {query}\nAnswer:")
    app = App(template=template)
    model = CountingLLM(cache=app.cache)
    asked = [template.format(context=LEAVE, query=each) for each in (ASKED, NEAR, ASKED)]
    assert model.invoke(asked[0]) == model.invoke(asked[1]) == model.invoke(asked[2])
    assert model.calls == 1
    model.invoke(template.format(context=TRAVEL, query=ASKED))
    assert model.calls == 2
    assert app.counters["stale.evidence_changed"] == 1


def test_chunks_are_split_where_they_are_joined() -> None:
    for separator, expected in (("\n---\n", NEAR_HIT), ("", "stale"), ("\n\n", "stale")):
        app = App(context_separator=separator)
        app.ask(ASKED, f"{LEAVE}\n---\n{TRAVEL}")
        found = app.reported(NEAR, f"{TRAVEL}\n---\n{LEAVE}")
        assert found == expected or (expected == "stale" and found[0] is False)


def test_two_caches_that_split_otherwise_never_take_one_context_for_the_other() -> None:
    app = App()
    app.ask(ASKED, "one\n\ntwo")
    other = StampCache(app.cache.cache, template=ONE_MESSAGE, context_separator="|")
    model = CountingChat(cache=other)
    model.invoke(ONE_MESSAGE.format_messages(input=ASKED, context="one|two"))
    assert model.calls == 1


# -- what the user must say of a template ------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "options", "says"),
    [
        ("{topic}", {}, "Which variable of the template is the question"),
        ("{input} {query}", {}, "Which variable of the template is the question"),
        ("{input}", {"question_variable": "q"}, "no variable 'q'"),
        ("{input}", {"context_variable": "c"}, "no variable 'c'"),
        ("{input}", {"question_variable": "input", "context_variable": "input"}, "the same"),
        ("{input}{context}", {}, "next to each other"),
    ],
)
def test_a_template_that_does_not_tell_is_refused(
    template: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        StampCache("memory://", template=ChatPromptTemplate.from_template(template), **options)


def test_variables_without_a_template_are_refused() -> None:
    with pytest.raises(ConfigError, match="template="):
        StampCache("memory://", question_variable="input")


def test_own_names_of_variables_are_taken() -> None:
    prompt = ChatPromptTemplate.from_template("{docs}\n\n{ask}")
    app = App(prompt, question_variable="ask", context_variable="docs")
    for question, expected in ((ASKED, NOT_FOUND), (NEAR, NEAR_HIT)):
        assert app.reported(docs=LEAVE, ask=question) == expected


# -- the question is found by a function -------------------------------------------------------------


def test_a_function_may_find_the_context_too() -> None:
    def extract(text: str) -> InPrompt | None:
        context, found, question = text.removeprefix("Use: ").partition("\n\nQuestion: ")
        return InPrompt(question, context) if found else None

    app = App(template=None, question=extract)
    app.ask(ASKED, LEAVE, TRAVEL)
    assert app.reported(NEAR, TRAVEL, LEAVE) == NEAR_HIT
    assert app.reported(ASKED, LEAVE) == STALE


def test_a_function_is_asked_where_the_template_does_not_fit() -> None:
    app = App(question=lambda text: text.removeprefix("Q: ") if text[:3] == "Q: " else None)
    app.ask(ASKED, LEAVE)
    app.model.invoke(f"Q: {ASKED}")
    near = app.model.invoke(f"Q: {NEAR}").response_metadata["cache"]
    assert near["level"] == "semantic"
    assert app.model.calls == 2


@pytest.mark.parametrize("shown", ["not in there", "e", InPrompt("Q", "e"), InPrompt(" "), "aa"])
def test_what_stands_there_never_or_twice_is_not_cut_out(shown: Any) -> None:
    app = App(template=None, question=lambda text: shown)
    for _ in range(2):
        app.model.invoke("Q is there, aaa")
    assert app.model.calls == 1
    assert app.embedder.texts == []


def test_turns_around_the_text_that_asks_are_history() -> None:
    app = App(template=None, question=lambda text: text)
    call = {"name": "f", "args": {}, "id": "call_1"}
    turns = [
        SystemMessage("s"),
        HumanMessage(ASKED),
        AIMessage("", tool_calls=[call]),
        ToolMessage("3", tool_call_id="call_1"),
    ]
    for expected in (1, 1):
        app.model.invoke(turns)
        assert app.model.calls == expected
    app.model.invoke([turns[0], HumanMessage(NEAR), *turns[2:]])
    app.model.invoke(turns[:2])
    assert app.model.calls == 3
    assert app.model.invoke([turns[0], HumanMessage(NEAR)]).response_metadata["cache"]["hit"]


# -- the question is told by the scope ---------------------------------------------------------------


def chunk(name: str, text: str) -> Evidence:
    return Evidence(corpus="handbook", source=f"{name}.md", chunk=f"{name}-1", text=text)


def told(app: App, question: str, *chunks: Evidence) -> tuple[Any, ...]:
    with stampcache.scope(question=question, evidence=chunks):
        return app.reported(question, *(each.text for each in chunks))


def test_the_scope_tells_question_and_evidence_where_no_template_does() -> None:
    app = App(template=None)
    leave, travel = chunk("leave", LEAVE), chunk("travel", TRAVEL)
    assert told(app, ASKED, leave, travel) == NOT_FOUND
    assert told(app, ASKED, leave, travel) == HIT
    assert told(app, NEAR, travel, leave) == NEAR_HIT
    assert told(app, ASKED, leave) == STALE
    assert set(app.embedder.texts) == {ASKED, NEAR}


def test_a_question_of_the_scope_that_stands_there_twice_is_matched_exactly() -> None:
    app = App(template=None)
    for expected in (NOT_FOUND, HIT):
        with stampcache.scope(question="the"):
            assert app.reported(ASKED + " the", LEAVE) == expected
    assert app.embedder.texts == []


def test_evidence_of_the_scope_that_is_not_in_the_prompt_as_it_is_joined_stays_in_the_rest() -> (
    None
):
    app = App(template=None)
    leave, travel = chunk("leave", LEAVE), chunk("travel", TRAVEL)
    for expected in (NOT_FOUND, HIT):
        with stampcache.scope(question=ASKED, evidence=[leave, travel]):
            assert app.reported(ASKED, f"1. {LEAVE}", f"2. {TRAVEL}") == expected
    with stampcache.scope(question=ASKED, evidence=[leave, travel]):
        assert app.reported(ASKED, f"1. {LEAVE}", f"3. {TRAVEL}") == NOT_FOUND


@pytest.mark.parametrize("grounding", ["recheck", "version"])
def test_f5_a_change_of_a_source_reaches_the_answers_that_cite_it(grounding: Any) -> None:
    app = App(grounding=grounding, stamps=INDEX)
    leave, travel = chunk("leave", LEAVE), chunk("travel", TRAVEL)
    told(app, ASKED, leave, travel)
    assert app.cache.cache.invalidate(source="lunch.md") == 0
    assert told(app, ASKED, leave, travel) == HIT
    assert app.cache.cache.invalidate(corpus="handbook", source="leave.md") == 1
    assert told(app, ASKED, leave, travel) == (False, None, "what it was made from changed")
    assert app.model.calls == 2


def test_evidence_of_the_scope_reaches_answers_that_are_matched_exactly() -> None:
    app = App(template=None)
    with stampcache.scope(evidence=[chunk("leave", LEAVE)]):
        app.ask(ASKED, LEAVE)
        assert app.reported(ASKED, LEAVE) == HIT
    assert app.cache.cache.invalidate(source="leave.md") == 1


def test_contents_are_those_of_the_prompt_whatever_the_scope_says() -> None:
    app = App()
    for context, expected in ((LEAVE, NOT_FOUND), (LEAVE, HIT), (TRAVEL, STALE), ("", STALE)):
        with stampcache.scope(evidence=[chunk("leave", "told otherwise"), chunk("x", "y")]):
            assert app.reported(ASKED, context) == expected
    for context in (f"{TRAVEL}\n\n{TRAVEL}", TRAVEL):
        assert app.reported(ASKED, context)[0] is False


# -- grounding ---------------------------------------------------------------------------------------


def test_under_version_another_context_is_not_compared_until_a_change_is_announced() -> None:
    app = App(grounding="version", stamps=INDEX)
    assert told(app, ASKED, chunk("leave", LEAVE)) == NOT_FOUND
    assert told(app, ASKED, chunk("leave", LEAVE), chunk("travel", TRAVEL)) == HIT
    assert told(app, NEAR, chunk("travel", TRAVEL)) == NEAR_HIT
    app.cache.cache.invalidate(source="travel.md")
    assert told(app, ASKED, chunk("leave", LEAVE)) == HIT


def test_under_version_chunks_without_ids_are_compared_as_under_recheck() -> None:
    app = App(grounding="version", stamps=INDEX)
    app.ask(ASKED, LEAVE)
    assert app.reported(ASKED, LEAVE) == HIT
    assert app.reported(ASKED, TRAVEL) == STALE


def test_under_version_of_the_corpus_any_write_to_it_counts() -> None:
    app = App(
        grounding="version",
        version_of="corpus",
        manifest=Manifest(corpus="handbook", version="7"),
    )
    told(app, ASKED, chunk("leave", LEAVE))
    assert app.cache.cache.invalidate(corpus="handbook", source="new.md") == 1


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_the_version_of_the_index_must_be_known(grounding: Any) -> None:
    with pytest.raises(ConfigError, match="stamps=Stamps"):
        StampCache("memory://", template=ONE_MESSAGE, grounding=grounding)


def test_under_none_time_alone_ends_it() -> None:
    app = App(grounding="none", stamps=INDEX)
    app.ask(ASKED, LEAVE)
    assert app.reported(ASKED, TRAVEL) == HIT
    assert app.reported(NEAR, TRAVEL) == NEAR_HIT
    StampCache("memory://", grounding="none")  # an app without documents has no index


def test_another_index_is_another_partition() -> None:
    app = App(grounding="none", stamps=INDEX)
    app.ask(ASKED, LEAVE)
    rebuilt = StampCache(
        app.cache.cache, template=ONE_MESSAGE, grounding="none", stamps=Stamps(index="built-2")
    )
    app.model.cache = rebuilt
    assert app.reported(ASKED, LEAVE) == NOT_FOUND


def test_a_change_while_the_answer_is_made_keeps_it_out() -> None:
    app = App()

    def reply(messages: list[BaseMessage], call: int) -> AIMessage:
        app.cache.cache.invalidate(corpus="handbook", source="leave.md")
        return AIMessage(f"answer {call}")

    app.model.answering(reply)
    told(app, ASKED, chunk("leave", LEAVE))
    assert app.counters["refused.fenced"] == 1


# -- who asks, and what is told for one call -------------------------------------------------------


def by_config(app: App, question: str, **config: Any) -> tuple[Any, ...]:
    cache = (app.prompt | app.model).invoke({"input": question, "context": LEAVE}, config)
    report = cache.response_metadata["cache"]
    return report["hit"], report["level"], report["reason"]


@pytest.mark.parametrize("place", ["metadata", "configurable"])
def test_e1_the_tenant_of_a_chain_is_taken_from_its_config(place: str) -> None:
    app = App(tenants="required")
    assert by_config(app, ASKED) == (False, None, "no tenant in scope")
    assert by_config(app, ASKED, **{place: {"tenant": "acme"}}) == NOT_FOUND
    assert by_config(app, ASKED, **{place: {"tenant": "acme"}}) == HIT
    assert by_config(app, ASKED, **{place: {"tenant": "other"}}) == NOT_FOUND
    assert by_config(app, NEAR, **{place: {"tenant": "acme", "audience": "u1"}}) == NOT_FOUND
    with stampcache.scope(tenant="acme"):
        assert by_config(app, ASKED, **{place: {"tenant": "other"}}) == HIT


async def test_e1_lookup_and_update_agree_on_it_in_async_chains() -> None:
    app = App(tenants="required")
    chain = app.prompt | RunnableLambda(lambda prompt: prompt) | app.model
    for tenant in ("a", "b", "a"):
        await chain.ainvoke(
            {"input": ASKED, "context": LEAVE}, {"configurable": {"tenant": tenant}}
        )
    assert app.model.calls == 2


@pytest.mark.parametrize("tenant", [7, "", ["a"]])
def test_e13_a_tenant_that_is_no_text_bypasses_and_is_counted(tenant: Any) -> None:
    app = App()
    for _ in range(2):
        reported = by_config(app, ASKED, configurable={"tenant": tenant})
        assert reported == (False, None, "no tenant in scope")
    assert app.model.calls == 2
    assert app.counters["adapter.unscoped"] == 2
    assert app.cache.cache.stats(everything=True).entries == 0


def test_p3_controls_of_the_scope_and_of_the_config_are_followed() -> None:
    app = App()
    with stampcache.scope(no_store=True):
        app.ask(ASKED, LEAVE)
    assert by_config(app, ASKED, metadata={"stampcache": {"no_store": True}}) == NOT_FOUND
    assert by_config(app, ASKED) == NOT_FOUND
    assert by_config(app, ASKED) == HIT
    with stampcache.scope(no_cache=True):
        assert app.reported(ASKED, LEAVE) == (False, None, "told not to look up")
    wrong = by_config(app, ASKED, metadata={"stampcache": {"ttl": 3}})
    assert wrong == (False, None, "uncacheable")
    assert app.counters["error.adapter.controls"] == 1


def test_p4_a_variety_of_answers() -> None:
    app = App()
    with stampcache.scope(variety=2):
        answers = [app.ask(ASKED, LEAVE).content for _ in range(4)]
    assert len(set(answers)) == 2
    assert app.model.calls == 2


def test_p3_a_life_of_one_call() -> None:
    app = App()
    with stampcache.scope(ttl_s=1e-9):
        app.ask(ASKED, LEAVE)
    assert app.reported(ASKED, LEAVE) == (False, None, "expired")
