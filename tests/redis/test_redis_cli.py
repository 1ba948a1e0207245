"""The command line on a cache in Redis, and what it leaves alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stampcache import (
    Answer,
    Evidence,
    Hit,
    Request,
    Scope,
    Stamps,
    open_cache,
    pairs,
)
from stampcache.cli.app import build_app
from stampcache.errors import ConfigError, StoreError
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.samples import make_entry
from tests.cli.application import URL
from tests.cli.test_tune import drawn, label, without_entry
from tests.cli.working import APP, Working
from tests.redis.servers import Server

CITED = (Evidence(corpus="handbook", source="leave.md", text="Thirty days."),)
REQUEST = Request(question="How many days?", model="m")
V1 = Stamps(index="v1")
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("STAMPCACHE_SECRET", "STAMPCACHE_ENCRYPTION_KEY", "DEEPSEEK_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words, typed=None: CliRunner().invoke(build_app(), list(words), input=typed)


@pytest.fixture
def filled(url: str) -> str:
    other = Request(question="Other?", model="m", scope=Scope("acme"))
    for request in (REQUEST, other):  # a cache that has seen a named tenant serves no unnamed one
        with open_cache(url, stamps=V1) as cache:
            cache.update(request, Answer(text="30"), outcome=cache.lookup(request), evidence=CITED)
            assert isinstance(cache.lookup(request), Hit)
    return url


def test_doctor_looks_at_the_server_and_what_it_holds(run: Run, filled: str) -> None:
    report = json.loads(run("doctor", "--json", filled).stdout)
    found = {one["check"]: one["status"] for one in report["checks"]}
    assert found["store"] == found["integrity"] == found["entries"] == "ok"


def test_doctor_makes_no_cache_and_says_when_nobody_answers(
    run: Run, url: str, redis_server: Server, tmp_path: Path
) -> None:
    assert "holds no cache" in run("doctor", url).output
    assert redis_server.cli("DBSIZE") == "0"
    result = run("doctor", f"unix://{tmp_path}/nobody.sock")
    assert result.exit_code == 1
    assert "cannot be reached" in result.output


def test_stats_count_what_the_server_holds(run: Run, filled: str) -> None:
    figures = json.loads(run("stats", "--json", filled).stdout)
    assert figures["store"]["entries"] == 2
    assert figures["hits"] == {"exact": 2, "semantic": 0}
    assert "in a server" in run("stats", filled).output


def test_explain_reads_without_serving(run: Run, filled: str) -> None:
    words = ("explain", filled, REQUEST.question, "--model", "m")
    found = run(*words, "--stamp", "index=v1").output
    assert "same tokens" in found, found
    other = run(*words, "--stamp", "index=v2").output
    assert "not found" in other
    assert "v1" in other, "it says under which settings the question is known"
    assert json.loads(run("stats", "--json", filled).stdout)["requests"] == 4


def test_what_a_document_touches_is_invalidated(run: Run, filled: str) -> None:
    result = run("invalidate", filled, "--corpus", "handbook", "--source", "leave.md", "--yes")
    assert result.exit_code == 0, result.output
    with open_cache(filled, stamps=V1) as cache:
        assert not isinstance(cache.lookup(REQUEST), Hit)


def test_a_tenant_is_forgotten_and_others_are_not(run: Run, filled: str) -> None:
    result = run("forget", filled, "acme", "--yes")
    assert result.exit_code == 0, result.output
    with open_cache(filled) as cache:
        assert cache.stats(everything=True).entries == 1


@pytest.mark.parametrize("command", [("stats",), ("invalidate", "--corpus", "c"), ("forget", "t")])
def test_commands_make_no_cache(
    run: Run, url: str, redis_server: Server, command: tuple[str, ...]
) -> None:
    result = run(command[0], url, *command[1:])
    assert result.exit_code != 0
    assert "holds no cache" in result.output
    assert redis_server.cli("DBSIZE") == "0"


def test_tune_proves_a_bound_from_labels_in_the_server(run: Run, filled: str) -> None:
    assert run("tune", filled).exit_code == 1
    store = RedisStore(filled)
    store.put(make_entry("k"), None, store.sequence())
    label(store, 4_000)
    store.close()
    result = run("tune", filled, "--max-wrong", "0.01", "--json")
    (one,) = json.loads(result.stdout)
    assert (result.exit_code, one["proved"], one["labelled"]) == (0, True, 4_000)
    assert "4,000 labelled, 0 wait" in run("tune", filled).output
    assert "At most 1 % of the semantic hits" in run("doctor", filled).output


def test_a_person_labels_pairs_that_wait_in_the_server(run: Run, filled: str) -> None:
    store = RedisStore(filled)
    store.put(make_entry("k"), None, store.sequence())
    store.shelf.keep(pairs.WAITING, without_entry([drawn(at) for at in range(3)]), most=99)
    store.close()
    result = run("tune", filled, "--by-hand", "--json", typed="y\nn\nq\n")
    assert result.exit_code == 1, "that proves nothing"
    (one,) = json.loads(run("tune", filled, "--json").stdout)
    assert (one["labelled"], one["waiting"]) == (2, 1)


def test_a_silent_watch_is_heard_of(run: Run, filled: str) -> None:
    with open_cache(filled) as cache:
        cache.core.store.corpora.declare("c", now=0.0, silence_s=60.0)

    def status() -> str:
        checks = json.loads(run("doctor", "--json", filled).stdout)["checks"]
        return next(str(one["status"]) for one in checks if one["check"] == "corpus 'c'")

    assert status() == "fail"
    assert run("heard", filled, "c").exit_code == 0
    assert status() != "fail"
    other = run("heard", filled, "other")
    assert other.exit_code != 0
    assert "Nobody watches corpus 'other'" in other.output.replace("\n", " ")


class TestWork(Working):
    """``stampcache work`` over a server; see `Working`."""


def test_work_says_that_nobody_answers(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL, f"unix://{tmp_path}/nobody.sock")
    result = run("work", f"{APP}cache")
    assert result.exit_code == 2
    assert "cannot be reached" in result.output


# -- what is foreign, what is encrypted -----------------------------------------------------------------


def test_foreign_keys_and_other_caches_survive_everything(
    run: Run, filled: str, redis_server: Server
) -> None:
    other = filled + "&prefix=default2"
    with open_cache(other) as cache:
        cache.update(REQUEST, "30", outcome=cache.lookup(REQUEST), evidence=CITED)
    for name in ("stampcache", "stampcache:{default}", "{default}:x", "default", "mine"):
        redis_server.cli("SET", name, "mine")
    with open_cache(filled) as cache:
        assert cache.clear() == 1
        cache.invalidate(corpus="handbook")
        cache.purge()
        cache.forget("default")
    for name in ("stampcache", "stampcache:{default}", "{default}:x", "default", "mine"):
        assert redis_server.cli("GET", name) == "mine"
    with open_cache(other) as cache:
        assert isinstance(cache.lookup(REQUEST), Hit)


def test_nothing_of_a_question_can_be_read_in_an_encrypted_server(
    url: str, redis_server: Server
) -> None:
    key = bytes(range(32))
    secretive = Request(question="Is Ms Tallow being dismissed?", model="m")
    with open_cache(url, encryption_key=key) as cache:
        cache.update(secretive, "Yes, Ms Tallow is.", outcome=cache.lookup(secretive))
        assert isinstance(cache.lookup(secretive), Hit)
    redis_server.cli("SAVE")
    dumps = [path.read_bytes() for path in redis_server.folder.iterdir() if path.is_file()]
    assert dumps and not any(b"Tallow" in dump or b"dismissed" in dump for dump in dumps)
    for wrong in (None, bytes(32)):
        with pytest.raises(ConfigError, match="encrypted"):
            open_cache(url, encryption_key=wrong)


def test_every_body_has_a_life_in_the_server(filled: str, redis_server: Server) -> None:
    names = redis_server.cli("--raw", "KEYS", "stampcache:{default}:entry:*").splitlines()
    assert len(names) == 2
    days = [int(redis_server.cli("TTL", name)) / 86_400 for name in names]
    assert all(7.5 < left < 8.1 for left in days), "seven days, less jitter, and one of grace"


@pytest.mark.parametrize("nobody", ["unix:///nobody.sock", "redis://127.0.0.1:1?cluster=1"])
def test_a_server_that_is_away_keeps_nobody_from_opening_or_closing(nobody: str) -> None:
    with open_cache(nobody, secret="s" * 32) as cache:
        assert cache.get_or_create(REQUEST, lambda: "made") == Answer(text="made")
        counted = cache.stats(everything=True).counters
    assert counted["miss.store_error"] == 1
    with pytest.raises(StoreError, match="cannot be reached"):
        open_cache(nobody)


def test_problems_of_a_server_are_told(url: str) -> None:
    with Server(settings={"maxmemory-policy": "allkeys-lru"}) as server:
        store = RedisStore(server.socket_url + "?durable=1")
        told = " ".join(store.problems())
        store.close()
    assert "noeviction" in told
    assert "append-only" in told
