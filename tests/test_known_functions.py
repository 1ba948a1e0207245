"""Functions that were read before: what may have changed in them is seen, as if they were read anew."""

from collections.abc import Callable

import pytest

from stampcache import Settings
from stampcache.adapters import CanonicalError, KnownFunctions, KnownSettings, callable_identity
from stampcache.adapters.fingerprint import no_form

RATE = 2
NAMES = ("a", "b")
LISTED: list[int] = [1]


class Kind:
    """Something that a function sees."""

    level = 1

    def rank(self) -> int:
        """Return its rank."""
        return 1


def priced(amount: int, more: int = 1) -> int:
    """See a constant, a class and another function."""
    return amount * RATE + more + Kind().rank() + len(NAMES) + doubled(amount)


def doubled(amount: int) -> int:
    """Be seen."""
    return amount * 2


def listed(amount: int) -> int:
    """See a list, which may be changed in place."""
    return amount + LISTED[0]


def _other_rank(_: Kind) -> int:
    return 2


def _other(amount: int) -> int:
    return amount * 3


def _rate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(f"{__name__}.RATE", 2.0)


def _truth(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kind, "level", True)  # which equals 1, and is another value


def _method(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kind, "rank", _other_rank)


def _code_of_method(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kind.rank, "__code__", _other_rank.__code__)


def _new_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kind, "added", 1, raising=False)


def _defaults(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(priced, "__defaults__", (2,))


def _seen_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doubled, "__code__", _other.__code__)


def _seen_function(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(f"{__name__}.doubled", _other)


@pytest.mark.parametrize(
    "change",
    [_rate, _truth, _method, _code_of_method, _new_member, _defaults, _seen_code, _seen_function],
)
def test_a_change_is_seen(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of a function may change, the identity is the one that it has now."""
    known = KnownFunctions()
    before = known.identity(priced, resolve=no_form)
    assert before == callable_identity(priced) == known.identity(priced, resolve=no_form)
    change(monkeypatch)
    assert known.identity(priced, resolve=no_form) == callable_identity(priced)
    assert repr(known.identity(priced, resolve=no_form)) != repr(before)
    monkeypatch.undo()
    assert known.identity(priced, resolve=no_form) == before


def test_what_is_changed_in_place_is_seen() -> None:
    """A list is the same object after it was changed, so such a function is read each time."""
    known = KnownFunctions()
    before = known.identity(listed, resolve=no_form)
    LISTED.append(2)
    try:
        assert known.identity(listed, resolve=no_form) == callable_identity(listed) != before
    finally:
        LISTED.pop()


def test_a_closure_is_seen() -> None:
    """A name that an outer function binds anew is another one."""
    known = KnownFunctions()
    rate = 1

    def scaled(amount: int) -> int:
        return amount * rate

    before = known.identity(scaled, resolve=no_form)
    rate = 2
    assert known.identity(scaled, resolve=no_form) == callable_identity(scaled) != before


def test_what_has_no_identity_is_refused_again() -> None:
    """Nothing is kept of a function that sees an object without a form."""
    thing = object()

    def holding() -> object:
        return thing

    known = KnownFunctions()
    for _ in range(2):
        with pytest.raises(CanonicalError):
            known.identity(holding, resolve=no_form)


def test_settings_are_made_once_for_each_state() -> None:
    """Equal plain states of one class are one; of another class, type or an object they are not."""
    known = KnownSettings()
    made: list[None] = []

    def make() -> Settings:
        made.append(None)
        return Settings(model=f"m{len(made)}")

    first = known.of_state(int, [{"a": 1}], make)
    assert known.of_state(int, [{"a": 1}], make) is first
    others = [known.of_state(int, [{"a": other}], make) for other in (1.0, True, "1")]
    others += [known.of_state(str, [{"a": 1}], make), known.of_state(int, [object()], make)]
    others += [known.of_state(int, [object()], make)]
    assert len({each.digest for each in [first, *others]}) == 7
