"""Running a flow without ports: each effect it yields is compared with a script."""

from collections.abc import Sequence
from typing import Any, TypeVar

from stampcache.effects import Effect, Flow

Done = TypeVar("Done")


def run_script(flow: Flow[Done], script: Sequence[tuple[type[Effect[Any]], object]]) -> Done:
    """Drive a flow by a script of (effect type, answer) and return its outcome.

    An answer that is an exception is thrown into the flow.

    Raises:
        AssertionError: the flow asks for another effect than the script says, ends early, or goes on.
    """
    steps = list(script)
    try:
        effect = next(flow)
        while True:
            assert steps, f"the flow asks for {type(effect).__name__}, but the script has ended"
            expected, answer = steps.pop(0)
            found = type(effect).__name__
            assert isinstance(effect, expected), f"expected {expected.__name__}, not {found}"
            effect = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    except StopIteration as end:
        assert not steps, f"the flow ended before {steps[0][0].__name__}"
        done: Done = end.value
        return done
