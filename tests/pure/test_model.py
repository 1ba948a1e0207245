"""The records: what they compute when they are made, and that nothing of them can be changed."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.errors import CanonicalError, ConfigError
from stampcache.model import AS_SET, Answer, Controls, Evidence, Level, Reason, Scope, Stamps, Usage
from stampcache.outcome import Hit, Saved
from stampcache.request import Request, Seam, Settings
from stampcache.testing.contract import make_entry


def test_settings_are_digested_once_when_they_are_made() -> None:
    params = {"temperature": 0.0}
    settings = Settings(model="m", params=params)
    digest = settings.digest
    params["temperature"] = 1.0
    assert settings.digest == digest
    assert settings.digest == Settings(model="m", params={"temperature": 0}).digest


def test_settings_without_a_form_say_so_and_do_not_raise() -> None:
    settings = Settings(params={"callback": print})
    assert settings.digest == ""
    assert "value.callback" in settings.problem
    mended = msgspec.structs.replace(settings, params={})
    assert mended.problem == ""
    assert mended.digest == Settings().digest


def test_a_digest_cannot_be_given() -> None:
    assert Settings(digest="v1:00").digest == Settings().digest


def test_j15_defaults_are_not_shared() -> None:
    one, other = Settings(), Settings()
    one.params["x"] = 1  # type: ignore[index]  # somebody does it anyway
    assert other.params == {}
    first, second = Request(question="q"), Request(question="q")
    first.params["x"] = 1  # type: ignore[index]
    assert second.params == {}


def test_records_are_frozen() -> None:
    for record in (Scope(), Stamps(), Settings(), Request(), Answer(text=""), Evidence()):
        for name in record.__struct_fields__:
            with pytest.raises(AttributeError, match="immutable"):
                setattr(record, name, "other")


def test_a_request_has_settings_whichever_way_they_are_given() -> None:
    settings = Settings(model="m", params={"a": 1}, seam=Seam.MODEL)
    assert Request(question="q", settings=settings).runs is settings
    short = Request(question="q", model="m", params={"a": 1})
    assert short.runs == Settings(model="m", params={"a": 1})
    again = msgspec.structs.replace(short, question="r")
    assert again.runs == short.runs


@pytest.mark.parametrize(
    "short",
    [
        {"model": "n"},
        {"params": {"temperature": 1}},
        {"tools": ({"name": "t"},)},
        {"system": "s"},
        {"endpoint": "e"},
        {"stamps": Stamps(index="i")},
    ],
)
def test_a1_options_beside_settings_are_never_ignored(short: dict[str, object]) -> None:
    settings = Settings(model="m")
    with pytest.raises(ConfigError, match="give all of them in settings="):
        msgspec.convert({"settings": settings, **short}, Request, from_attributes=True)
    with pytest.raises(ConfigError):
        msgspec.structs.replace(Request(model="m"), **short)
    Request(model="m", settings=Settings(model="m", seam=Seam.MODEL))


def test_evidence_may_be_any_sequence() -> None:
    chunk = Evidence(text="t")
    request = Request(question="q", evidence=[chunk])  # type: ignore[arg-type]
    assert request.evidence == (chunk,)


class Starred(str):
    """A string that prints as something else, as secrets do."""

    __slots__ = ()

    def __str__(self) -> str:
        return "***"


def test_a_question_is_what_it_holds_and_not_what_it_prints_as() -> None:
    question = Request(question=Starred("What is a map?")).question
    assert (type(question), question) == (str, "What is a map?")


def test_sealed_evidence_keeps_the_digest_without_the_text() -> None:
    chunk = Evidence(
        corpus="c", source="s", chunk="1", text="t", metadata={"p": 1}, score=0.5, rank=2
    )
    sealed = chunk.sealed()
    assert (sealed.text, sealed.metadata) == ("", None)
    assert sealed.digest == chunk.digest
    assert (sealed.corpus, sealed.source, sealed.chunk) == ("c", "s", "1")
    assert (sealed.score, sealed.rank) == (0.5, 2)
    assert sealed.sealed() is sealed


def test_metadata_without_a_form_is_refused() -> None:
    with pytest.raises(CanonicalError, match=r"value\.when"):
        Evidence(text="t", metadata={"when": object()})


def test_stamps_are_filled_in_where_they_are_unknown() -> None:
    ours = Stamps(model="m", index="i")
    theirs = Stamps(model="n", tokenizer="t", embedder="e", prompt="p", index="j")
    assert ours.over(theirs) == Stamps(
        model="m", tokenizer="t", embedder="e", prompt="p", index="i"
    )
    assert Stamps().over(theirs) == theirs
    assert theirs.over(Stamps()) == theirs


def test_usage_sums_what_is_known() -> None:
    assert Usage().total == 0
    assert Usage(input_tokens=3, output_tokens=4, cached_tokens=2).total == 7


def hit(answer: Answer) -> Hit:
    entry = msgspec.structs.replace(make_entry("k", entry_id="e1"), answer=answer)
    return Hit(entry=entry, level=Level.EXACT, similarity=1.0, reason=Reason.SAME_TOKENS)


def test_h11_an_answer_is_the_callers_own_copy() -> None:
    one = hit(Answer(text="", tool_calls=({"name": "t", "args": {"x": [1]}},)))
    taken = one.answer.tool_calls[0]
    taken["args"]["x"].append(2)  # type: ignore[index]
    assert one.answer.tool_calls == ({"name": "t", "args": {"x": [1]}},)
    plain = hit(Answer(text="t"))
    assert plain.answer == Answer(text="t")


def test_tool_calls_may_be_any_sequence() -> None:
    calls = [{"name": "t"}]
    answer = Answer(text="", tool_calls=calls)  # type: ignore[arg-type]
    calls.append({"name": "u"})
    assert answer.tool_calls == ({"name": "t"},)


def test_a_hit_tells_what_it_saved() -> None:
    usage = Usage(input_tokens=3)
    one = hit(Answer(text="t", usage=usage, cost=0.5, latency_s=2.0))
    assert one.saved == Saved(input_tokens=3, output_tokens=0, cost=0.5, latency_s=2.0)
    assert one.entry_id == "e1"


# -- controls (ADR 0016) ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ttl_s": 0}, "ttl_s= is 0"),
        ({"ttl_s": -1.0}, "ttl_s= is -1.0"),
        ({"ttl_s": float("nan")}, "ttl_s= is nan"),
        ({"ttl_s": float("inf")}, "ttl_s= is inf"),
        ({"ttl_s": 10**400}, "ttl_s= is 1"),
        ({"ttl_s": "60"}, "ttl_s= is '60'"),
        ({"ttl_s": True}, "ttl_s= is True"),
        ({"variety": 0}, "variety= is 0"),
        ({"variety": 2.0}, "variety= is 2.0"),
        ({"variety": True}, "variety= is True"),
        ({"variety": "3"}, "variety= is '3'"),
        ({"no_cache": "false"}, "no_cache= is 'false'"),
        ({"no_cache": 1}, "no_cache= is 1"),
        ({"no_store": None}, "no_store= is None"),
    ],
)
def test_a_control_that_nobody_can_follow_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Controls(**options)


FLAGS = st.booleans()
CONTROLS = st.builds(
    Controls,
    no_cache=FLAGS,
    no_store=FLAGS,
    ttl_s=st.none() | st.floats(0.1, 1e9) | st.integers(1, 10**300),
    variety=st.integers(1, 9),
)


@given(CONTROLS, CONTROLS, CONTROLS)
def test_of_controls_around_each_other_the_inner_ones_win_and_nothing_told_is_lost(
    inner: Controls, around: Controls, outermost: Controls
) -> None:
    both = inner.over(around)
    assert both.no_cache == (inner.no_cache or around.no_cache)
    assert both.no_store == (inner.no_store or around.no_store)
    assert both.ttl_s == (around.ttl_s if inner.ttl_s is None else inner.ttl_s)
    assert both.variety == (around.variety if inner.variety == 1 else inner.variety)
    assert both.over(outermost) == inner.over(around.over(outermost))
    assert inner.over(AS_SET) == AS_SET.over(inner) == inner
