"""The benchmark `proof`: its pools are what they say, and promises are false as seldom as stated."""

import gzip
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.proof import __main__ as proof
from benchmarks.proof import draws, pools
from benchmarks.proof.draws import Urn
from benchmarks.proof.pools import Pool
from stampcache.calibration import WEIGHTS
from stampcache.model import Vector

TINY = proof.Size(draws=3, labels=200, pool=400, qqp=None, counts=(100, 150), draws_each=2)


class Lengths:
    """An embedder for texts of which only the length matters."""

    name = "lengths"

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.array([[len(text), 10.0] for text in texts], dtype=np.float32)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up file in the form of QQP: each tenth pair is different, and a few are guarded."""
    monkeypatch.setattr(pools, "as_embedder", lambda _: Lengths())
    (tmp_path / "qqp").mkdir()
    with gzip.open(tmp_path / "qqp" / "pairs_20k.jsonl.gz", "wt") as file:
        for at in range(300):
            asked, stored = f"why {'a' * (at % 50)}{at}", f"why {'a' * (at % 50)}{at}?"
            if at % 60 == 0:
                stored = f"why is it not {at}, and not 7"
            file.write(json.dumps({"a": asked, "b": stored, "same": at % 10 > 0}) + "\n")
        file.write(json.dumps({"a": "x" * 200, "b": "x" * 200, "same": True}) + "\n")
    return tmp_path


# -- pools -----------------------------------------------------------------------------------------


def test_real_pairs_are_scored_unless_a_guard_vetoes_them(data: Path) -> None:
    whole, fewer, *_ = proof.real_pools(data, TINY, None)
    assert (whole.name, whole.real) == ("QQP, cosine and guards", True)
    assert len(whole.labels) == 300  # one is too long
    vetoed = [one for one in whole.labels if one.score is None]
    assert {one.stored for one in vetoed} == {
        f"why is it not {at}, and not 7" for at in range(0, 300, 60)
    }
    assert sum(one.same for one in fewer.labels) == sum(one.same for one in whole.labels)
    assert len(fewer.labels) < len(whole.labels)


def test_the_trained_verifier_scores_them_with_their_cosines_beside(data: Path) -> None:
    *_, alone, _, chosen, _ = proof.real_pools(data, TINY, None)
    assert (alone.weights, chosen.weights) == ((0.0,), WEIGHTS)
    scored = [one for one in alone.labels if one.score is not None]
    assert scored and all(0 < one.score < 1 for one in scored if one.score is not None)
    assert any(one.similarity != one.score for one in scored)
    assert alone.labels == chosen.labels


class Equal:
    """A verifier."""

    name, threshold = "equal", 0.5

    def score(self, asked: str, stored: str) -> float:
        return float(asked[:9] == stored[:9])


EQUAL = Equal()


@pytest.mark.parametrize("name", ["EQUAL", "Equal"])
def test_a_verifier_is_given_by_name(data: Path, name: str) -> None:
    *_, scored, _ = proof.real_pools(data, TINY, f"{__name__}:{name}")
    assert name in scored.name
    assert {one.score for one in scored.labels} == {0.0, 1.0}


def test_made_up_pools_say_so_and_one_of_them_is_always_above_the_rate() -> None:
    made = {pool.name: pool for pool in pools.made_up(0.02, 2_000, 1)}
    assert not any(pool.real for pool in made.values())
    assert Urn(made["just above"]).best(0.02) == 0.0
    assert made["just above, weights to choose"].weights == WEIGHTS
    assert 0.1 < Urn(made["rising"]).best(0.02) < 1
    assert len({one.score for one in made["rising in steps"].labels}) == pools.LEVELS
    together = pools.grouped_places(made["in groups"])
    assert max(map(len, together)) == 8
    assert sorted(itertools.chain(*together)) == list(range(len(made["in groups"].labels)))


# -- draws -----------------------------------------------------------------------------------------


def test_what_is_served_of_the_rest_is_looked_at() -> None:
    labels = [pools.labelled(f"a{at}", f"b{at}", at < 300, 1 - at / 1000) for at in range(600)]
    urn = Urn(Pool("half", False, labels))
    found = urn.draw(200, 0.05, np.random.default_rng(1))
    assert found.promised
    assert 0.3 < found.share < 0.55
    assert 0 <= found.risk < 0.1
    assert urn.best(0.05) == pytest.approx(315 / 600)
    assert not urn.draw(30, 0.05, np.random.default_rng(1)).promised


def test_so_many_false_promises_chance_allows() -> None:
    assert draws.allowed(500) == 37
    assert draws.allowed(40) == 6


@pytest.mark.parametrize(
    "name",
    [
        "just above", "just above, weights to choose", "up and down", "noisy top", "rising in steps",
    ],
)  # fmt: skip
def test_promises_are_false_as_seldom_as_stated(name: str) -> None:
    (pool,) = (one for one in pools.made_up(0.05, 1_500, 3) if one.name == name)
    row = draws.row(Urn(pool), 250, 0.05, 30, 3, lambda: None)
    assert row["holds"] == "yes"
    assert row["labels"] == 250


def test_what_is_served_is_what_the_chosen_weight_serves() -> None:
    labels = [
        pools.labelled(
            f"a{at}", f"b{at}", at % 2 == 0, 0.6 + at / 3000, 1.0 if at % 2 == 0 else 0.3
        )
        for at in range(600)
    ]
    urn = Urn(Pool("the cosine knows", False, labels, weights=WEIGHTS))
    found = urn.draw(400, 0.05, np.random.default_rng(1))
    assert (found.promised, found.risk) == (True, 0.0)
    assert found.share > 0.4
    assert urn.best(0.05) == pytest.approx(0.525, abs=0.01)


def test_how_many_labels_it_takes_is_said() -> None:
    labels = [pools.labelled(f"a{at}", f"b{at}", True, 1 - at / 2000) for at in range(800)]
    urn = Urn(Pool("all right", False, labels))
    assert draws.labels_needed(urn, 0.05, (40, 100), 3, 1)["labels needed"] == "100"
    assert draws.labels_needed(urn, 0.01, (100, 1_000), 3, 1)["labels needed"] == "more, or never"


# -- the whole -------------------------------------------------------------------------------------


def test_the_file_holds_the_rows_of_both_tables(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(proof, "QUICK", TINY)
    file = tmp_path / "rows.json"
    monkeypatch.setattr(proof, "RATES", (0.02, 0.05))
    given = ["proof", "--quick", "--data", str(data), "--json", str(file)]
    monkeypatch.setattr("sys.argv", given)
    assert proof.main() == 0
    rows = json.loads(file.read_text())["rows"]
    assert {row["group"] for row in rows} == {"held", "needed"}
    assert {row["max_wrong"] for row in rows} == {0.02, 0.05}
    assert {row["pairs"] for row in rows} == {"real", "made up"}
    assert "False promises" in capsys.readouterr().out


def test_without_data_all_pairs_are_made_up_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "QUICK", TINY)
    monkeypatch.setattr(proof, "RATES", (0.05,))
    monkeypatch.setattr("sys.argv", ["proof", "--quick"])
    assert proof.main() == 0
    assert "all pairs are made up" in capsys.readouterr().out


def test_too_many_false_promises_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "measured", lambda *_: [{"group": "held", "holds": "NO"}])
    monkeypatch.setattr("sys.argv", ["proof", "--quick"])
    assert proof.main() == 1
