"""Identity: any difference in scope, settings or stamps is another Partition; nothing else is."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache import identity
from stampcache.errors import CanonicalError
from stampcache.model import Scope, Stamps
from stampcache.request import Request, Seam, Settings

MASTER = bytes(range(32))
NAMES = st.text(alphabet=st.characters(codec=None), max_size=6)
SCOPES = st.builds(Scope, NAMES, NAMES, NAMES)
STAMPS = st.builds(Stamps, model=NAMES, tokenizer=NAMES, embedder=NAMES, prompt=NAMES, index=NAMES)
PARAMS = st.dictionaries(NAMES, st.none() | st.booleans() | st.integers() | NAMES, max_size=3)
SETTINGS = st.builds(
    Settings,
    model=NAMES,
    endpoint=NAMES,
    params=PARAMS,
    tools=st.lists(PARAMS, max_size=2),
    system=NAMES,
    stamps=STAMPS,
    seam=st.sampled_from(Seam),
    corpus=NAMES,
    whole_corpus=st.booleans(),
)


class Words:
    """A tokenizer whose tokens are the words of a text."""

    stamp = "words-1"

    def tokens(self, text: str) -> bytes:
        return b"\0".join(word.encode() for word in text.split())


def realm(
    scope: Scope | None = None, settings: Settings | None = None, stamps: Stamps | None = None
) -> identity.Realm:
    return identity.realm(MASTER, scope or Scope(), settings or Settings(), stamps or Stamps())


def key(request: Request, scope: Scope | None = None) -> str:
    return identity.identify(request, realm(scope), None).key


# -- partitions ------------------------------------------------------------------------------------


@given(SCOPES, SCOPES, SETTINGS, STAMPS)
def test_e1_scopes_share_a_partition_only_if_equal(
    one: Scope, other: Scope, settings: Settings, stamps: Stamps
) -> None:
    tokenizer = settings.stamps.tokenizer or stamps.tokenizer  # two of them are a mixture
    stamps = replace(stamps, tokenizer=tokenizer)
    first, second = realm(one, settings, stamps), realm(other, settings, stamps)
    assert (first.partition == second.partition) == (one == other)
    assert (first.scope == second.scope) == (one == other)
    assert (first.tenant == second.tenant) == (one.tenant == other.tenant)
    assert (first.secret == second.secret) == (one.tenant == other.tenant)


@given(STAMPS, STAMPS)
def test_stamps_share_a_partition_only_if_equal(one: Stamps, other: Stamps) -> None:
    assert (realm(stamps=one).partition == realm(stamps=other).partition) == (one == other)


BASE = Settings(
    model="m",
    endpoint="e",
    params={"t": 0},
    tools=({"n": 1},),
    system="s",
    stamps=Stamps(index="i"),
)


@pytest.mark.parametrize(
    "other",
    [
        Settings(model="m2", endpoint="e", params={"t": 0}, tools=({"n": 1},), system="s"),
        msgspec.structs.replace(BASE, model="m2"),
        msgspec.structs.replace(BASE, endpoint="e2"),
        msgspec.structs.replace(BASE, params={"t": 1}),
        msgspec.structs.replace(BASE, params={"t": None}),
        msgspec.structs.replace(BASE, params={}),
        msgspec.structs.replace(BASE, params={"t": 0, "thinking": {"type": "enabled"}}),
        msgspec.structs.replace(BASE, tools=()),
        msgspec.structs.replace(BASE, tools=({"n": 2},)),
        msgspec.structs.replace(BASE, tools=({"n": 1}, {"n": 1})),
        msgspec.structs.replace(BASE, system="s2"),
        msgspec.structs.replace(BASE, seam=Seam.MODEL),
        msgspec.structs.replace(BASE, stamps=Stamps(index="i2")),
        msgspec.structs.replace(BASE, stamps=Stamps(model="i")),
        msgspec.structs.replace(BASE, corpus="c"),
        msgspec.structs.replace(BASE, whole_corpus=True),
    ],
)
def test_a6_every_setting_is_a_hard_boundary(other: Settings) -> None:
    assert realm(settings=BASE).partition != realm(settings=other).partition


@given(SETTINGS, SETTINGS)
def test_settings_share_a_partition_only_if_equal(one: Settings, other: Settings) -> None:
    same = msgspec.structs.astuple(one)[:9] == msgspec.structs.astuple(other)[:9]
    if same:  # 0 == False for Python, not for JSON
        same = repr(one) == repr(other) or one.digest == other.digest
    assert (realm(settings=one).partition == realm(settings=other).partition) == same


def test_b2_the_order_of_parameters_does_not_matter() -> None:
    one = Settings(params={"a": 1, "b": {"c": 2, "d": 3}}, tools=({"x": 1, "y": 2},))
    other = Settings(params={"b": {"d": 3, "c": 2.0}, "a": 1}, tools=[{"y": 2, "x": 1}])
    assert realm(settings=one).partition == realm(settings=other).partition


def test_settings_without_a_form_have_no_realm() -> None:
    settings = Settings(params={"callback": object()})
    with pytest.raises(CanonicalError, match=r"value\.callback"):
        realm(settings=settings)


def test_two_stores_have_nothing_in_common() -> None:
    one, other = (identity.realm(m, Scope(), Settings(), Stamps()) for m in (b"a" * 32, b"b" * 32))
    assert not {one.partition, one.scope, one.tenant} & {other.partition, other.scope, other.tenant}


def test_a_long_secret_is_used_in_full() -> None:
    head = b"-----BEGIN PRIVATE KEY-----" + b"x" * 60
    one, other = (identity.tenant_secret(head + tail, "acme") for tail in (b"1", b"2"))
    assert one != other
    assert len(one) == 32


# -- keys ------------------------------------------------------------------------------------------


@given(st.text(), st.text())
def test_questions_share_a_key_only_if_their_forms_are_equal(one: str, other: str) -> None:
    forms = [" ".join(text.split()) for text in (one, other)]
    if not all(forms) or "\n" in one + other:
        return
    same = key(Request(question=one)) == key(Request(question=other))
    assert same or forms[0] != forms[1]


def test_e2_equal_questions_of_two_tenants_have_two_keys() -> None:
    asked = Request(question="How do I leave?")
    assert key(asked, Scope("acme")) != key(asked, Scope("other"))
    assert key(asked, Scope("acme", "a")) == key(asked, Scope("acme", "b"))


REQUESTS: list[Callable[[], Request]] = [
    lambda: Request(question="q"),
    lambda: Request(question="q", prompt=""),
    lambda: Request(question="q", prompt="p"),
    lambda: Request(question="q", prompt=" p"),
    lambda: Request(question="q", prompt="P"),
    lambda: Request(question="q", prompt=["p"]),
    lambda: Request(question="q", prompt='["p"]'),
    lambda: Request(question="q", prompt=[{"role": "user", "content": "p"}]),
    lambda: Request(question="q", history=["p"]),
    lambda: Request(question="q", history=[["p"]]),
    lambda: Request(question="q", prompt="p", history=["p"]),
    lambda: Request(question="", prompt="p"),
    lambda: Request(question="", prompt="q"),
    lambda: Request(question="qp"),
]


def test_d4_prompt_and_history_are_keyed() -> None:
    keys = [key(make()) for make in REQUESTS]
    assert len(set(keys)) == len(keys)
    assert keys == [key(make()) for make in REQUESTS]


def test_a_tokenizer_gives_the_key() -> None:
    where = realm()
    one, other = Request(question="a  b"), Request(question="a b")
    keys = [identity.identify(asked, where, Words()).key for asked in (one, other)]
    assert keys[0] == keys[1] != key(other)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Request(), "empty"),
        (Request(question=" \n\t"), "empty"),
        (Request(prompt=""), "empty"),
        (Request(history=["hi"]), "empty"),
        (Request(question="\ud800"), "no valid Unicode"),
        (Request(question="q", prompt=object()), "value is a object"),
        (Request(question="q", history=[{1: 2}]), "key 1"),
    ],
)
def test_h7_what_has_no_key_is_refused(asked: Request, said: str) -> None:
    with pytest.raises(CanonicalError, match=said):
        key(asked)


@pytest.mark.parametrize("part", ["question", "prompt", "json"])
def test_a_text_that_is_too_long_is_refused(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "MAX_TEXT_CHARS", 10)
    long = "x" * 11
    asked = {
        "question": Request(question=long),
        "prompt": Request(question="q", prompt=long),
        "json": Request(question="q", prompt=[long]),
    }
    with pytest.raises(CanonicalError, match=r"has 1[0-9] characters; at most 10"):
        key(asked[part])
    assert key(Request(question="x" * 10))


def test_lone_surrogates_in_a_prompt_are_kept_apart() -> None:
    prompts = [key(Request(question="q", prompt=raw)) for raw in ("\ud800", "\ud801", "?")]
    assert len(set(prompts)) == 3


# -- a variety of answers (ADR 0016) ----------------------------------------------------------------


def test_the_answers_of_a_variety_live_apart_in_partitions_of_one_scope() -> None:
    where = identity.realm(b"s" * 32, Scope("acme"), Settings(), Stamps())
    other = identity.realm(b"s" * 32, Scope("other"), Settings(), Stamps())
    address = identity.identify(Request(question="q"), where, None)
    slots = [identity.of_variety(address, slot, where) for slot in range(200)]
    assert slots[0] is address
    assert len({slot.partition for slot in slots}) == 200
    assert {(slot.key, slot.scope, slot.tenant) for slot in slots} == {
        (address.key, address.scope, address.tenant)
    }
    theirs = identity.identify(Request(question="q"), other, None)
    assert identity.of_variety(theirs, 1, other).partition not in {one.partition for one in slots}
