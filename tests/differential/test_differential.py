"""Every exact hit equals what the uncached application would answer now, every semantic hit what it
would answer now to the entry's own question: whatever happens, in both frameworks, in two processes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.differential.index import DEATHS_OF_WRITES
from tests.differential.machine import CASES, DEATHS, MODES, WAYS, Machine, run, url_in
from tests.differential.process import OtherProcess
from tests.differential.world import SEARCHES, SOURCES, TENANTS, TTL_S, WORDS

SOME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True).map(tuple)
WRITING = st.sampled_from([*DEATHS_OF_WRITES, "end"])
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join), min_size=1, max_size=3
).map(". ".join)


@pytest.fixture(params=CASES, scope="module", ids=" ".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    framework, mode = request.param
    return str(framework), str(mode)


@pytest.fixture(scope="module")
def framework(case: tuple[str, str]) -> str:
    return case[0]


@pytest.fixture(scope="module")
def mode(case: tuple[str, str]) -> str:
    return case[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("differential")


@pytest.fixture(scope="module")
def other(framework: str, mode: str, folder: Path) -> Iterator[OtherProcess]:
    process = OtherProcess(framework, MODES[mode], folder)
    yield process
    process.close()


class World(RuleBasedStateMachine):
    """The machine under hypothesis, which makes what it breaks as short as it can."""

    framework: str
    mode: str
    folder: Path
    other: OtherProcess | None = None
    count = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).count += 1
        url = url_in(self.folder, f"{self.framework}-{self.mode.replace('/', '-')}-{self.count}")
        self.machine = Machine(self.framework, self.mode, url, self.other)

    @rule(words=SOME, tenant=st.sampled_from(TENANTS), polite=st.booleans(), there=st.booleans())
    def ask(self, words: Any, tenant: str, polite: bool, there: bool) -> None:
        self.machine.ask(words, tenant, polite=polite, elsewhere=there)

    @rule(words=SOME, tenant=st.sampled_from(TENANTS), polite=st.booleans(), there=st.booleans())
    def ask_twice(self, words: Any, tenant: str, polite: bool, there: bool) -> None:
        self.machine.ask(words, tenant, polite=polite, elsewhere=there)
        self.machine.ask(words, tenant, polite=not polite, elsewhere=not there)

    @rule(
        source=st.sampled_from(SOURCES),
        text=TEXTS | st.none(),
        there=st.booleans(),
        way=st.sampled_from(WAYS),
    )
    def write(self, source: str, text: str | None, there: bool, way: str) -> None:
        self.machine.write(source, text, elsewhere=there, way=way)

    @precondition(lambda self: self.mode == "watch")
    @rule(source=st.sampled_from(SOURCES), text=TEXTS, way=st.sampled_from(WAYS), where=WRITING)
    def die_writing(self, source: str, text: str, way: str, where: str) -> None:
        self.machine.write(source, text, elsewhere=True, way=way, die_at=where)

    @precondition(lambda self: self.mode == "watch")
    @rule(
        source=st.sampled_from(SOURCES),
        there=st.booleans(),
        way=st.sampled_from(WAYS),
        spaced=st.booleans(),
    )
    def write_again(self, source: str, there: bool, way: str, spaced: bool) -> None:
        self.machine.write_again(source, elsewhere=there, way=way, spaced=spaced)

    @precondition(lambda self: self.mode == "watch")
    @rule(search=st.sampled_from(SEARCHES))
    def search_by(self, search: str) -> None:
        self.machine.run_with(search=search)

    @rule(sentences=st.integers(1, 3), there=st.booleans())
    def rechunk(self, sentences: int, there: bool) -> None:
        self.machine.rechunk(sentences, elsewhere=there)

    @rule(model=st.sampled_from(["m1", "m2"]), prompt=st.sampled_from(["p1", "p2"]))
    def run_with(self, model: str, prompt: str) -> None:
        self.machine.run_with(model=model, prompt=prompt)

    @rule(turn=st.integers(0, 2))
    def embed_with(self, turn: int) -> None:
        self.machine.embed_with(turn)

    @rule(seconds=st.sampled_from([1.0, TTL_S / 2, TTL_S * 1.1, -30.0, -200.0]))
    def jump(self, seconds: float) -> None:
        self.machine.jump(seconds)

    @rule(words=SOME, tenant=st.sampled_from(TENANTS), where=st.sampled_from(DEATHS))
    def die(self, words: Any, tenant: str, where: str) -> None:
        self.machine.die(words, tenant, where)

    def teardown(self) -> None:
        self.machine.close()


def test_whatever_happens_hits_are_true(
    framework: str, mode: str, folder: Path, other: OtherProcess
) -> None:
    given = {"framework": framework, "mode": mode, "folder": folder, "other": other, "count": 0}
    world: Any = type("ThisWorld", (World,), given)
    run_state_machine_as_test(
        world,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_long_history_has_hits_at_both_levels_and_all_are_true(
    framework: str, mode: str, folder: Path, other: OtherProcess
) -> None:
    machine = Machine(framework, mode, url_in(folder, f"{framework}-long"), other)
    seen = run(machine, steps=500, seed=7)
    machine.close()
    assert min(seen["exact"], seen["semantic"], seen["miss"], seen["died"]) > 0, seen
