"""The parts of the Redis store that need no server: names, addresses, seals, heads, breaker, replica."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.corpora import Standing
from stampcache.errors import CodecError, ConfigError
from stampcache.model import Selector
from stampcache.stores.codec import Codec
from stampcache.stores.redis import records
from stampcache.stores.redis.address import Settings, read_address
from stampcache.stores.redis.breaker import Breaker
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.names import base_of, pair
from stampcache.stores.redis.replica import Closing, News, Replica, Told
from stampcache.stores.redis.sealing import Seal
from stampcache.testing.samples import make_entry

KEEPER = Keeper(Seal(b"k" * 32), Codec())
ENTRY = make_entry("k")
PLACE = ENTRY.place


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


# -- names and addresses -----------------------------------------------------------------------------


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_two_pairs_have_one_name_only_if_they_are_equal(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    try:
        same = pair(*one) == pair(*other)
    except UnicodeEncodeError:
        return
    assert same is (one == other)


@pytest.mark.parametrize("prefix", ["", "a{b}", "a*", "a b", "a\n", "x" * 101, "[a]"])
def test_a_prefix_that_would_cover_others_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix="):
        base_of(prefix)


def test_an_address_tells_settings_from_what_is_redis_pys() -> None:
    url = "rediss://me:secret@host:6380/2?prefix=hr&strict=1&timeout_s=0.25&ssl_ca_certs=/ca.pem"
    address = read_address(url)
    assert address.server == "rediss://me:secret@host:6380/2?ssl_ca_certs=%2Fca.pem"
    assert address.settings == Settings(prefix="hr", strict=True, timeout_s=0.25)
    assert address.shown == "rediss://host:6380/2?prefix=hr"


def test_settings_of_the_url_stand_over_those_given() -> None:
    address = read_address("unix:///tmp/r.sock?prefix=b", Settings(prefix="a", strict=True))
    assert address.settings == Settings(prefix="b", strict=True)
    assert address.server == "unix:///tmp/r.sock"


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://host:port",
        "redis://host?strict=maybe",
        "redis://host?timeout_s=soon",
        "redis://host?timeout_s=0",
        "redis://host?connections=-1",
        "redis://host?connections=0",
        "redis://host?prefix=a*",
        "redis://host/3?cluster=1",
        "unix:///r.sock?cluster=1",
    ],
)
def test_a_wrong_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as told:
        read_address(url.replace("redis://host", "redis://me:secret@host"))
    assert "secret" not in str(told.value)


# -- seals and heads ---------------------------------------------------------------------------------


def sealed(sequence: int = 1_764_430_000_000_000, *, amended: bool = False) -> bytes:
    """Return a value as the Lua verbs write it."""
    flag = "j" if amended else "U"
    check = (sequence % 97 + 41 * amended) % 97
    return f"{flag}{sequence:016d}{check:02d}".encode() + KEEPER.encode(ENTRY)


def test_a_value_is_read_as_it_was_written() -> None:
    for amended in (False, True):
        found = records.found(sealed(amended=amended), PLACE, KEEPER)
        assert found == records.Found(ENTRY, 1_764_430_000_000_000, amended)


@given(st.data())
def test_no_damaged_bit_passes(data: st.DataObject) -> None:
    raw = bytearray(sealed(amended=data.draw(st.booleans())))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CodecError):
        records.found(bytes(raw), PLACE, KEEPER)


@given(st.integers(0, 60))
def test_no_value_that_was_cut_off_passes(length: int) -> None:
    with pytest.raises(CodecError):
        records.found(sealed()[:length], PLACE, KEEPER)


def test_a_value_of_another_address_or_another_key_does_not_pass() -> None:
    with pytest.raises(CodecError, match="another one"):
        records.found(sealed(), ("p", "other"), KEEPER)
    with pytest.raises(CodecError, match="another key"):
        records.found(sealed(), PLACE, Keeper(Seal(b"other" * 7), Codec()))


# -- the breaker -------------------------------------------------------------------------------------


def test_a_breaker_opens_after_failures_in_a_row_and_closes_with_a_success() -> None:
    now = Time()
    breaker = Breaker(failures=3, pause_s=1.0, longest_s=8.0, now=now)
    for _ in range(2):
        breaker.failed()
    breaker.succeeded()
    for _ in range(3):
        assert breaker.lets_through()
        breaker.failed()
    assert breaker.is_open
    assert not breaker.lets_through()
    now.at += 1.0
    assert breaker.lets_through()
    assert not breaker.lets_through(), "others wait for what the first one finds out"
    breaker.succeeded()
    assert breaker.lets_through()
    assert not breaker.is_open
    assert breaker.opened == 1


def test_pauses_grow_with_each_try_that_fails_and_not_with_what_was_under_way() -> None:
    now = Time()
    breaker = Breaker(failures=1, pause_s=1.0, longest_s=3.0, now=now)
    for _ in range(64):
        breaker.failed()
    now.at += 1.0
    for pause in (2.0, 3.0, 3.0):
        assert breaker.lets_through()
        breaker.failed()
        now.at += pause - 0.01
        assert not breaker.lets_through()
        now.at += 0.01


# -- the replica -------------------------------------------------------------------------------------


@pytest.fixture
def now() -> Time:
    return Time()


@pytest.fixture
def replica(now: Time) -> Replica:
    """A replica that has followed the log up to 10."""
    replica = Replica(capacity=10, staleness_s=1.0, now=now)
    replica.apply(News(10, 5, lost=True), replica.reading())
    return replica


def told(sequence: int, key: str = "k") -> Told:
    return Told(("p", key), sequence, 0.5)


def test_a_server_that_began_anew_has_none_of_the_invalidations_of_before(replica: Replica) -> None:
    selector = Selector(corpus="c")
    begun = News(20, 5, closing=[Closing(15, selector)])
    replica.apply(begun, replica.reading())
    assert [one.selector for one in replica.closing] == [selector]
    replica.apply(News(12, 9, lost=True, forgotten=True, closing=[]), replica.reading())
    assert replica.closing == (), "its clock went back, and so did its sequence"


def test_what_is_kept_is_served_for_as_long_as_it_may_be_stale(replica: Replica, now: Time) -> None:
    replica.keep(ENTRY, 7, replica.reading())
    now.at += 0.99
    assert replica.peek(PLACE) == ENTRY
    assert replica.lag().oldest_s == pytest.approx(0.99)
    now.at += 0.01
    assert replica.peek(PLACE) is None
    assert replica.confirmed(10, 5, replica.reading())
    assert replica.peek(PLACE) == ENTRY


def test_what_was_read_before_a_change_was_told_is_not_kept(replica: Replica) -> None:
    before = replica.reading()
    replica.apply(News(12, 5, told=[told(12)]), replica.reading())
    replica.keep(ENTRY, 9, before)
    assert replica.get(PLACE) is None
    replica.keep(ENTRY, 12, before)
    assert replica.get(PLACE) == ENTRY, "it was read after that change"


def test_an_old_piece_of_news_undoes_nothing_newer(replica: Replica) -> None:
    replica.keep(ENTRY, 11, replica.reading())
    replica.apply(News(11, 5, told=[told(10)]), replica.reading())
    assert replica.get(PLACE) == ENTRY


def test_what_this_process_wrote_is_known_here_before_anything_is_served(
    replica: Replica,
) -> None:
    replica.keep(ENTRY, 7, replica.reading())
    replica.wrote(13)
    assert replica.peek(PLACE) is None
    assert replica.sequence() is None
    replica.apply(News(13, 5, told=[]), replica.reading())
    assert replica.peek(PLACE) == ENTRY
    assert replica.sequence() == 13


def test_what_was_just_stored_is_all_there_is_to_know_if_nothing_else_changed(
    replica: Replica,
) -> None:
    replica.stored(ENTRY, 11, replica.reading())
    assert replica.peek(PLACE) == ENTRY
    replica.stored(make_entry("l"), 13, replica.reading())
    assert replica.peek(("p", "l")) is None, "12 was somebody else's"


@pytest.mark.parametrize("news", [News(99, 5, lost=True), News(99, 98)])
def test_a_lost_log_and_a_new_era_empty_everything(replica: Replica, news: News) -> None:
    before = replica.reading()
    replica.keep(ENTRY, 7, before)
    replica.keep_standing(Standing(corpus="c"), before)
    replica.apply(news, replica.reading())
    assert replica.get(PLACE) is None
    assert replica.standing("c") is None
    assert (replica.applied, replica.era) == (news.sequence, news.era)
    replica.keep(ENTRY, 7, before)
    replica.apply(News(11, 5), before)
    assert replica.get(PLACE) is None
    assert replica.applied == 99


def test_a_broken_connection_empties_everything(replica: Replica) -> None:
    replica.keep(ENTRY, 7, replica.reading())
    replica.flush()
    assert replica.peek(PLACE) is None
    assert replica.get(PLACE) is None
    assert replica.lag().flushes == 2


def test_lags_are_of_changes_to_what_was_served(replica: Replica) -> None:
    replica.keep(ENTRY, 7, replica.reading())
    replica.apply(News(11, 5, told=[told(11)]), replica.reading())
    assert replica.lag().changes == 0, "nobody was served in between"
    replica.keep(ENTRY, 11, replica.reading())
    assert replica.peek(PLACE)
    replica.apply(News(12, 5, told=[told(12)]), replica.reading())
    lag = replica.lag()
    assert (lag.changes, lag.p50_s, lag.p99_s) == (1, 0.5, 0.5)
