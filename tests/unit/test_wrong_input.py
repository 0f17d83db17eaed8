"""What cannot be meant is refused at once, in words that say what to write instead; nothing hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import Misconfigured


async def coroutine(lease: object) -> None: ...


def plain(lease: object) -> int:
    return 1


BODIES: list[tuple[Any, str]] = [
    (coroutine, "holdfast.aio"),
    (lambda lease: coroutine(lease), "holdfast.aio"),
    (None, "not None"),
]


@pytest.mark.parametrize(("body", "said"), BODIES, ids=["coroutine function", "returns a coroutine", "nothing"])
def test_a_leader_whose_body_would_not_run_is_refused(body: Any, said: str) -> None:
    with holdfast.connect("memory://") as locks:
        with pytest.raises(Misconfigured, match=said):
            locks.election("scheduler").run(body)
        assert locks.survey() == []


@pytest.mark.parametrize(("body", "said"), [(plain, "async def"), (None, "not None")])
def test_a_leader_among_tasks_needs_a_coroutine_function(body: Any, said: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            with pytest.raises(Misconfigured, match=said):
                await locks.election("scheduler").run(body)
            assert await locks.survey() == []

    asyncio.run(main())


@pytest.mark.parametrize("make", [asyncio.Event, lambda: True, lambda: "stop"])
def test_what_stops_a_candidate_is_an_event_of_threads(make: Callable[[], Any]) -> None:
    with holdfast.connect("memory://") as locks, pytest.raises(Misconfigured, match=r"threading\.Event"):
        locks.election("scheduler").run(plain, stop=make())


@pytest.mark.parametrize("make", [threading.Event, lambda: True])
def test_what_stops_a_candidate_among_tasks_is_an_event_of_asyncio(make: Callable[[], Any]) -> None:
    """An event of threads would stop the loop with its `wait`, for ever."""
    event = make()
    if isinstance(event, threading.Event):
        watchdog = threading.Timer(20, event.set)  # lets the loop go on, if it hangs
        watchdog.start()

    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            with pytest.raises(Misconfigured, match=r"asyncio\.Event"):
                await locks.election("scheduler").run(coroutine, stop=event)

    try:
        asyncio.run(main())
    finally:
        if isinstance(event, threading.Event):
            watchdog.cancel()
            watchdog.join()


def test_a_hook_of_threads_is_no_coroutine_function() -> None:
    """It would be called and never run."""
    with holdfast.connect("memory://") as locks:
        for make in (
            lambda: locks.lock("door", on_lost=coroutine),
            lambda: locks.lock_all(["a", "b"], on_lost=coroutine),
            lambda: locks.election("scheduler", on_lost=coroutine),
        ):
            with pytest.raises(Misconfigured, match="never awaited"):
                make()


def test_a_hook_of_tasks_may_be_one() -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            locks.lock("door", on_lost=coroutine)

    asyncio.run(main())


@pytest.mark.parametrize("option", ["fair", "renew"])
@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_switch_is_true_or_false(option: str, value: Any) -> None:
    with holdfast.connect("memory://") as locks:
        options: Any = {option: value}
        with pytest.raises(Misconfigured, match=f"{option} of 'door' is True or False, not"):
            locks.lock("door", **options)
        with pytest.raises(Misconfigured, match=f"{option} of 'door' is True or False, not"):
            locks.lock("door").try_acquire(**options)


@pytest.mark.parametrize("ticket", [None, 5, object()])
def test_a_check_takes_a_sequencer(ticket: Any) -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            with pytest.raises(Misconfigured, match="sequencer"):
                await locks.check(ticket)

    asyncio.run(main())
    with holdfast.connect("memory://") as locks, pytest.raises(Misconfigured, match="sequencer"):
        locks.check(ticket)


@pytest.mark.parametrize("prefix", [None, 5, b"orders/"])
def test_a_survey_takes_a_prefix(prefix: Any) -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            with pytest.raises(Misconfigured, match="prefix"):
                await locks.survey(prefix)

    asyncio.run(main())
    with holdfast.connect("memory://") as locks, pytest.raises(Misconfigured, match="prefix"):
        locks.survey(prefix)


def test_what_is_not_a_url_is_shown_without_its_password() -> None:
    with pytest.raises(Misconfigured, match="is not a URL") as caught:
        holdfast.connect("app:secret@db.example/locks")
    assert "secret" not in str(caught.value)
    assert "db.example" in str(caught.value)


def test_who_waits_for_its_own_permit_is_not_sent_to_another_kind_of_lock() -> None:
    """`reentrant` on the name of a semaphore would be refused in its turn."""
    with holdfast.connect("memory://") as locks, locks.semaphore("transcode", permits=1):
        with pytest.raises(holdfast.DeadlockDetected, match="release what it holds first") as caught:
            locks.semaphore("transcode", permits=1).acquire()
    assert "a plain lock" in str(caught.value)
