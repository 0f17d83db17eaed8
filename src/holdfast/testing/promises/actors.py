"""Actors: one message at a time per key, in order, once; and whoever was succeeded changes nothing any more."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ...aio.activation import Actor
from ...errors import InboxFull, MessageFailed, Misconfigured, NoAnswer
from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise

LOST_COUNT = 8
"""So many points of a request's way are tried: more than it has."""


async def _add(actor: Actor, amount: Any) -> Any:
    actor.state = (actor.state or 0) + amount
    return actor.state


async def _state(system: Any, key: str) -> Any:
    view = await system.look(key)
    return None if view is None or view.inbox else view.state


@promise(needs={"records"})
async def one_at_a_time_and_in_order(context: Context) -> None:
    """From several who tell, at two workers: each message once, those of one teller in its order."""
    one, other = await context.connect(), await context.connect()
    busy: set[str] = set()

    async def handle(actor: Actor, message: Any) -> None:
        assert actor.key not in busy
        busy.add(actor.key)
        await asyncio.sleep(0.001)
        actor.state = [*(actor.state or []), message]
        busy.remove(actor.key)

    async def tell(system: Any, teller: int) -> None:
        for number in range(6):
            for key in ("a", "b"):
                await system.tell(key, [teller, number])

    async with one.actors("lists", handle, tries=1) as first, other.actors("lists", handle, tries=1) as second:
        await asyncio.gather(*[context.start(tell((first, second)[each % 2], each)) for each in range(4)])
        for key in ("a", "b"):
            state = await context.eventually(partial(_all, first, key, 24), f"24 messages at {key!r}")
            for teller in range(4):
                assert [number for who, number in state if who == teller] == list(range(6))


async def _all(system: Any, key: str, count: int) -> Any:
    state = await _state(system, key)
    return state if len(state or []) == count else None


@promise(needs={"records"})
async def an_actor_answers(context: Context) -> None:
    """In whichever process; its state goes on from worker to worker."""
    asking, working = await context.connect(), await context.connect()
    async with working.actors("accounts", _add):
        assert await asking.actors("accounts").ask("alice", 100) == 100
        assert await asking.actors("accounts").ask("bob", 1) == 1
    accounts = asking.actors("accounts", _add)
    await accounts.tell("alice", 5)
    async with accounts:
        assert await accounts.ask("alice", 7) == 112
    view = await accounts.look("alice")
    assert view is not None
    assert (view.state, view.inbox) == (112, 0)
    assert [each.key for each in await accounts.views()] == ["alice", "bob"]
    assert [each.key for each in await accounts.views(after="alice")] == ["bob"]


@promise(needs={"records"})
async def at_most_so_many_at_once(context: Context) -> None:
    """Of the actors of one coordinator."""
    locks = await context.connect()
    inside: set[str] = set()
    most, gate = [0], asyncio.Event()

    async def handle(actor: Actor, message: Any) -> None:
        inside.add(actor.key)
        most[0] = max(most[0], len(inside))
        await gate.wait()
        inside.remove(actor.key)

    system = locks.actors("jobs", handle, concurrency=2)
    for key in "abcde":
        await system.tell(key, 1)
    async with system:
        await context.eventually(lambda: len(inside) == 2, "two at work")
        await asyncio.sleep(context.seconds(0.05))
        gate.set()
        for key in "abcde":
            await context.eventually(partial(_is_idle, system, key), f"{key!r} to be done")
    assert most == [2]


async def _is_idle(system: Any, key: str) -> bool:
    view = await system.look(key)
    return view is None or view.inbox == 0


@promise(needs={"records"})
async def a_message_is_told_once(context: Context) -> None:
    """However often it is told under its id, and whichever reply is lost."""
    faults = FaultInjector()
    locks, lossy = await context.connect(), await context.connect(faults=faults)
    accounts = lossy.actors("accounts")
    async with locks.actors("accounts", _add) as working:
        for _ in range(2):
            await accounts.tell("alice", 1, message_id="first")
            assert await working.ask("alice", 0) == 1
            await accounts.tell("alice", 1, message_id="first")
        for point in range(LOST_COUNT):
            faults.at(point, Fault.REPLY_LOST)
            await accounts.tell("bob", 1)
            assert await working.ask("bob", 0) == point + 1


@promise(needs={"records"})
async def a_lost_reply_does_not_repeat_the_effect(context: Context) -> None:
    """Of the worker: on the state, each message has its effect once."""
    faults = FaultInjector()
    locks, lossy = await context.connect(), await context.connect(faults=faults)
    accounts = locks.actors("accounts")
    async with lossy.actors("accounts", _add):
        for point in range(2 * LOST_COUNT):
            await accounts.tell("alice", 1)
            faults.at(point, Fault.REPLY_LOST)
            assert await accounts.ask("alice", 1) == 2 * (point + 1)


@promise(needs={"records"}, leaves=True)
async def a_zombie_cannot_acknowledge(context: Context) -> None:
    """It was cut off in the middle of a message, and goes on when another worker is at that very message."""
    faults = FaultInjector()
    paused, living = await context.connect(faults=faults), await context.connect()
    begun, woken, second, done = (asyncio.Event() for _ in range(4))

    async def zombie(actor: Actor, message: Any) -> str:
        begun.set()
        while not woken.is_set():
            try:
                await woken.wait()
            except asyncio.CancelledError:
                pass  # it does not want to know that its lease was lost
        actor.state = "of the zombie"
        return "of the zombie"

    async def handle(actor: Actor, message: Any) -> str:
        second.set()
        await done.wait()
        actor.state = "of its successor"
        return "of its successor"

    system = living.actors("accounts", handle, ttl=context.short)
    asked = context.start(system.ask("alice", 1))
    async with paused.actors("accounts", zombie, ttl=context.short):
        await begun.wait()
        faults.cut()
        async with system:
            await second.wait()
            faults.heal()
            woken.set()
            await asyncio.sleep(context.seconds(0.2))
            view = await system.look("alice")
            assert view is not None
            assert (view.state, view.inbox) == (None, 1)
            done.set()
            assert await asked == "of its successor"
    assert await _state(system, "alice") == "of its successor"


@promise(needs={"records"})
async def a_poisonous_message_is_put_out_of_the_way(context: Context) -> None:
    """After so many tries, each with the state as it was before; the others go on, and it can be told again."""
    locks = await context.connect()
    mended, seen = asyncio.Event(), list[int]()

    async def handle(actor: Actor, message: Any) -> Any:
        actor.state = [*(actor.state or []), message]
        if message == "bad" and not mended.is_set():
            seen.append(actor.tries)
            raise ZeroDivisionError("no")
        return actor.state

    system = locks.actors("lists", handle, tries=3, backoff=0.001)
    async with system:
        await system.tell("a", 1)
        error = await context.raises(MessageFailed, system.ask("a", "bad", message_id="poison"))
        assert "ZeroDivisionError: no" in str(error)
        assert seen == [1, 2, 3]
        assert await system.ask("a", 2) == [1, 2]
        [letter] = await system.dead_letters("a")
        assert (letter.key, letter.id, letter.message, letter.tries) == ("a", "poison", "bad", 3)
        assert await system.dead_letters("b") == []
        mended.set()
        assert await system.retry("a", "poison")
        assert not await system.retry("a", "poison")
        assert await system.dead_letters() == []
        assert await system.ask("a", 3) == [1, 2, "bad", 3]
        mended.clear()
        await context.raises(MessageFailed, system.ask("a", "bad", message_id="again"))
        assert await system.drop("a", "again")
        assert not await system.drop("a", "again")


@promise(needs={"records"})
async def a_full_inbox_pushes_back(context: Context) -> None:
    """Until there is room, or the time is over: then the message was not told."""
    locks = await context.connect()
    accounts = locks.actors("accounts", _add, capacity=2)
    for _ in range(2):
        await accounts.tell("alice", 1)
    error = await context.raises(InboxFull, accounts.tell("alice", 10, timeout=0))
    assert "alice" in str(error)
    await context.raises(InboxFull, accounts.ask("alice", 10, timeout=0.01))
    waiting = context.start(accounts.tell("alice", 1))
    await asyncio.sleep(context.seconds(0.05))
    assert not waiting.done()
    async with accounts:
        await waiting
        assert await accounts.ask("alice", 0) == 3


@promise(needs={"records"})
async def a_late_answer_can_be_fetched(context: Context) -> None:
    """Whoever has not waited long enough asks again under the same id, wherever it was handled."""
    asking, working = await context.connect(), await context.connect()
    accounts, others = asking.actors("accounts"), working.actors("accounts", _add)
    error = await context.raises(NoAnswer, accounts.ask("alice", 5, timeout=0.01))
    assert isinstance(error, TimeoutError)
    assert isinstance(error, NoAnswer)
    late = await context.raises(NoAnswer, others.ask("bob", 7, timeout=0.01))
    assert isinstance(late, NoAnswer)
    async with others:
        assert await accounts.ask("alice", 5, message_id=error.message_id) == 5
        assert await accounts.ask("alice", 1) == 6
        await context.raises(NoAnswer, accounts.ask("alice", 5, message_id=error.message_id))
        assert await others.ask("bob", 7, message_id=late.message_id) == 7


@promise(needs={"records"})
async def what_cannot_be_told_is_refused(context: Context) -> None:
    """Before anything is sent."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    accounts = locks.actors("accounts", _add)
    for key, message, options in (
        ("", 1, {}),
        ("k" * 500, 1, {}),
        ("alice", object(), {}),
        ("alice", float("nan"), {}),
        ("alice", "x" * 70_000, {}),
        ("alice", 1, {"message_id": "x" * 65}),
        ("alice", 1, {"timeout": -1}),
    ):
        await context.raises(Misconfigured, accounts.tell(key, message, **options))
        await context.raises(Misconfigured, accounts.ask(key, message, **options))
    for name, options in (
        ("a:b", {}),
        ("", {}),
        ("a", {"tries": 0}),
        ("a", {"capacity": 0}),
        ("a", {"concurrency": 0}),
        ("a", {"ttl": -1}),
    ):
        await context.raises(Misconfigured, _make(locks, name, options))
    await context.raises(Misconfigured, locks.actors("accounts").run())
    assert faults.points == 0


async def _make(locks: Any, name: str, options: dict[str, Any]) -> None:
    locks.actors(name, _add, **options)
