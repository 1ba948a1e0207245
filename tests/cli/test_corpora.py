"""What the command line says of watched corpora, and does for them."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from stampcache import Cache, Hit
from stampcache.cli.app import build_app
from stampcache.corpora import Intent, Owner
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

QUESTION = "how many days of leave"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


def finding(url: str, *arguments: str, check: str = f"corpus '{CORPUS}'") -> dict[str, str]:
    told = json.loads(run("doctor", "--json", url, *arguments).stdout)
    (only,) = [one for one in told["checks"] if one["check"] == check]
    return dict(only)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a watched corpus and one answer from it."""
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with Cache(url) as cache:
        shelf = Shelf(cache)
        shelf.watch.run(shelf.watch.open())
        shelf.write(**HANDBOOK)
        Asking(cache, shelf).ask(QUESTION)
    return url


def is_hit(url: str) -> bool:
    with Cache(url) as cache:
        asking = Asking(cache, Shelf(cache))
        return isinstance(cache.lookup(asking.request(QUESTION)), Hit)


def test_a_sound_corpus(url: str) -> None:
    said = finding(url)
    assert said["status"] == "ok"
    assert "4 chunks known, last heard of" in said["found"]
    assert "never swept" in said["found"]


def test_a_write_that_did_not_end_is_found_and_resolved(url: str) -> None:
    gone = Owner(host="elsewhere", process=1)
    with Cache(url) as cache:
        cache.core.store.corpora.begin(CORPUS, Intent(id="x", at=0.0, owner=gone))
    assert not is_hit(url)
    said = finding(url)
    assert said["status"] == "fail"
    assert "1 write did not end" in said["found"]
    assert "--resolve" in said["mend"]
    resolved = run("doctor", "--resolve", url)
    assert "is served again; 1 answers of it became stale" in resolved.output.replace("\n", " ")
    assert finding(url)["status"] == "warn", "what is there now is not known"
    assert not is_hit(url)


def test_a_write_under_way_is_no_problem(url: str) -> None:
    with Cache(url) as cache:
        from stampcache.owners import this_owner

        intent = Intent(id="x", at=0.0, owner=this_owner("another cache"))
        cache.core.store.corpora.begin(CORPUS, intent)
        said = finding(url)
        assert said["status"] == "ok"
        assert "1 write under way" in said["found"]
        run("doctor", "--resolve", url)
        standing = cache.standing(CORPUS)
        assert standing is not None
        assert standing.intents == (intent,)


def test_a_blocked_corpus(url: str) -> None:
    with Cache(url) as cache:
        cache.core.store.corpora.block(CORPUS, "a sweep found that 3 of 9 answers do not hold")
    assert finding(url)["found"] == "a sweep found that 3 of 9 answers do not hold"
    run("doctor", "--resolve", url)
    assert finding(url)["status"] == "warn"


def test_silence_and_a_word(url: str) -> None:
    with Cache(url) as cache:
        cache.core.store.corpora.declare(CORPUS, now=0.0, silence_s=60.0)
    assert finding(url)["status"] == "fail"
    assert not is_hit(url)
    assert run("heard", url, CORPUS).exit_code == 0
    assert finding(url)["status"] == "ok"
    assert is_hit(url)


def test_nobody_hears_of_an_unknown_corpus(url: str) -> None:
    said = run("heard", url, "other")
    assert said.exit_code != 0
    assert "Nobody watches corpus 'other'" in said.output.replace("\n", " ")


def test_an_index_of_the_application(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "app_of_the_test.py"
    module.write_text(
        "from stampcache import Cache\n"
        "from tests.watched_index import HANDBOOK, Shelf\n"
        f"shelf = Shelf(Cache({url!r}), texts=dict(HANDBOOK))\n"
        "class Index:\n"
        "    def problems(self):\n"
        "        return shelf.watch.run(shelf.watch.examine())\n"
        "index = Index()\n"
        "def changed():\n"
        "    shelf.write_around(pets='no pets')\n"
        "    return index\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert finding(url, "--index", "app_of_the_test:index", check="index")["status"] == "ok"
    said = finding(url, "--index", "app_of_the_test:changed", check="index")
    assert said["status"] == "fail"
    assert "1 chunks changed" in said["found"]
    assert "resync()" in said["mend"]
    for wrong in ("app_of_the_test", "app_of_the_test:number", "app_of_the_test:x", "no_such:x"):
        assert run("doctor", url, "--index", wrong).exit_code != 0
    sys.modules.pop("app_of_the_test")


def test_resolving_needs_a_store() -> None:
    assert run("doctor", "--resolve").exit_code != 0


@pytest.mark.parametrize("beyond", [True, False])
def test_what_is_resolved_but_not_served_yet_is_said_so(url: str, beyond: bool) -> None:
    from stampcache.owners import this_owner

    with Cache(url) as cache:
        corpora = cache.core.store.corpora
        gone = Owner(host="elsewhere", process=1)
        corpora.begin(CORPUS, Intent(id="x", at=0.0, owner=gone, beyond=beyond))
        corpora.begin(CORPUS, Intent(id="y", at=0.0, owner=this_owner("another cache")))
        said = run("doctor", "--resolve", url).output.replace("\n", " ")
        assert "is not served yet (a write that began" in said
        standing = cache.standing(CORPUS)
        assert standing is not None
        assert [one.id for one in standing.intents] == ["y"]
        assert standing.complete is beyond, "what stands beside the index says nothing of it"


@pytest.mark.parametrize(
    "command", [("doctor", "memory://", "--resolve"), ("heard", "memory://", CORPUS)]
)
def test_a_store_inside_of_another_process_is_mended_there(command: tuple[str, ...]) -> None:
    said = run(*command)
    assert said.exit_code != 0
    assert "lives inside the process that opened it" in said.output.replace("\n", " ")


def test_what_a_watch_did_is_counted(url: str) -> None:
    with Cache(url) as cache:
        Shelf(cache, texts=dict(HANDBOOK)).write(leave="nobody has any days of leave")
    told = json.loads(run("stats", url, "--json").stdout)["watched"]
    assert told["writes"] >= 2
    assert told["stale"] == 1
    shown = run("stats", url).output
    assert "watched corpora" in shown
    assert "stale" in shown
