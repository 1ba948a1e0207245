"""The scope in force: nested, in tasks, in threads, on decorated functions."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

import stampcache
from stampcache import ConfigError, Evidence, Scope, scope
from stampcache.scope import current_scope, said_before, surroundings


def test_outside_of_all_scopes_there_is_none() -> None:
    assert current_scope() is None


def test_what_is_not_given_comes_from_outside() -> None:
    with scope(tenant="acme", audience="group-7") as outer:
        assert current_scope() is outer
        with scope(namespace="faq") as inner:
            assert inner == current_scope() == Scope("acme", "faq", "group-7")
            with scope(audience=""):
                assert current_scope() == Scope("acme", "faq", "")
        assert current_scope() == Scope("acme", "default", "group-7")
    assert current_scope() is None


def test_a_scope_ends_with_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), scope(tenant="acme"):
        raise ZeroDivisionError
    assert current_scope() is None


def test_one_object_may_be_entered_many_times() -> None:
    acme, other = scope(tenant="acme"), scope(tenant="other")
    with acme, other, acme:
        assert current_scope() == Scope("acme")
    with other:
        assert current_scope() == Scope("other")
    assert current_scope() is None


def test_leaving_in_a_context_that_did_not_enter_is_no_error() -> None:
    acme = scope(tenant="acme")
    acme.__exit__(None, None, None)
    assert current_scope() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tenant": 5}, "tenant= takes a string, not int"),
        ({"namespace": b"x"}, "namespace= takes a string, not bytes"),
        ({"audience": ("a",)}, "audience= takes a string, not tuple"),
        ({"tenant": ""}, "tenant= is empty"),
    ],
)
def test_e13_a_scope_without_a_usable_name_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scope(**options)


def test_a_function_is_run_inside_its_scope() -> None:
    @scope(tenant="acme")
    def ask(word: str, *, loud: bool = False) -> tuple[Scope | None, str, bool]:
        """Ask."""
        return current_scope(), word, loud

    assert ask("hi", loud=True) == (Scope("acme"), "hi", True)
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask.")
    assert current_scope() is None


async def test_a_coroutine_function_is_run_inside_its_scope() -> None:
    @scope(tenant="acme")
    async def ask() -> Scope | None:
        await asyncio.sleep(0)
        return current_scope()

    assert set(await asyncio.gather(ask(), ask())) == {Scope("acme")}
    assert current_scope() is None


async def test_a_function_that_gives_a_coroutine_is_run_inside_its_scope() -> None:
    async def inner() -> Scope | None:
        await asyncio.sleep(0)
        return current_scope()

    given = scope(tenant="acme")(lambda: inner())
    assert await given() == Scope("acme")
    assert current_scope() is None


def test_a_generator_cannot_be_decorated() -> None:
    def steps() -> Iterator[int]:
        yield 1

    async def asteps() -> AsyncIterator[int]:
        yield 1

    for function in (steps, asteps):
        with pytest.raises(ConfigError, match="cannot decorate a generator"):
            scope(tenant="acme")(function)


async def test_tasks_do_not_see_each_others_scope() -> None:
    both_inside = asyncio.Barrier(2)

    async def serve(tenant: str) -> Scope | None:
        with scope(tenant=tenant):
            await both_inside.wait()
            inside = current_scope()
            await both_inside.wait()
        assert current_scope() is None
        return inside

    assert list(await asyncio.gather(serve("a"), serve("b"))) == [Scope("a"), Scope("b")]


async def test_a_task_keeps_the_scope_it_was_made_in() -> None:
    async def later() -> Scope | None:
        await asyncio.sleep(0)
        return current_scope()

    with scope(tenant="acme"):
        task = asyncio.create_task(later())
        threaded = asyncio.to_thread(current_scope)
        assert await threaded == Scope("acme")
    assert await task == Scope("acme")


def test_a_thread_started_by_hand_has_no_scope_unless_it_is_given_one() -> None:
    seen: list[Scope | None] = []

    def look() -> None:
        seen.append(current_scope())

    with scope(tenant="acme"):
        context = contextvars.copy_context()
        for thread in (
            threading.Thread(target=look),
            threading.Thread(target=context.run, args=[look]),
        ):
            thread.start()
            thread.join()
    assert seen == [None, Scope("acme")]


def test_threads_share_one_scope_object() -> None:
    acme = scope(tenant="acme")
    gate = threading.Barrier(4)
    seen: list[Scope | None] = []

    def work() -> None:
        with acme:
            gate.wait()
            seen.append(current_scope())
            gate.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [Scope("acme")] * 4


def test_the_name_is_the_class_and_not_the_module() -> None:
    assert stampcache.scope is scope


def test_what_runs_later_sees_the_scope_of_then_and_nothing_of_now() -> None:
    with scope(tenant="acme", question="q") as acme:
        then = surroundings()
    told = Evidence(text="of globex")
    with scope(tenant="globex", evidence=[told], no_store=True):
        now = surroundings()
        with said_before(then) as entered:
            assert entered == current_scope() == acme
            assert surroundings() == then
            with scope(audience="a"):
                assert current_scope() == Scope("acme", "default", "a")
        assert surroundings() == now
        with said_before(None):
            assert current_scope() == Scope(tenant="")
        assert surroundings() == now
    assert surroundings() is None
