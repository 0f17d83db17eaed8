"""What a handler may do wrong, or to its own actor: no actor is stuck by it, and no answer goes to the wrong one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.recipes import actor_inbox
from holdfast.recipes.actor_options import FORGET_S
from holdfast.recipes.actor_record import REMEMBERED_COUNT
from holdfast.testing import FakeClock


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot say what it is")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), _Mute()], ids=repr)
def test_whatever_a_thread_s_handler_raises_counts_as_a_try(error: BaseException) -> None:
    """A message whose handler calls `sys.exit` goes aside like others."""

    def handle(actor: holdfast.Actor, message: int) -> None:
        if message:
            raise error

    with holdfast.connect(f"memory://actors-raises-{type(error).__name__}") as locks:
        with locks.actors("jobs", handle, tries=2, backoff=0.0) as jobs:
            jobs.tell("a", 1, message_id="poison")
            assert jobs.ask("a", 0, timeout=60) is None
        [letter] = jobs.dead_letters("a")
        assert (letter.id, letter.tries) == ("poison", 2)
        assert type(error).__name__ in letter.error
        jobs.drop("a", "poison")


def test_a_handler_that_waits_for_something_cancelled_has_failed() -> None:
    """Nobody has cancelled its own task: it would be called again for ever, and nobody would be told."""

    async def handle(actor: holdfast.aio.Actor, message: int) -> None:
        if message:
            other = asyncio.ensure_future(asyncio.sleep(1))
            other.cancel()
            await other

    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-cancels") as locks:
            async with locks.actors("jobs", handle, tries=2) as jobs:
                await jobs.tell("a", 1, message_id="poison")
                assert await jobs.ask("a", 0, timeout=600) is None
                [letter] = await jobs.dead_letters("a")
                assert (letter.id, letter.tries) == ("poison", 2)
                assert "CancelledError" in letter.error

    FakeClock().run(main())


def test_one_id_at_several_actors_is_several_messages() -> None:
    """Each who asks has the answer of the actor that was asked, though the ids are the same."""

    async def main() -> None:
        gates = {key: asyncio.Event() for key in ("early", "late")}

        async def handle(actor: holdfast.aio.Actor, message: str) -> str:
            await gates[actor.key].wait()
            return f"{actor.key} {actor.name}"

        async with holdfast.aio.connect("memory://actors-same-id") as locks:
            async with locks.actors("ones", handle) as ones, locks.actors("twos", handle) as twos:
                asked = [
                    asyncio.ensure_future(each.ask(key, "?", message_id="order-7", timeout=600))
                    for each, key in ((ones, "early"), (ones, "late"), (twos, "late"), (twos, "late"))
                ]
                for key in gates:
                    await asyncio.sleep(5)
                    gates[key].set()
                assert await asyncio.gather(*asked) == ["early ones", "late ones", "late twos", "late twos"]

    FakeClock().run(main())


def test_an_actor_that_tells_itself_has_room_for_it() -> None:
    """What is handled is acknowledged before the next one is begun, so that one message always makes room for one."""

    async def main() -> None:
        over = asyncio.Event()

        async def handle(actor: holdfast.aio.Actor, left: int) -> None:
            actor.state = left
            if left:
                await countdown.tell("a", left - 1)
            else:
                over.set()

        async with holdfast.aio.connect("memory://actors-itself") as locks:
            countdown = locks.actors("countdown", handle, capacity=2, tries=2)
            async with countdown:
                await countdown.tell("a", 50)
                await asyncio.wait_for(over.wait(), 600)
            assert await countdown.dead_letters() == []

    FakeClock().run(main())


def _ask(jobs: Any) -> Any:
    return jobs.ask("a", "again")


def _tell_too_much(jobs: Any) -> Any:
    return [jobs.tell("a", "again") for _ in range(3)]


@pytest.mark.parametrize(("wait", "reason"), [(_ask, "asks its own actor"), (_tell_too_much, "InboxFull")])
def test_a_handler_never_waits_for_itself(wait: Callable[[Any], Any], reason: str) -> None:
    """Neither for its own answer, nor for room in its own inbox, without a timeout: it is told at once."""

    def handle(actor: holdfast.Actor, message: str) -> None:
        if message == "first":
            wait(jobs)

    with holdfast.connect(f"memory://actors-own-wait-{reason[:4]}") as locks:
        jobs = locks.actors("jobs", handle, tries=1, capacity=2)
        with jobs, pytest.raises(holdfast.MessageFailed, match=reason):
            jobs.ask("a", "first", timeout=60)
        jobs.drop("a", jobs.dead_letters("a")[0].id)


def test_keys_with_colons_have_their_own_dead_letters() -> None:
    """However key and id are put together: none is lost, listed, told again or dropped for another one's."""

    def handle(actor: holdfast.Actor, message: str) -> None:
        raise ValueError(message)

    with holdfast.connect("memory://actors-colons") as locks:
        jobs = locks.actors("jobs", handle, tries=1)
        with jobs:
            for key, message_id in (("a", "b:c"), ("a:b", "c"), ("a:b", "d"), ("a", "z")):
                with pytest.raises(holdfast.MessageFailed):
                    jobs.ask(key, "same", message_id=message_id, timeout=60)
        assert sorted((each.key, each.id) for each in jobs.dead_letters()) == [
            ("a", "b:c"), ("a", "z"), ("a:b", "c~1"), ("a:b", "d"),
        ]  # fmt: skip
        assert [each.id for each in jobs.dead_letters("a", limit=2)] == ["b:c", "z"]
        assert not jobs.retry("a:b", "c")
        assert not jobs.drop("a:b", "c")
        assert jobs.drop("a:b", "c~1")
        assert len(jobs.dead_letters()) == 3


def test_letters_of_one_id_are_all_kept() -> None:
    """Also where the actor was forgotten meanwhile, so that its messages are numbered anew."""

    async def handle(actor: holdfast.aio.Actor, message: int) -> None:
        raise ValueError(message)

    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-one-id") as locks:
            async with locks.actors("jobs", handle, tries=1) as jobs:
                for message in range(4):
                    with pytest.raises(holdfast.MessageFailed):
                        await jobs.ask("a", message, message_id="m", timeout=60)
                    await asyncio.sleep(2 * FORGET_S)
                    assert await jobs.look("a") is None
                assert sorted([each.message for each in await jobs.dead_letters("a")]) == [0, 1, 2, 3]

    FakeClock().run(main())


def test_whoever_comes_too_late_for_an_answer_is_told_so_at_once() -> None:
    """So many messages were handled since that nothing is known of it: it does not wait in its inbox any more."""

    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        return message

    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-too-late") as locks:
            jobs = locks.actors("jobs", handle, capacity=1000)
            with pytest.raises(holdfast.NoAnswer, match="stays in its inbox"):
                await jobs.ask("a", 0, message_id="first", timeout=1)
            for number in range(REMEMBERED_COUNT):
                await jobs.tell("a", number)
            async with jobs:
                await jobs.ask("a", 0, timeout=600)
            late = actor_inbox.look_for_answer(locks._core, jobs._plan, "a", "first")
            with pytest.raises(holdfast.NoAnswer, match="not kept any more"):
                await locks._run(late)

    FakeClock().run(main())
