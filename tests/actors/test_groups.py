"""Messages of a quick handler are acknowledged in groups. Whichever of them fails, ends its process or is cancelled:
each effect is there once, in order, and no message is charged for another."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

import holdfast.aio
from holdfast._core.actor_exchange import ActorExchange
from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import NOW, Call, Flow
from holdfast.aio import Coordinator
from holdfast.aio.activation import IDLE_S
from holdfast.backends.execute import Moment
from holdfast.backends.memory.store import MemoryStore
from holdfast.recipes import actor_inbox, actor_worker
from holdfast.recipes.actor_options import plan_actors
from holdfast.recipes.actor_record import ActorRecord, Handled, InboxMessage
from holdfast.testing import FakeClock, memory_engine
from holdfast.testing.faults import FaultInjector, FaultyEngine

TOLD_COUNT = 60


def run_counted(main: Callable[[Coordinator], Any]) -> Counter[str]:
    """What was sent, without what came after."""
    faults, sent = FaultInjector(), Counter[str]()

    async def all_of_it() -> None:
        engine = FaultyEngine(memory_engine(), faults)
        async with Coordinator(engine, await engine.async_wire(), 30.0, None, None) as locks:
            await main(locks)
            sent.update(type(request).__name__ for request in faults.requests)

    FakeClock().run(all_of_it())
    return sent


def messages_of(pause: float, tries: int) -> Counter[str]:
    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        await asyncio.sleep(pause)
        actor.state = [*(actor.state or []), message]
        return len(actor.state)

    async def main(locks: Coordinator) -> None:
        lists = locks.actors("lists", handle, tries=tries)
        for number in range(TOLD_COUNT):
            await lists.tell("a", number)
        async with lists:
            assert await lists.ask("a", TOLD_COUNT, timeout=60) == TOLD_COUNT + 1
            view = await lists.look("a")
            assert view is not None
            assert view.state == list(range(TOLD_COUNT + 1))

    return run_counted(main)


def test_a_quick_handler_has_few_acknowledgements() -> None:
    assert messages_of(0.0, 5)["SwapRecord"] <= TOLD_COUNT + 2 + 12


def test_a_slow_handler_has_one_for_each_message() -> None:
    assert messages_of(0.01, 5)["SwapRecord"] >= 2 * TOLD_COUNT


def test_so_has_a_handler_whose_messages_are_tried_once() -> None:
    assert messages_of(0.0, 1)["SwapRecord"] >= 2 * TOLD_COUNT


def test_who_asks_again_and_again_costs_two_requests_each_time() -> None:
    async def count(actor: holdfast.aio.Actor, message: int) -> int:
        actor.state = (actor.state or 0) + 1
        return int(actor.state)

    async def main(locks: Coordinator) -> None:
        async with locks.actors("counts", count) as counts:
            for number in range(TOLD_COUNT):
                assert await counts.ask("a", 0, timeout=60) == number + 1

    sent = run_counted(main)
    assert sum(sent.values()) <= 2 * TOLD_COUNT + 20, sent


@pytest.mark.parametrize("seed", range(6))
def test_failures_in_groups_change_neither_the_order_nor_the_others(seed: int) -> None:
    chance = random.Random(seed)
    bad = {number for number in range(TOLD_COUNT) if chance.random() < 0.15}
    shaky = {number for number in range(TOLD_COUNT) if chance.random() < 0.15} - bad
    seen = Counter[int]()

    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        seen[message] += 1
        assert actor.tries == seen[message]
        actor.state = [*(actor.state or []), message]
        if message in bad or (message in shaky and actor.tries < 2):
            raise ValueError(message)
        return message

    async def main(locks: Coordinator) -> None:
        lists = locks.actors("lists", handle, tries=3, backoff=0.001)
        told = [lists.tell("a", number) for number in range(TOLD_COUNT)]
        if seed % 2:
            for each in told:
                await each
        async with lists:
            if not seed % 2:
                for each in told:
                    await each
            await lists.ask("a", -1, timeout=60)
        view = await lists.look("a")
        assert view is not None
        assert view.state == [*(n for n in range(TOLD_COUNT) if n not in bad), -1]
        assert {letter.message for letter in await lists.dead_letters()} == bad
        assert {letter.tries for letter in await lists.dead_letters()} <= {3}
        assert all(seen[number] == (3 if number in bad else 2 if number in shaky else 1) for number in seen)

    run_counted(main)


@pytest.mark.parametrize("seed", range(10))
def test_a_worker_that_is_cancelled_has_acknowledged_what_it_has_done(seed: int) -> None:
    chance, done = random.Random(seed), list[int]()

    async def handle(actor: holdfast.aio.Actor, message: int) -> None:
        await asyncio.sleep(0.0003)
        actor.state = [*(actor.state or []), message]
        done.append(message)

    async def main(locks: Coordinator) -> None:
        lists = locks.actors("lists", handle)
        for number in range(TOLD_COUNT):
            await lists.tell("a", number)
        for _ in range(8):
            running = asyncio.ensure_future(lists.run())
            await asyncio.sleep(chance.random() * 0.03)
            running.cancel()
            await asyncio.wait([running])
            view = await lists.look("a")
            assert view is not None
            assert (view.state or []) == done
            assert view.tries == 0
            assert await locks.survey() == []

    run_counted(main)


def test_an_actor_without_messages_gives_way() -> None:
    """With one place for them all, none waits for the end of another's idle moment."""

    async def handle(actor: holdfast.aio.Actor, message: int) -> float:
        return asyncio.get_running_loop().time()

    async def main(locks: Coordinator) -> None:
        async with locks.actors("jobs", handle, concurrency=1) as jobs:
            together = await asyncio.gather(*[jobs.ask(f"k{number}", 1, timeout=60) for number in range(10)])
            in_turn = [await jobs.ask(f"k{number}", 1, timeout=60) for number in range(10)]
        assert max(together) - min(together) < 5 * IDLE_S
        assert max(in_turn) - min(in_turn) < 5 * IDLE_S

    run_counted(main)


def test_a_message_that_has_failed_has_failed_for_whoever_asks_again() -> None:
    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        raise ValueError(message)

    async def main(locks: Coordinator) -> None:
        async with locks.actors("lists", handle, tries=1) as lists:
            for _ in range(3):
                with pytest.raises(holdfast.MessageFailed, match="ValueError: 1"):
                    await lists.ask("a", 1, message_id="first", timeout=60)
                with pytest.raises(holdfast.MessageFailed, match="ValueError: 2"):
                    await lists.ask("a", 2, timeout=60)
            assert len(await lists.dead_letters()) == 4

    run_counted(main)


def test_an_idle_worker_looks_for_what_is_told_elsewhere() -> None:
    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        return message

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with (
            holdfast.aio.connect("memory://elsewhere") as here,
            holdfast.aio.connect("memory://elsewhere") as there,
        ):
            async with here.actors("numbers", handle):
                numbers = there.actors("numbers")
                await numbers.ask("a", 0, timeout=60)
                began = loop.time()
                for number in range(20):
                    assert await numbers.ask("a", number, timeout=60) == number
                assert loop.time() - began < 20 * IDLE_S / 2

    FakeClock().run(main())


# Who is to blame, when a process has ended


class Workers:
    """Workers of one actor, each of which ends when it comes to a message that ends its process."""

    def __init__(self, seed: int, tries: int) -> None:
        self.chance, self.store, self.backend = random.Random(seed), MemoryStore(), memory_engine().backend
        self.plan = plan_actors("lists", ttl=1.0, concurrency=1, capacity=100, tries=tries, backoff=0.0)
        self.now, self.tokens, self.begun = 1_000_000, itertools.count(1), Counter[str]()
        self.killers = {f"m{number}" for number in range(12) if self.chance.random() < 0.2}

    @property
    def core(self) -> CoordinatorCore:
        return cast(CoordinatorCore, SimpleNamespace(backend=self.backend, observer=None, actors=ActorExchange()))

    def run(self, flow: Flow[Any]) -> Any:
        try:
            op = next(flow)
            while True:
                self.now += 1
                at = Moment(self.now, self.now)
                op = flow.send(
                    self.now / 1e6 if op is NOW else self.store.carry_out(cast(Call[Any], op).request, at)[0]
                )
        except StopIteration as stop:
            return stop.value

    def tell(self, number: int) -> None:
        self.run(actor_inbox.tell(self.core, self.plan, "k", InboxMessage(f"m{number}", "1"), None))

    def work(self) -> None:
        """Until the inbox is empty, or the process ends: at a killer, or by chance while there is nothing to do."""
        claimed = self.run(actor_worker.claim(self.core, self.plan, "k", 0, next(self.tokens), "w"))
        while claimed.record.waiting:
            record, handled, offset = claimed.record, list[Handled](), 0
            limit = self.chance.randint(1, 5) if self.plan.tries > 1 else 1
            for _ in range(min(record.waiting, record.begun)):
                message, offset = record.message_at(offset)
                if message.tries >= self.plan.tries:
                    assert not handled
                    self.run(actor_worker.give_up(self.core, self.plan, claimed, message.tries, "ended", limit))
                    break
                self.begun[message.id] += 1
                if message.id in self.killers:
                    return
                handled.append(Handled(message.id))
            else:
                text = json.dumps([*(json.loads(record.state) or []), *(each.id for each in handled)])
                self.run(actor_worker.acknowledge(self.core, self.plan, claimed, text, handled, limit))

    def check(self) -> None:
        told = 0
        for _ in range(200):
            if told < 12:
                for _ in range(self.chance.randint(0, 4)):
                    self.tell(told)
                    told += 1
            self.work()
        record = ActorRecord.decode(cast(Any, self.store.records["actor:lists:k"]))
        assert record.waiting == 0, "a message is tried for ever"
        names = [f"m{number}" for number in range(told)]
        assert json.loads(record.state) == [name for name in names if name not in self.killers], "charged for another"
        allowed = self.plan.tries + (self.plan.tries > 1)
        assert all(1 <= self.begun[name] <= allowed for name in names if name in self.killers), "tried too often"


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_only_a_message_that_ends_its_process_becomes_a_dead_letter(tries: int) -> None:
    for seed in range(200):
        Workers(seed, tries).check()


def _nobody_is_careful(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.claimed
    patch.setattr(ActorRecord, "claimed", lambda self, token: real(self, token)._replace(careful=0))


def _the_first_one_is_to_blame(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.claimed
    patch.setattr(ActorRecord, "claimed", lambda self, token: real(self._replace(begun=min(1, self.begun)), token))


def _one_is_begun_before_it_is_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActorRecord, "beginning", lambda self, limit: self._replace(begun=1 if self.careful else limit))


def _what_was_begun_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.claimed
    patch.setattr(ActorRecord, "claimed", lambda self, token: real(self._replace(begun=0), token))


@pytest.mark.parametrize(
    "plant",
    [
        _nobody_is_careful,
        _the_first_one_is_to_blame,
        _one_is_begun_before_it_is_there,
        _what_was_begun_is_forgotten,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)

    def all_of_them() -> None:
        for seed, tries in itertools.product(range(100), (1, 2, 5)):
            Workers(seed, tries).check()

    with pytest.raises(AssertionError):
        all_of_them()
