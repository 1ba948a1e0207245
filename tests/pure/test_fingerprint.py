"""What a plain function is known by: its name, its code and everything it sees."""

import asyncio
import enum
import functools
import itertools
import json
import logging
import math
import operator
import re
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stampcache import canonical
from stampcache.adapters.fingerprint import callable_identity
from stampcache.errors import CanonicalError

TEMPLATE = "Dear {name}"
LOGGER = logging.getLogger(__name__)
PATTERN = re.compile("a+")


class Colour(enum.Enum):
    RED = 1


def helped(name: str) -> str:
    return name.strip()


def greet(name: str) -> str:
    LOGGER.debug("greeting %s", name)
    return TEMPLATE.format(name=helped(PATTERN.sub("", name)))


def even(number: int) -> bool:
    return number == 0 or odd(number - 1)


def odd(number: int) -> bool:
    return number != 0 and even(number - 1)


def digest(function: object) -> bytes:
    return canonical.value(callable_identity(function))


def adder(step: object) -> Callable[[Any], Any]:
    def add(number: Any) -> Any:
        return number + step

    return add


def test_an_identity_is_json_and_stays_the_same() -> None:
    functions = (greet, even, lambda x: x, len, str, Colour, math.floor, str.upper, dict.fromkeys)
    for function in functions:
        assert digest(function) == digest(function)


def compiled(source: str) -> Any:
    space: dict[str, Any] = {"__name__": "app", "TEMPLATE": TEMPLATE}
    exec(source, space)
    return space["f"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x): return x + 1", "def f(x): return x + 2"),
        ("def f(x): return x + 1", "def f(x): return x - 1"),
        ("def f(x): return 1", "def f(x): return True"),
        ("def f(x): return 1", "def f(x): return 1.0"),
        ("def f(x): return x.a", "def f(x): return x.b"),
        ("def f(x, y): return 0", "def f(y, x): return 0"),
        ("def f(x=1): return x", "def f(x=2): return x"),
        ("def f(*, x=1): return x", "def f(*, x=2): return x"),
        ("def f(x): return x in {'a', 'b'}", "def f(x): return x in {'a', 'c'}"),
        ("def f(x): return [y for y in x if y > 1]", "def f(x): return [y for y in x if y > 2]"),
        ("def f(x): return (lambda: 1)", "def f(x): return (lambda: 2)"),
        ("A = 1\ndef f(x): return A", "A = 2\ndef f(x): return A"),
        ("def g(): return 1\ndef f(x): return g()", "def g(): return 2\ndef f(x): return g()"),
        ("class C:\n A = 1\ndef f(x): return C.A", "class C:\n A = 2\ndef f(x): return C.A"),
        (
            "class B:\n A = 1\nclass C(B): pass\ndef f(x): return C.A",
            "class B:\n A = 2\nclass C(B): pass\ndef f(x): return C.A",
        ),
        ("def f(x): return (1, 2)", "def f(x): return (1, (2,))"),
        ("def f(x): return b'a'", "def f(x): return 'a'"),
        ("async def f(x): return 1", "def f(x): return 1"),
    ],
)
def test_another_meaning_is_another_identity(one: str, other: str) -> None:
    assert digest(compiled(one)) != digest(compiled(other))
    assert digest(compiled(one)) == digest(compiled(f"\n\n{one}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (adder(1), adder(2)),
        (adder([1]), adder([2])),
        (adder({"a": 1}), adder({"a": 2})),
        (adder({1, 2}), adder({1, 3})),
        (adder(b"1"), adder(b"2")),
        (adder(Path("a")), adder(Path("b"))),
        (adder(Colour.RED), adder(1)),
        (adder(math), adder(re)),
        (adder(len), adder(abs)),
        (adder(re.compile("a")), adder(re.compile("b"))),
        (functools.partial(helped, "a"), functools.partial(helped, "b")),
        (functools.partial(helped, name="a"), functools.partial(greet, name="a")),
        (operator.itemgetter("a"), operator.itemgetter("b")),
        (operator.itemgetter("a"), operator.attrgetter("a")),
        (str.upper, str.lower),
        (str, int),
    ],
)
def test_what_a_function_sees_is_part_of_it(one: object, other: object) -> None:
    assert digest(one) != digest(other)


def test_the_order_of_sets_and_mappings_does_not_matter() -> None:
    assert digest(adder({"a": 1, "b": 2})) == digest(adder({"b": 2, "a": 1}))
    assert digest(adder({"a", "b", "c"})) == digest(adder({"c", "b", "a"}))


def test_the_code_of_classes_counts_whatever_kind_their_methods_are() -> None:
    def made(value: int) -> type:
        space: dict[str, Any] = {"__name__": "app"}
        exec(
            "import functools\nclass C:\n"
            f"  @staticmethod\n  def a(): return {value}\n"
            f"  @classmethod\n  def b(cls): return {value}\n"
            f"  @property\n  def c(self): return {value}\n"
            f"  @functools.cached_property\n  def d(self): return {value}\n",
            space,
        )
        found: type = space["C"]
        return found

    assert digest(made(1)) != digest(made(2))
    assert digest(made(1)) == digest(made(1))
    assert callable_identity(made(1).b) != callable_identity(made(2).b)


def test_a_name_that_is_bound_later_is_no_error() -> None:
    def outer() -> Callable[[], Any]:
        def first() -> Any:
            return later

        if not TEMPLATE:
            later = 1
        return first

    assert callable_identity(outer())


class Client:
    def ask(self, text: str) -> str:
        return text

    def __call__(self, text: str) -> str:
        return text


@pytest.mark.parametrize(
    "function",
    [
        adder(object()),
        adder(Client()),
        adder({1: 2}),
        adder([object()]),
        Client().ask,
        Client(),
        functools.partial(helped, object()),
        functools.partial(Client()),
        operator.methodcaller("x", object()),
        [].append,
        3,
    ],
)
def test_what_has_no_identity_is_refused(function: object) -> None:
    with pytest.raises(CanonicalError):
        callable_identity(function)


def test_a_resolver_names_what_is_unknown_here() -> None:
    client = Client()
    known = callable_identity(adder(client), resolve=lambda seen: {"client": type(seen).__name__})
    assert known != callable_identity(adder(client), resolve=lambda seen: "other")


def test_functions_of_other_packages_are_not_followed() -> None:
    def encode(value: Any) -> Any:
        return canonical.value(value), compile_pattern(value)

    compile_pattern = re.compile
    assert callable_identity(encode)
    assert callable_identity(json.dumps)


def test_what_a_function_keeps_for_itself_is_no_part_of_it() -> None:
    calls: list[int] = []
    counts = {"n": 0}
    total = 0

    def answer(number: int) -> int:
        nonlocal total
        total += number
        counts["n"] += 1
        counts[str(number)] = number
        calls.append(number)
        return len(calls)

    def deeper(number: int) -> int:
        return ([calls.append(each) for each in range(number)] and answer(number)) or 0

    for function in (answer, deeper):
        before = digest(function)
        function(3)
        assert digest(function) == before


def test_what_a_function_only_reads_is_part_of_it() -> None:
    settings = {"k": 1}
    names = ["a"]

    def answer(number: int) -> Any:
        out: list[Any] = []
        out.append(names)
        return settings["k"], out, names.copy()

    before = digest(answer)
    settings["k"] = 2
    changed = digest(answer)
    names.append("b")
    assert len({before, changed, digest(answer)}) == 3


def test_scripts_and_locks_are_state() -> None:
    numbers = itertools.count()
    lock, event = threading.Lock(), asyncio.Event()

    def answer() -> int:
        with lock:
            event.set()
            return next(numbers)

    before = digest(answer)
    answer()
    assert digest(answer) == before


def test_modules_of_the_app_count_by_what_is_read_of_them() -> None:
    words = types.ModuleType("words")
    words.__file__ = "words.py"
    words.SYSTEM = "be brief"  # type: ignore[attr-defined]
    words.other = object()  # type: ignore[attr-defined]
    space: dict[str, Any] = {"__name__": "app", "words": words}
    exec("def f(x): return words.SYSTEM + x", space)
    before = digest(space["f"])
    words.SYSTEM = "be long"  # type: ignore[attr-defined]
    assert digest(space["f"]) != before
