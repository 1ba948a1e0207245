"""One canonical form: equal things are equal, different things differ, the rest is refused."""

import enum
import json
import math
import unicodedata
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache import canonical
from stampcache.errors import CanonicalError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FINITE = SCALARS.filter(lambda one: not (isinstance(one, float) and math.isinf(one)))
VALUES = st.recursive(
    FINITE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PARTS = st.lists(st.binary(max_size=6), max_size=5)


class Colour(str, enum.Enum):  # noqa: UP042 - the older kind, whose str() is not its value
    RED = "red"


class Size(enum.IntEnum):
    BIG = 2


class Starred(str):
    """A string that prints as something else, as secrets do."""

    __slots__ = ()

    def __str__(self) -> str:
        return "***"


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is a  map?", " What is a map?\n"),
        ("What\tis\r\na map?", "What is a map?"),
        ("caf\u00e9", "cafe\u0301"),
        ("a\u00a0b\u3000c", "a b c"),
        ("\n    What is a map?\n", "What is a map?"),
        ("```\ncode  \n```", "```\ncode\n```\n\n"),
        ("run:\r\n    x = 1\r\n", "run:\n    x = 1"),
    ],
)
def test_texts_that_are_the_same(one: str, other: str) -> None:
    assert canonical.text(one) == canonical.text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("None", "none"),
        ("a b", "ab"),
        ("if a:\n    b\n    c", "if a:\n    b\nc"),
        ("if a:\n\tb", "if a:\n    b"),
        ("```\na  b\n```", "```\na b\n```"),
        ("x\u00b2", "x2"),
    ],
)
def test_texts_that_differ(one: str, other: str) -> None:
    assert canonical.text(one) != canonical.text(other)


@given(st.text())
def test_the_form_of_a_text_is_its_own_form(raw: str) -> None:
    form = canonical.text(raw)
    assert canonical.text(form) == form


@given(st.text(alphabet=" \n\tab`", max_size=24))
def test_the_form_of_a_text_with_code_is_its_own_form(raw: str) -> None:
    form = canonical.text(raw)
    assert canonical.text(form) == form


@given(st.text())
def test_decomposed_texts_have_the_same_form(raw: str) -> None:
    assert canonical.text(unicodedata.normalize("NFD", raw)) == canonical.text(
        unicodedata.normalize("NFC", raw)
    )


@given(st.lists(st.text(alphabet="abc.?", min_size=1), max_size=5), st.data())
def test_white_space_between_words_is_folded(words: list[str], data: st.DataObject) -> None:
    spaces = st.text(alphabet=" \t\u00a0\r", min_size=1, max_size=3)
    raw = "".join(word + data.draw(spaces) for word in words)
    assert canonical.text(raw) == " ".join(words)


# -- values ----------------------------------------------------------------------------------------


def reversed_(value: object) -> object:
    """Return the value with every dictionary in the opposite order and lists as tuples."""
    if isinstance(value, dict):
        return {name: reversed_(value[name]) for name in reversed(value)}
    if isinstance(value, list):
        return tuple(reversed_(item) for item in value)
    return value


def strict(value: object) -> object:
    """Return a value that equals another one exactly if the two mean the same JSON."""
    if isinstance(value, dict):
        return ("dict", frozenset((name, strict(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(strict(item) for item in value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return ("number", "int", int(value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    return ("number", type(value).__name__, value)


@given(VALUES)
def test_the_order_of_dictionaries_does_not_matter(value: object) -> None:
    assert canonical.value(value) == canonical.value(reversed_(value))


@given(VALUES, VALUES)
def test_values_are_the_same_exactly_if_their_forms_are(one: object, other: object) -> None:
    assert (canonical.value(one) == canonical.value(other)) == (strict(one) == strict(other))


@given(VALUES.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_the_form_is_json_that_gives_an_equal_value(value: object) -> None:
    again = json.loads(canonical.value(value))
    assert canonical.value(again) == canonical.value(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (0.5, b"0.5"),
        (True, b"true"),
        (1, b"1"),
        (None, b"null"),
        ("1", b'"1"'),
        ((1, 2), b"[1,2]"),
        (MappingProxyType({"b": 1, "a": "\u00e9"}), '{"a":"\u00e9","b":1}'.encode()),
        (2**60, b"1152921504606846976"),
        (Colour.RED, b'"red"'),
        (Size.BIG, b"2"),
        (Starred("one"), b'"one"'),
        ("\ud800", b'"\xed\xa0\x80"'),
    ],
)
def test_forms(value: object, form: bytes) -> None:
    assert canonical.value(value) == form


def holding_itself() -> object:
    children: list[object] = []
    tree = {"children": children}
    children.extend([{"parent": tree}, {"parent": tree}])  # without a check: 2**32 steps
    return tree


def nested(levels: int) -> object:
    value: object = "core"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "value is a object"),
        ({"a": [1, {2, 3}]}, r"value\.a\[1\] is a set"),
        (b"bytes", "value is a bytes"),
        (lambda: None, "value is a function"),
        ({1: "one"}, "has the key 1"),
        ([float("nan")], r"value\[0\] is nan"),
        (float("inf"), "value is inf"),
        (float("-inf"), "value is -inf"),
        ([10**5000], "integer of over"),
        (nested(65), "nested deeper"),
        (holding_itself(), "contains itself"),
    ],
)
def test_what_is_no_json_is_refused_and_named(value: object, said: str) -> None:
    with pytest.raises(CanonicalError, match=said):
        canonical.value(value)


def test_what_occurs_twice_is_not_inside_itself() -> None:
    shared = {"a": 1}
    assert canonical.value([shared, shared]) == b'[{"a":1},{"a":1}]'
    canonical.value(nested(64))


# -- digests ---------------------------------------------------------------------------------------


@given(PARTS, PARTS)
def test_a18_parts_are_told_apart(one: list[bytes], other: list[bytes]) -> None:
    assert (canonical.joined(one) == canonical.joined(other)) == (one == other)


def test_a18_no_delimiter_can_be_imitated() -> None:
    pairs = [([b"ab", b"c"], [b"a", b"bc"]), ([b"1:a"], [b"", b"a"]), ([b"", b""], [b""])]
    for one, other in pairs:
        assert canonical.digest(one) != canonical.digest(other)


@given(PARTS.filter(bool))
def test_a_digest_has_a_version_and_128_bits(parts: list[bytes]) -> None:
    digest = canonical.digest(parts)
    assert digest.startswith("v1:")
    assert len(bytes.fromhex(digest.removeprefix("v1:"))) == 16
    assert digest == canonical.digest(tuple(parts))
    assert digest != canonical.digest(parts, key=b"k")
    assert digest != canonical.digest(parts, person=b"p")


@given(st.text(alphabet=st.characters(codec=None)))
def test_every_string_has_bytes(raw: str) -> None:
    assert canonical.encode(raw).decode("utf-8", "surrogatepass") == raw
