"""What tests of an application, a store or a flow need; shipped, and used by our own tests.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self) -> Iterator[Store]: ...

`StoreContract` needs pytest (``stampcache[testing]``); the doubles need nothing.
"""

from stampcache.testing.doubles import (
    AngleEmbedder,
    FailingStore,
    FakeClock,
    ScriptedJudge,
    ScriptedReader,
    ScriptedVerifier,
)
from stampcache.testing.pairs import ScriptedPairs
from stampcache.testing.script import run_script

__all__ = [
    "AngleEmbedder",
    "FailingStore",
    "FakeClock",
    "ScriptedJudge",
    "ScriptedPairs",
    "ScriptedReader",
    "ScriptedVerifier",
    "run_script",
]
