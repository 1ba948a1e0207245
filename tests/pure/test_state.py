"""What of an object its own calls write is its state; everything else is how it is set."""

from collections import Counter
from typing import Any

import pytest

from stampcache.adapters import written_by


class Base:
    def __init__(self) -> None:
        self.model = "one"
        self.inherited = 0

    def embed(self, text: str) -> str:
        self.inherited += 1
        return text


class Object(Base):
    def __init__(self) -> None:
        super().__init__()
        self.added = 0
        self.appended: list[str] = []
        self.counted: Counter[str] = Counter()
        self.stored: dict[str, str] = {}
        self.lazy: Any = None
        self.in_helper = 0
        self.in_closure = 0
        self.of_another = 0
        self.set_by_user = ""

    def embed(self, text: str) -> str:
        self.added += 1
        self.appended.append(text)
        self.counted[text] += 1
        self.stored[text] = text
        if self.lazy is None:
            self.lazy = object()
        self._help()

        def inside() -> None:
            self.in_closure += 1

        inside()
        another = Base()
        another.model = text
        return super().embed(self.set_by_user + self.model)

    def _help(self) -> None:
        self.in_helper += 1

    def configure(self, prefix: str) -> None:
        self.set_by_user = prefix


@pytest.mark.parametrize(
    "name",
    ["added", "appended", "counted", "stored", "lazy", "in_helper", "in_closure", "inherited"],
)
def test_what_a_call_writes_is_state(name: str) -> None:
    assert name in written_by(Object, ("embed",))


@pytest.mark.parametrize("name", ["model", "set_by_user", "of_another"])
def test_what_is_only_read_or_set_from_outside_is_not(name: str) -> None:
    assert name not in written_by(Object, ("embed",))


def test_other_calls_do_not_count() -> None:
    assert written_by(Object, ("configure",)) == {"set_by_user"}
    assert written_by(Object, ("missing",)) == frozenset()


def test_static_and_class_methods_and_properties() -> None:
    class Odd:
        total = 0

        @staticmethod
        def embed(text: str) -> str:
            return text

        @classmethod
        def count(cls) -> None:
            cls.total += 1

        @property
        def seen(self) -> int:
            self.reads = 1
            return self.reads

    assert written_by(Odd, ("embed", "count", "seen")) == {"total", "reads"}
