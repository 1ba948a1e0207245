"""A: what changes the answer is in the key."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, create_model

from benchmarks.cases.rig import App, Rig, Suite, ask_in_turn, saying
from benchmarks.cases.words import QUESTION, Ability, Call, Model, Said
from stampcache import ConfigError, Evidence, Miss, Reason, Request

SUITE = Suite()
PROVIDERS_OWN: Sequence[dict[str, Any]] = (
    {},
    {"thinking": {"type": "enabled"}},
    {"thinking": {"type": "disabled"}},
    {"reasoning_effort": "high"},
    {"top_k": 20},
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}},
    {"guided_json": {"type": "object"}},
    {"a_parameter_of_next_year": 1},
)


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return city


def get_balance(account: str) -> str:
    """Tell the balance of an account."""
    return account


def tool(**properties: str) -> dict[str, Any]:
    """Return a tool of one name, with these parameters."""
    parameters = {name: {"type": kind} for name, kind in properties.items()}
    return {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Find something.",
            "parameters": {"type": "object", "properties": parameters},
        },
    }


def each_is_answered(apps: Sequence[App], call: Call) -> None:
    """Each of these must ask its own model, in both ways, and be served its own answer."""
    for app in apps:
        app.ask(call)
        ask_in_turn(app, call, is_async=True)
    assert [app.calls for app in apps] == [1] * len(apps)


def all_differ(app: App, calls: Sequence[Call]) -> None:
    """Each of these calls is a question of its own, and each is kept."""
    for is_async in (False, True):
        texts = [ask_in_turn(app, call, is_async=is_async).text for call in calls]
        assert len(set(texts)) == len(calls)
    assert app.calls == len(calls)


@SUITE.case("A1", "options of one call are keyed", Ability.OPTIONS)
def options_of_one_call(rig: Rig) -> None:
    """Calls that differ in ``max_tokens`` or ``temperature`` only; of a model of plain text, too."""
    options: Sequence[dict[str, Any]] = (
        {}, {"max_tokens": 8}, {"max_tokens": 800}, {"temperature": 0.9}, {"seed": 7},
    )  # fmt: skip
    calls = [Call(options=given) for given in options]
    all_differ(rig.app(), calls)
    if rig.has(Ability.PLAIN_TEXT):
        all_differ(rig.plain_text(), calls)


@SUITE.case("A2", "a setting changed on a living model is a miss", Ability.CHANGES)
def a_living_model_is_changed(rig: Rig) -> None:
    """The key is that of the model as it is when it is asked."""
    app = rig.app()
    before = app.ask(Call())
    app.change(temperature=0.8)
    warm = app.ask(Call())
    app.change(temperature=0.0, model="fake-2")
    other = ask_in_turn(app, Call(), is_async=True)
    assert len({before.text, warm.text, other.text}) == 3
    app.change(model="fake-1")
    assert app.ask(Call()).text == before.text
    assert app.calls == 3


@SUITE.case("A3", "two models, endpoints or deployments never share", Ability.ENDPOINT)
def two_models_of_one_question(rig: Rig) -> None:
    """Neither another name, nor another server or deployment under the same name."""
    models = (
        Model(),
        Model(name="fake-2"),
        Model(endpoint="http://two.example/v1"),
        Model(params={"deployment": "blue"}),
        Model(params={"deployment": "green"}),
    )
    each_is_answered([rig.app(model) for model in models], Call())


@SUITE.case("A6", "unknown parameters are keyed", Ability.PARAMETERS)
def unknown_parameters(rig: Rig) -> None:
    """A provider's own parameter, which no list knows, may change the answer; so may what is in it."""
    each_is_answered([rig.app(Model(params=params)) for params in PROVIDERS_OWN], Call())


class Leave(BaseModel):
    """How long leave is."""

    days: int


def _changed_schema() -> type[BaseModel]:
    """Return another class of the same name and place."""
    return create_model(
        "Leave", __module__=__name__, days=(str, ...), why=(str, ...), __doc__=Leave.__doc__
    )


@SUITE.case("A9", "tools, their choice and the schema of an answer are keyed", Ability.TOOLS)
def tools_and_schemas(rig: Rig) -> None:
    """Also where a tool or a class of the same name has changed."""
    all_differ(
        rig.app(),
        [
            Call(),
            Call(tools=[get_weather]),
            Call(tools=[get_balance]),
            Call(tools=[get_weather, get_balance]),
            Call(tools=[tool(text="string")]),
            Call(tools=[tool(text="integer")]),
        ],
    )
    if rig.has(Ability.TOOL_TURNS):
        chosen = (None, "auto", "none")
        all_differ(rig.app(), [Call(tools=[get_weather], tool_choice=one) for one in chosen][1:])
    if rig.has(Ability.SCHEMAS):
        _changed_schemas(rig.app())


def _changed_schemas(app: App) -> None:
    first = Said(tool=("Leave", {"days": 30}))
    second = Said(tool=("Leave", {"days": "thirty", "why": "It says so."}))
    app.reply_with(saying(first, second))
    app.ask(Call(schema=Leave))
    other = _changed_schema()
    raw = app.ask(Call(schema=other)).raw
    assert isinstance(raw, other)
    assert app.calls == 2


@SUITE.case("A12", "a missing temperature is not 0", Ability.PARAMETERS, Ability.REPLIES)
def no_temperature(rig: Rig) -> None:
    """What the provider takes by default is unknown."""
    each_is_answered([rig.app(Model(temperature=None)), rig.app(Model(temperature=0.0))], Call())


@SUITE.case(
    "A14", "several settings in one store: all reading is filtered", Ability.PARAMETERS,
    Ability.MEANING,
)  # fmt: skip
def many_models_in_one_store(rig: Rig) -> None:
    """The neighbours of a question under other settings neither answer nor crowd out its own."""
    apps = [rig.app(Model(name=f"fake-{number}")) for number in range(12)]
    replies = [app.ask(Call(tenant="ann")) for app in apps]
    near = Call(question="How long does annual leave last?", tenant="ann")
    assert [app.ask(near).text for app in apps] == [reply.text for reply in replies]
    assert [app.calls for app in apps] == [1] * len(apps)
    entry = apps[0].ask(Call(tenant="ann")).told["entry_id"]
    assert rig.cache.report_bad(entry)
    assert [app.ask(Call(tenant="ann")).told["hit"] for app in apps] == [False] + [True] * 11


@SUITE.case(
    "A16", "functions without a name are two identities, or are not cached", Ability.CALLABLES
)
def functions_without_a_name(rig: Rig) -> None:
    """Two lambdas of one place, and two closures of one function, do different things."""
    shout, whisper = (lambda text: text.upper()), (lambda text: text.lower())
    closures = [_adding(mark) for mark in ("!", "?")]
    for pair in ((shout, whisper), closures):
        apps = [app for function in pair if (app := _with(rig, function)) is not None]
        for app in apps:
            app.ask(Call())
        assert all(app.calls == 1 for app in apps)


def _adding(mark: str) -> Callable[[str], str]:
    return lambda text: text + mark


def _with(rig: Rig, function: Any) -> App | None:
    """Return an application with a function in it, unless that is refused."""
    try:
        return rig.with_function(function)
    except ConfigError:
        return None


class _Client:
    """An object that tells nothing of what it holds."""

    def __init__(self, held: str) -> None:
        self.held = held

    def __repr__(self) -> str:
        return "<Client at 0x7f0000000000>"


@SUITE.case("A18", "parts are not joined", Ability.HISTORY)
def parts_that_join_to_the_same(rig: Rig) -> None:
    """Turns or chunks that give the same text when they are put together are not the same."""
    pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("a", "b\nai: c")]
    histories = [[("human", one), ("ai", two)] for one, two in pairs]
    all_differ(rig.app(), [Call(history=history) for history in histories])


@SUITE.case("A18 (chunks)", "chunks are told apart, each with its own id", Ability.CORE)
def chunks_that_join_to_the_same(rig: Rig) -> None:
    """``["ab", "c"]`` and ``["a", "bc"]`` as evidence; and two chunks of one text."""
    request = Request(question=QUESTION)
    for texts in (["ab", "c"], ["a", "bc"]):
        evidence = tuple(Evidence(text=text) for text in texts)
        asked = Request(question=QUESTION, evidence=evidence)
        found = rig.cache.lookup(asked)
        assert not _serves(found), texts
        rig.cache.update(asked, "An answer.", outcome=found)
    twice = (
        Evidence(source="a", chunk="1", text="same"),
        Evidence(source="b", chunk="2", text="same"),
    )
    rig.cache.update(request, "An answer.", evidence=twice)
    assert rig.cache.invalidate(source="b", chunk="2") == 1


def _serves(outcome: object) -> bool:
    return getattr(outcome, "level", None) is not None


@SUITE.case("A19", "the vector of a query is no vector of a document", Ability.VECTORS)
def roles_of_vectors(rig: Rig) -> None:
    """Many models embed the two differently."""
    app = rig.app()
    query = app.ask(Call()).raw
    [document] = app.vectors([QUESTION])
    assert query[0] != document[0]
    assert app.ask(Call()).raw == query
    assert app.vectors([QUESTION]) == [document]
    assert app.calls == 2


@SUITE.case("A20", "vectors are keyed by model and dimension", Ability.VECTORS)
def models_of_vectors(rig: Rig) -> None:
    """And by the other settings of the embedder."""
    models = (
        Model(), Model(name="fake-2"), Model(params={"dimensions": 256}),
        Model(params={"dimensions": 512}), Model(params={"task": "code"}),
    )  # fmt: skip
    apps = [rig.app(model) for model in models]
    each_is_answered(apps, Call())
    found = [app.vectors([QUESTION])[0] for app in apps]
    assert found == [app.vectors([QUESTION])[0] for app in apps]
    assert [app.calls for app in apps] == [2] * len(apps)


@SUITE.case("A21", "one prompt under two models keeps both answers", Ability.PARAMETERS)
def neither_overwrites_the_other(rig: Rig) -> None:
    """Writing the second must not take the place of the first."""
    one, two = rig.app(Model(name="fake-1")), rig.app(Model(name="fake-2"))
    two.reply_with(saying(Said(text="of the second")))
    first, second = one.ask(Call()), two.ask(Call())
    assert one.ask(Call()).text == first.text
    assert two.ask(Call()).text == second.text
    assert (one.calls, two.calls) == (1, 1)


@SUITE.case("A22", "one prompt of two users keeps both answers", Ability.TENANTS)
def two_users(rig: Rig) -> None:
    """Neither sees the other's answer, nor loses its own."""
    app = rig.app()
    ann, bob = app.ask(Call(tenant="ann")), app.ask(Call(tenant="bob"))
    assert ann.text != bob.text
    for is_async in (False, True):
        assert ask_in_turn(app, Call(tenant="ann"), is_async=is_async).text == ann.text
        assert ask_in_turn(app, Call(tenant="bob"), is_async=is_async).text == bob.text


@SUITE.case("A25", "an object that tells nothing of itself is no key", Ability.PARAMETERS)
def an_object_without_identity(rig: Rig) -> None:
    """By its representation two such objects are the same; by their address, too, one after the other."""
    apps: list[App] = []
    for held in ("one", "two"):
        try:
            apps.append(rig.app(Model(params={"client": _Client(held)})))
        except ConfigError:
            continue  # refused, which is as good
    for app in apps:
        app.ask(Call())
    assert all(app.calls == 1 for app in apps), "one was served the other's answer"
    if rig.has(Ability.CORE):
        outcome = rig.cache.lookup(Request(question=QUESTION, params={"client": _Client("one")}))
        assert isinstance(outcome, Miss) and outcome.reason is Reason.UNCACHEABLE
