"""Both faces over both stores: what is in the key and what is not (cases A and B)."""

from typing import Any

import pytest

from stampcache import (
    Answer,
    Hit,
    Miss,
    Reason,
    Refused,
    Request,
    Scope,
    Settings,
    Stamps,
)
from stampcache.request import Seam
from stampcache.testing import AngleEmbedder
from tests.faces import Face, Open

ASKED = Request(question="What is a map?", model="deepseek-chat", params={"temperature": 0})

# -- A: what changes the answer is in the key ------------------------------------------------------


def other(**fields: Any) -> Request:
    """Return ASKED with some fields of its own."""
    params = {"temperature": 0, **fields.pop("params", {})}
    given = {"question": ASKED.question, "model": ASKED.model, "params": params, **fields}
    return Request(**given)


DIFFERENT = [
    Request(question=ASKED.question, model=ASKED.model),  # no temperature is not temperature 0
    other(params={"temperature": None}),
    other(params={"temperature": 1}),
    other(params={"max_tokens": 100}),
    other(params={"thinking": {"type": "enabled"}}),
    other(params={"reasoning_effort": "high"}),
    other(params={"extra_body": {"top_k": 5}}),
    other(params={"guided_json": {"type": "object"}}),
    other(params={"tool_choice": "auto"}),
    other(params={"response_format": {"title": "Map", "type": "object"}}),
    other(params={"response_format": {"title": "Map", "type": "array"}}),
    other(model="deepseek-reasoner"),
    other(endpoint="http://a"),
    other(endpoint="http://b"),
    other(system="Rhyme."),
    other(tools=[{"name": "search", "schema": {"q": "string"}}]),
    other(tools=[{"name": "search", "schema": {"q": "integer"}}]),
    other(stamps=Stamps(prompt="v2")),
    Request(
        question=ASKED.question,
        settings=Settings(model=ASKED.model, params=ASKED.params, seam=Seam.MODEL),
    ),
]


def test_a1_a3_a6_a9_a12_d1_another_setting_is_another_entry(open_face: Open) -> None:
    face = open_face(embedder=AngleEmbedder({"What is a map?": 0.0}), calibration=0.9)
    everything = [ASKED, *DIFFERENT]
    for at, request in enumerate(everything):
        face.fill(request, str(at))
    assert [face.served(request) for request in everything] == [
        str(at) for at in range(len(everything))
    ]


def test_a2_parameters_are_those_of_the_time_of_the_request(face: Face) -> None:
    params = {"temperature": 0.0}
    before = Request(question="q", model="m", params=params)
    face.fill(before)
    params["temperature"] = 1.0
    assert face.served(before) == "answer"
    assert face.served(Request(question="q", model="m", params=params)) is None


def test_a14_two_settings_in_one_store_never_meet(open_face: Open) -> None:
    embedder = AngleEmbedder({"one": 0.0, "two": 1.0})
    face = open_face(embedder=embedder, calibration=0.9)
    left, right = (Request(question="one", model=model) for model in "ab")
    face.fill(left)
    assert face.why(right) is Reason.NOT_FOUND
    assert face.why(Request(question="two", model="b")) is Reason.NOT_FOUND
    face.fill(right)
    assert face.invalidate(stamps=Stamps(model="a")) == 1
    assert [face.served(one) for one in (left, right)] == [None, "answer"]


def test_a21_a22_neither_user_nor_model_overwrites_the_other(face: Face) -> None:
    requests = [
        Request(question="q", model=model, scope=Scope("acme", audience=user))
        for model in ("m", "n")
        for user in ("ann", "bob")
    ]
    for at, request in enumerate(requests):
        face.fill(request, str(at))
    assert [face.served(request) for request in requests] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    "request_",
    [
        Request(question="q", params={"callback": object()}),
        Request(question="q", tools=[lambda: None]),
        Request(question="q", prompt=object()),
        Request(question="q", history=[object()]),
        Request(question="q", params={"at": float("nan")}),
        Request(question="q", params={"n": 10**5000}),
        Request(),
        Request(question=None),  # type: ignore[arg-type]  # not the question "None"
        Request(question=object()),  # type: ignore[arg-type]
    ],
    ids=["param", "tool", "prompt", "history", "nan", "huge", "empty", "none", "object"],
)
def test_a25_what_has_no_canonical_form_is_not_cached(face: Face, request_: Request) -> None:
    outcome = face.lookup(request_)
    assert isinstance(outcome, Miss) and outcome.reason is Reason.UNCACHEABLE
    done = face.update(request_, "x", outcome=outcome)
    assert isinstance(done, Refused) and done.reason is Reason.UNCACHEABLE
    assert face.update(request_, "x") == done
    made = [face.get_or_create(request_, lambda: "made").text for _ in range(2)]
    assert made == ["made"] * 2
    assert face.explain(request_).outcome.reason is Reason.UNCACHEABLE
    assert face.stats(everything=True).counters["miss.uncacheable"] == 3


# -- B: equal requests are equal -------------------------------------------------------------------


def test_b2_b3_the_order_of_dictionaries_does_not_matter(face: Face) -> None:
    face.fill(
        Request(question="q", params={"a": 1, "b": {"c": 1, "d": 2}}, tools=[{"x": 1, "y": 2}])
    )
    other = Request(
        question=" q ", params={"b": {"d": 2, "c": 1.0}, "a": 1}, tools=[{"y": 2, "x": 1}]
    )
    assert face.served(other) == "answer"


def test_b7_calls_with_tools_can_hit(face: Face) -> None:
    settings = Settings(model="m", tools=[{"name": "search"}], seam=Seam.MODEL)
    asked = Request(question="q", settings=settings)
    calls = ({"name": "search", "args": {"q": "map"}},)
    face.update(asked, Answer(text="", tool_calls=calls, finish_reason="tool_calls"))
    hit = face.lookup(asked)
    assert isinstance(hit, Hit)
    assert hit.answer.tool_calls == calls


def test_b8_turn_two_has_one_key_whether_turn_one_hit_or_missed(face: Face) -> None:
    def turn_two() -> Request:
        first = face.get_or_create(Request(question="one"), lambda: "first")
        history = [{"role": "user", "content": "one"}, {"role": "ai", "content": first.text}]
        return Request(question="two", history=history)

    missed = turn_two()
    face.fill(missed, "second")
    assert face.served(turn_two()) == "second"
