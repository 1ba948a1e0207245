"""Settings that an adapter reads anew for each call, digested once for each state that they are in."""

import marshal
from collections.abc import Callable, Mapping

from stampcache import canonical
from stampcache.errors import CanonicalError
from stampcache.request import Settings

KEPT = 256
_PLAIN_FORM = 2  # of marshal: the last one in which equal values always have equal bytes


class KnownSettings:
    """The settings of one wrapper, by its parameters; safe for threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, Settings] = {}
        self._states: dict[tuple[type, bytes], Settings] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, params: Mapping[str, object], make: Callable[[], Settings]) -> Settings:
        """Return the settings with these parameters, made by ``make`` where they are not known.

        Everything else in the settings must follow from the parameters.

        Raises:
            CanonicalError: a parameter has no canonical form.
        """
        place = _place(params)
        known = self._known.get(place)
        if known is not None:
            return known
        made = make()
        if made.problem:
            raise CanonicalError(made.problem)
        if len(self._known) >= KEPT:
            self._known = {}
        self._known[place] = made
        return made

    def of_state(self, kind: type, state: object, make: Callable[[], Settings]) -> Settings:
        """Return the settings of an object of this class in this state, made where they are not known.

        Everything in the settings must follow from both, or be the same for each call. A state that is
        not plain data is not remembered: ``make`` is asked then.

        Raises:
            CanonicalError: raised by ``make``.
        """
        try:
            place = (kind, marshal.dumps(state, _PLAIN_FORM))  # type: ignore[arg-type]  # refused there
        except ValueError:
            return make()
        known = self._states.get(place)
        if known is not None:
            return known
        made = make()
        if len(self._states) >= KEPT:
            self._states = {}
        self._states[place] = made
        return made


def _place(params: Mapping[str, object]) -> bytes:
    """Return bytes that differ for different parameters; never read again, so any form will do."""
    try:
        return b"plain" + marshal.dumps(params, _PLAIN_FORM)  # type: ignore[arg-type]  # refused there
    except ValueError:  # of another class than JSON's own; slower, and tells which part has no form
        return b"canon" + canonical.value(params)
