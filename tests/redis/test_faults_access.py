"""Who may reach the cache: the user and the TLS of docs/how-to/redis.md, and those who are refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stampcache import Hit, Refused, Request
from tests.redis.apps import App, Documents, opened
from tests.redis.certificates import Certificates, make_certificates
from tests.redis.servers import Server

PAGE = Path(__file__).parents[2] / "docs/how-to/redis.md"


def shown_user() -> str:
    """Return the ACL line of the page, without the word user."""
    found = re.search(r"^user (stampcache on .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that knows the page's user, one who may only read, and nobody else."""
    users = [shown_user(), "reader on >reading resetchannels ~* -@all +@read +@connection +info"]
    with Server(users=users) as server:
        yield server


def test_the_documented_user_may_do_all_that_a_cache_does(guarded: Server) -> None:
    with opened(guarded.url_of("stampcache", "a-long-password")) as cache:
        app = App(cache, Documents())
        for source in "abc":
            app.change(source)
            app.ask(source)
            assert app.hits(source)
        assert app.change("a")
        assert not app.hits("a")
        assert cache.purge() == 0
        assert cache.clear() == 3
        assert cache.stats(everything=True).entries == 0
        assert app.counted("error.") == 0
        assert not cache.core.store.problems()


def test_the_documented_user_reaches_no_foreign_key_and_no_setting(guarded: Server) -> None:
    import redis

    client = redis.Redis(
        port=guarded.port, username="stampcache", password="a-long-password", protocol=2
    )
    refused = (
        ("GET", "foreign"),
        ("SET", "foreign", "1"),
        ("EVAL", "return redis.call('GET', 'foreign')", "0"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("KEYS", "*"),
        ("ACL", "LIST"),
    )
    for words in refused:
        with pytest.raises(redis.ResponseError):
            client.execute_command(*words)
    client.close()


@pytest.mark.parametrize("user", ["reader:reading", "stampcache:wrong", "nobody:else-knows"])
def test_who_may_not_gets_no_cache_and_an_answer(guarded: Server, user: str) -> None:
    with opened(guarded.url_of(*user.split(":"))) as cache:
        app = App(cache, Documents())
        for _ in range(5):
            assert app.ask("a") is None
        assert app.counted("error.") > 0
        refused = cache.update(Request(question="q"), "a")
        assert isinstance(refused, Refused)
        assert user.split(":")[1] not in refused.detail, "a password is nobody's to read"


def test_tls_carries_a_cache(tls_server: Server) -> None:
    with opened(tls_server.url) as cache:
        app = App(cache, Documents())
        app.ask("a")
        assert app.hits("a")


def test_a_server_that_another_authority_signed_is_not_believed(
    tls_server: Server, tmp_path: Path
) -> None:
    other: Certificates = make_certificates(tmp_path)
    url = tls_server.url.replace(str(certificate_of(tls_server)), str(other.authority))
    with opened(url) as cache:
        app = App(cache, Documents())
        assert app.ask("a") is None
        assert app.ask("a") is None
        assert app.counted("error.") > 0
        assert not isinstance(cache.lookup(app.request("a")), Hit)


def certificate_of(server: Server) -> Path:
    assert server.tls is not None
    return server.tls.authority
