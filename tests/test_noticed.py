"""What a process remembers of the pairs that its lookups ended with."""

from stampcache.noticed import ASKERS, SERVED, WAITING, Noticed
from tests.promised import pair


def test_drawn_and_doubtful_pairs_wait_to_be_kept_and_are_taken_once() -> None:
    noticed = Noticed()
    noticed.add(pair(stored="drawn", served=False), doubtful=False)
    noticed.add(pair(stored="in doubt", sampled=False, served=False), doubtful=True)
    noticed.add(pair(stored="served only", sampled=False), doubtful=False)
    assert len(noticed) == 2
    assert [one.stored for one in noticed.take()] == ["drawn", "in doubt"]
    assert (len(noticed), list(noticed.take())) == (0, [])


def test_served_pairs_are_known_by_their_entry() -> None:
    noticed = Noticed()
    for asked in ("a", "b", "a"):
        noticed.add(pair(asked, entry_id="1"), doubtful=False)
    noticed.add(pair("c", entry_id="2", served=False), doubtful=False)
    assert [one.asked for one in noticed.served("1")] == ["b", "a"]
    assert list(noticed.served("2")) == []


def test_what_is_remembered_is_bounded() -> None:
    noticed = Noticed()
    for at in range(SERVED + 1):
        noticed.add(pair(str(at), entry_id=str(at)), doubtful=False)
    assert len(noticed) == WAITING
    assert noticed.take()[0].asked == str(SERVED + 1 - WAITING)
    assert (len(noticed.served("0")), len(noticed.served("1"))) == (0, 1)


def test_of_a_popular_entry_the_last_askers_are_remembered() -> None:
    noticed = Noticed()
    for at in range(ASKERS + 5):
        noticed.add(pair(str(at), entry_id="1", sampled=False), doubtful=False)
    assert [one.asked for one in noticed.served("1")] == [str(at) for at in range(5, ASKERS + 5)]


def test_a_forgotten_tenant_is_not_remembered() -> None:
    noticed = Noticed()
    for tenant in ("t", "u"):
        noticed.add(pair(tenant=tenant, entry_id=tenant), doubtful=False)
    noticed.let_go("t", 1)
    assert (list(noticed.served("t")), len(noticed.served("u"))) == ([], 1)
    assert [one.tenant for one in noticed.take()] == ["u"]


def test_two_who_learn_of_a_forgotten_tenant_at_once_end_in_one_generation() -> None:
    noticed = Noticed()
    noticed.let_go("", 2)
    noticed.let_go("", 1)  # began first, and came second
    noticed.add(pair(stored="of now"), doubtful=False, generation=2)
    assert [one.stored for one in noticed.take()] == ["of now"]
