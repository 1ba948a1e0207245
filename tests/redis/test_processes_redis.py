"""Processes of threads and tasks on one Redis: whose answer, how many makings, what a kill leaves."""

import time
from textwrap import dedent

import pytest

import stampcache
from stampcache import Hit, Request
from tests.redis.apps import SECRET, opened
from tests.redis.probing import scopes
from tests.redis.servers import Server
from tests.redis.workers import Worker, workers

PROCESSES = 8
EACH = 25


# -- whose answer ----------------------------------------------------------------------------------


def test_no_hostile_name_reaches_the_partition_of_another(redis_server: Server) -> None:
    probing = """
        from tests.redis.apps import opened
        from tests.redis.probing import probe_together
        with opened(arguments[0]) as cache:
            tell(probe_together(cache, number, 1200))
    """
    with workers(PROCESSES, probing, redis_server.url) as started:
        tallies = [worker.hear() for worker in started]
    assert [tally["wrong"] for tally in tallies] == [0] * PROCESSES
    assert [tally["error"] for tally in tallies] == [0] * PROCESSES
    assert all(tally["hit"] > 0 for tally in tallies)


def test_clearing_a_hostile_name_clears_exactly_that_one(redis_server: Server) -> None:
    for foreign in ("acme", "stampcache", "{stampcache}"):
        redis_server.cli("SET", foreign, "foreign")
    asked = {str(one): Request(question="q", scope=one) for one in scopes()}
    with opened(redis_server.url) as cache:
        for name, request in asked.items():
            cache.update(request, name, outcome=cache.lookup(request))
        left = len(asked)
        for request in asked.values():
            who = request.scope
            assert who is not None
            with stampcache.scope(
                tenant=who.tenant, namespace=who.namespace, audience=who.audience
            ):
                assert cache.clear() == 1
            left -= 1
            assert not isinstance(cache.lookup(request), Hit)
            assert cache.stats(everything=True).entries == left
    for foreign in ("acme", "stampcache", "{stampcache}"):
        assert redis_server.cli("GET", foreign) == "foreign"


# -- how many makings ------------------------------------------------------------------------------

ASKING = dedent("""
    import asyncio, threading, time
    from stampcache import Request
    from tests.redis.apps import opened

    url, secret, each = arguments
    cache, made, got = opened(url), [], []

    def make():
        made.append(time.time())
        time.sleep(plan["takes"])
        if plan["fails"]:
            raise ValueError("the model is down")
        return f"made by {number}"

    async def amake():
        return await asyncio.to_thread(make)

    def ask():
        try:
            got.append(cache.get_or_create(Request(question=plan["question"]), make).text)
        except Exception as error:
            got.append(f"{type(error).__name__}: {error}")

    async def aask():
        try:
            got.append((await cache.aio.get_or_create(Request(question=plan["question"]), amake)).text)
        except Exception as error:
            got.append(f"{type(error).__name__}: {error}")

    async def tasks():
        await asyncio.gather(*(aask() for _ in range(int(each) - int(each) // 2)))

    tell("ready")
    while (plan := hear()) is not None:
        made.clear(); got.clear()
        threads = [threading.Thread(target=ask) for _ in range(int(each) // 2)]
        for thread in threads: thread.start()
        asyncio.run(tasks())
        for thread in threads: thread.join()
        tell({"made": len(made), "got": sorted(got)})
""")


def asked_together(
    started: list[Worker], question: str, *, takes: float = 0.3, fails: bool = False
) -> list[dict[str, object]]:
    for worker in started:
        worker.tell({"question": question, "takes": takes, "fails": fails})
    return [worker.hear() for worker in started]


def test_200_equal_requests_of_8_processes_cost_one_making(redis_server: Server) -> None:
    with workers(PROCESSES, ASKING, redis_server.url, SECRET, str(EACH)) as started:
        assert [worker.hear() for worker in started] == ["ready"] * PROCESSES
        for number in range(3):
            told = asked_together(started, f"question {number}")
            assert sum(one["made"] for one in told) == 1
            got = [text for one in told for text in one["got"]]
            assert len(got) == PROCESSES * EACH
            assert len(set(got)) == 1


def test_the_failure_of_one_making_is_that_of_all_processes(redis_server: Server) -> None:
    with workers(PROCESSES, ASKING, redis_server.url, SECRET, str(EACH)) as started:
        assert [worker.hear() for worker in started] == ["ready"] * PROCESSES
        told = asked_together(started, "q", takes=2.5, fails=True)
        assert sum(one["made"] for one in told) == 1
        got = [text for one in told for text in one["got"]]
        assert len(got) == PROCESSES * EACH
        assert all("the model is down" in text for text in got)
        again = asked_together(started, "q")
        assert sum(one["made"] for one in again) == 1, "a failure is nobody's afterwards"


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_others_take_over_from_a_leader_that_died_or_stopped(
    redis_server: Server, how: str
) -> None:
    with workers(2, ASKING, f"{redis_server.url}?lease_s=1", SECRET, "2") as started:
        leader, other = started
        assert [worker.hear() for worker in started] == ["ready"] * 2
        leader.tell({"question": "q", "takes": 60, "fails": False})
        time.sleep(0.3)
        getattr(leader, how)()
        began = time.monotonic()
        (told,) = asked_together([other], "q", takes=0.01)
        assert told == {"made": 1, "got": ["made by 1"] * 2}
        assert time.monotonic() - began < 20


def test_a_leader_that_is_cancelled_hands_over_to_another_process_at_once(
    redis_server: Server,
) -> None:
    cancelled = """
        import asyncio
        from stampcache import Request
        from tests.redis.apps import opened

        cache = opened(arguments[0])

        async def make():
            tell("making")
            await asyncio.sleep(60)

        async def lead():
            leading = asyncio.create_task(cache.aio.get_or_create(Request(question="q"), make))
            while not await asyncio.to_thread(hear):
                pass
            leading.cancel()
            await asyncio.wait([leading])
            await asyncio.sleep(60)

        asyncio.run(lead())
    """
    with (
        workers(1, cancelled, redis_server.url) as (leader,),
        workers(1, ASKING, redis_server.url, SECRET, "2") as (other,),
    ):
        assert leader.hear() == "making"
        assert other.hear() == "ready"
        began = time.monotonic()
        other.tell({"question": "q", "takes": 0.01, "fails": False})
        time.sleep(0.2)
        leader.tell("cancel")
        assert other.hear() == {"made": 1, "got": ["made by 0"] * 2}
        assert time.monotonic() - began < 10


def test_who_waits_for_a_leader_makes_its_own_when_the_server_dies() -> None:
    with Server() as server, workers(2, ASKING, server.url, SECRET, "2") as (leader, other):
        assert [leader.hear(), other.hear()] == ["ready"] * 2
        leader.tell({"question": "q", "takes": 2, "fails": False})
        time.sleep(0.3)
        other.tell({"question": "q", "takes": 0.01, "fails": False})
        time.sleep(0.3)
        server.kill()
        began = time.monotonic()
        assert other.hear()["got"] == ["made by 1"] * 2
        assert time.monotonic() - began < 5
        assert leader.hear()["got"] == ["made by 0"] * 2


# -- what a kill leaves ----------------------------------------------------------------------------

WRITING = dedent("""
    from stampcache import Evidence, Request, Stored
    from tests.redis.apps import opened
    url, secret = arguments
    cache, at = opened(url), 0
    while True:
        request = Request(question=f"question {number}.{at}")
        evidence = [Evidence(corpus="c", source=f"{at % 5}", text="t")]
        outcome = cache.lookup(request)
        text = f"answer {number}.{at} " + "x" * 5000
        done = cache.update(request, text, outcome=outcome, evidence=evidence)
        assert isinstance(done, Stored), done
        tell(at)
        if at % 7 == 6:
            cache.invalidate(corpus="other", source=f"{at}")
        at += 1
""")


def test_killed_writers_leave_whole_entries_and_all_that_was_acknowledged(
    redis_server: Server,
) -> None:
    with workers(4, WRITING, redis_server.url, SECRET) as started:
        last = []
        for number, worker in enumerate(started):
            for _ in range(5 + 11 * number):
                worker.hear()
            worker.kill()
            last.append(max([4 + 11 * number, *worker.rest()]))
    with opened(redis_server.url) as cache:
        assert not cache.core.store.problems()
        for number, count in enumerate(last):
            for at in range(count + 1):
                outcome = cache.lookup(Request(question=f"question {number}.{at}"))
                assert isinstance(outcome, Hit)
                assert outcome.answer.text.startswith(f"answer {number}.{at} x")
        before = cache.stats(everything=True).entries
        assert 0 < cache.invalidate(corpus="c", source="3") < before
        assert not cache.core.store.problems()


def test_a_writer_that_was_stopped_in_mid_making_stores_nothing_late(redis_server: Server) -> None:
    making = """
        from stampcache import Evidence, Request
        from tests.redis.apps import opened
        url, secret = arguments
        cache = opened(url)
        outcome = cache.lookup(Request(question="q"))
        tell("read")
        hear()
        evidence = [Evidence(corpus="c", source="s", text="old")]
        done = cache.update(Request(question="q"), "old", outcome=outcome, evidence=evidence)
        tell(getattr(getattr(done, "reason", None), "name", "STORED"))
    """
    with (
        workers(1, making, redis_server.url, SECRET) as (worker,),
        opened(redis_server.url) as cache,
    ):
        assert worker.hear() == "read"
        worker.pause()
        worker.tell()
        cache.invalidate(corpus="c", source="s")
        worker.resume()
        assert worker.hear() == "FENCED"
        assert not isinstance(cache.lookup(Request(question="q")), Hit)
