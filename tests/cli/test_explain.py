"""``stampcache explain``: why a question would hit or miss, and what else is near."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import Result

from stampcache import Answer, EmbedderError, Evidence, Request, Stamps, open_cache
from stampcache.ports import Embedder

LEAVE = "How many days of leave do I have in 2024?"
OTHER_YEAR = "How many days of leave do I have in 2025?"
Run = Callable[..., Result]
AS_APPLICATION = ("--model", "deepseek-chat", "--param", "temperature=0.0", "--stamp", "prompt=p1")
WITH_TOY = (*AS_APPLICATION, "--embedder", "toy", "--threshold", "0.9")


@pytest.mark.usefixtures("toy")
def test_explain_an_exact_hit(run: Run, url: str) -> None:
    result = run("explain", url, LEAVE, "--tenant", "acme", *WITH_TOY)
    assert result.exit_code == 0
    for words in ("Hit (exact", "signature: ", "acme.md", "1 of the 1 entries", "(served)"):
        assert words in result.stdout
    assert "[red]30 [31m days[/red]" in result.stdout, "markup and escapes are shown, not obeyed"
    assert "\x1b" not in result.stdout


@pytest.mark.usefixtures("toy")
def test_explain_shows_what_the_guard_saw(run: Run, url: str) -> None:
    shown = run("explain", url, OTHER_YEAR, "--tenant", "acme", *WITH_TOY).stdout
    assert "Miss: guard saw a difference" in shown
    assert shown.count('date: asked "2025", stored "2024"') >= 3  # outcome, check, closeness


def test_explain_says_that_settings_differ(run: Run, url: str) -> None:
    shown = run("explain", url, LEAVE, "--tenant", "acme").stdout
    assert "None of the 1 entries of tenant 'acme'" in shown
    assert "model=deepseek-chat, embedder=toy, prompt=p1" in shown
    assert "other settings" in shown, "the very same question is there, at another address"


def test_explain_says_that_the_scope_is_empty(run: Run, url: str) -> None:
    shown = run("explain", url, LEAVE, "--tenant", "nobody").stdout
    assert "There is no entry of tenant 'nobody'" in shown
    assert "the store has 2 of other scopes" in shown
    assert "acme" not in shown


def test_explain_tells_another_prompt_from_other_settings(run: Run, tmp_path: Path) -> None:
    name = f"sqlite:///{tmp_path}/prompts.db"
    with open_cache(name) as cache:
        cache.update(Request(question="q", prompt="Be brief. q"), "answer")
    shown = run("explain", name, "q").stdout
    assert "1 of the 1 entries" in shown
    assert "another prompt, history or tokenizer" in shown
    assert "Hit (exact" in run("explain", name, "q", "--prompt", "Be brief. q").stdout


def test_explain_reads_parameters_as_json_or_as_text(run: Run, tmp_path: Path) -> None:
    name = f"sqlite:///{tmp_path}/params.db"
    with open_cache(name) as cache:
        cache.update(Request(question="q", params={"stop": ["a"], "mode": "fast"}), "answer")
    given = ("--param", 'stop=["a"]', "--param", "mode=fast")
    assert "Hit (exact" in run("explain", name, "q", *given).stdout


def test_explain_of_a_store_without_entries(run: Run, tmp_path: Path) -> None:
    open_cache(f"sqlite:///{tmp_path}/new.db").close()
    assert "The store is empty." in run("explain", f"sqlite:///{tmp_path}/new.db", "q").stdout


def test_explain_when_no_entry_has_a_vector(
    run: Run, toy: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"sqlite:///{tmp_path}/bare.db"
    with open_cache(name, stamps=Stamps(embedder=toy.name)) as cache:
        cache.update(Request(question="q"), "answer")
    assert "has a vector of this embedder" in run("explain", name, "x", "--embedder", "toy").stdout

    def asleep(_texts: Sequence[str]) -> NDArray[np.float32]:
        raise EmbedderError("The embedder toy is asleep.")

    monkeypatch.setattr(toy, "embed", asleep)
    shown = run("explain", name, "x", "--embedder", "toy").stdout
    assert "not looked for: The embedder toy is asleep." in shown


def test_explain_counts_nothing(run: Run, url: str) -> None:
    before = run("stats", url, "--json").stdout
    run("explain", url, LEAVE, "--tenant", "acme", *AS_APPLICATION)
    assert run("stats", url, "--json").stdout == before


def test_explain_tells_what_cannot_be_cached(run: Run, url: str) -> None:
    result = run("explain", url, "  ")
    assert result.exit_code == 0
    assert "Miss: uncacheable (The question is empty" in result.stdout


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--param", "temperature"], "NAME=VALUE"),
        (["--stamp", "modell=x"], "model, tokenizer, embedder, prompt, index"),
        (["--stamp", "model="], "NAME=VERSION"),
        (["--tenant", ""], "--tenant is empty"),
    ],
)
def test_explain_refuses_malformed_options(
    run: Run, url: str, option: list[str], says: str
) -> None:
    result = run("explain", url, LEAVE, *option)
    assert result.exit_code == 2
    assert says in result.stderr


def test_explain_asks_for_the_secret_that_only_the_application_has(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, secret = f"sqlite:///{tmp_path}/own.db", "0123456789abcdef-secret"
    with open_cache(name, secret=secret) as cache:
        cache.update(Request(question="q"), "answer")
    assert "STAMPCACHE_SECRET" in run("explain", name, "q").stderr
    monkeypatch.setenv("STAMPCACHE_SECRET", secret)
    assert "Hit (exact" in run("explain", name, "q").stdout


def test_explain_says_which_change_made_an_answer_stale(run: Run, tmp_path: Path) -> None:
    name = f"sqlite:///{tmp_path}/stale.db"
    with open_cache(name) as cache:
        request = Request(question="q", corpus="handbook", kind="policy")
        answer = Answer(text="30 days", revision="fp_a")
        cache.update(request, answer, evidence=[Evidence(source="leave.md", text="t")])
        cache.update(Request(question="r", kind="policy"), answer)
        cache.invalidate(corpus="handbook", source="leave.md")
    shown = run("explain", name, "q", "--corpus", "handbook").stdout
    assert "Stale: what it was made from changed" in shown
    assert "invalidated: source 'leave.md' of corpus 'handbook' changed" in shown
    shown = run("explain", name, "r").stdout
    for words in ("kind of data: policy", "served by: fp_a", "moved in its signature: nothing"):
        assert words in shown
