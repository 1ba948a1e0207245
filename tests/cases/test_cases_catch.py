"""The checks see what they are for: caches that have the faults fail them."""

from typing import Any

import pytest
from langchain_core.caches import BaseCache
from msgspec.structs import replace

from benchmarks.cases.meaning import NEAR_MISSES, OPPOSITES, SAME
from benchmarks.cases.rigs.core import CoreApp, CoreRig
from benchmarks.cases.rigs.peers import PeerRig
from benchmarks.cases.suite import CASES
from benchmarks.cases.words import Call, Model
from stampcache import Request, Scope

ALIKE = {
    other: first for first, other in [*SAME.items(), *OPPOSITES, *NEAR_MISSES] if first != other
}


class Forgetful(BaseCache):
    """Knows a call by the last text in it, and gives out what it holds."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def lookup(self, prompt: str, llm_string: str) -> Any:
        return self._held.get(prompt[prompt.rfind('"content"') :])

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        self._held[prompt[prompt.rfind('"content"') :]] = return_val

    def clear(self, **kwargs: Any) -> None:
        """Clear nothing."""


class ForgetfulRig(PeerRig):
    name = "forgetful"

    def made(self) -> BaseCache:
        return Forgetful()


class Changed(CoreApp):
    """An application that tells the core less than it should."""

    def _request(self, call: Call) -> Request:
        return self._rig.changed(super()._request(call))  # type: ignore[attr-defined]


class ChangedRig(CoreRig):
    def app(self, model: Model = Model()) -> CoreApp:  # noqa: B008 - frozen
        return Changed(self, model)

    def changed(self, request: Request) -> Request:
        return request


class LeakyRig(ChangedRig):
    """Tells nobody's tenant."""

    def changed(self, request: Request) -> Request:
        return replace(request, scope=Scope())


class GroundlessRig(ChangedRig):
    """Tells no evidence, and announces no change."""

    def changed(self, request: Request) -> Request:
        return replace(request, evidence=None)

    def retrieve(self, question: str) -> Any:
        return ()

    def write(self, name: str, text: str) -> None:
        self._shelf[name] = text


class CredulousRig(ChangedRig):
    """Takes for the same what looks alike."""

    def changed(self, request: Request) -> Request:
        return replace(request, question=ALIKE.get(request.question, request.question))


class ImmortalRig(ChangedRig):
    """Has no clock."""

    def spend(self, seconds: float) -> None:
        pass


FAULTS: dict[Any, str] = {
    ForgetfulRig: ("A1 A2 A6 A9 A12 A16 A18 A21 A25 B13 D1 D4/D8 H6 H11 H12 K1/K2 L6 N1 N3/N6 N4"),
    LeakyRig: "A22 B9 D3 E1/E3 E4 E6/E7/E8 E10 E14",
    GroundlessRig: "F1 F3",
    CredulousRig: "C4 C11",
    ImmortalRig: "F6 F13 P5",
}


@pytest.mark.parametrize(
    ("number", "rig"),
    [
        pytest.param(number, rig, id=f"{number}-{rig.__name__}")
        for rig, numbers in FAULTS.items()
        for number in numbers.split()
    ],
)
def test_a_fault_is_seen(number: str, rig: Any) -> None:
    assert CASES[number].lack(rig) is None
    with pytest.raises(AssertionError):
        CASES[number].check(rig())
