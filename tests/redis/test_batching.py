"""Takes and releases of many flows leave as one call: each is told as if it had been alone."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from weakref import WeakSet

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import Exchange, Flow, NewEvent, Now, Receive, Sleep, Spawn, Tell, WaitEvent
from holdfast.backends.queue_backend import Release, Take, Taken
from holdfast.backends.redis import batching
from holdfast.backends.redis.batching import LEAST_COUNT, MOST_COUNT, PATIENCE_S, Batching, RedisRest
from holdfast.backends.redis.codec import Codec
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.pool import RedisPool
from holdfast.errors import OutcomeUnknown
from holdfast.model import Claim, LockSpec
from tests.redis.faces import calls, run
from tests.redis.test_pushes import NoConnection
from tests.support.redis_server import RedisServer

TASKS = 40


def test_many_tasks_are_few_commands_and_all_have_their_own_lock(server: RedisServer) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            assert await (await locks.lock("warm").acquire()).release()
            for _ in range(2):  # the server has learnt the programs after the first time
                before = calls(server, "evalsha", "eval")
                leases = await asyncio.gather(*(locks.lock(f"n{n}").acquire() for n in range(TASKS)))
                assert [view.name for view in await locks.survey("n")] == sorted(lease.name for lease in leases)
                assert [lease.name for lease in leases] == [f"n{n}" for n in range(TASKS)]
                assert await asyncio.gather(*(lease.release() for lease in leases)) == [True] * TASKS
            assert calls(server, "evalsha", "eval") - before < TASKS // 2
            assert not await locks.survey("")

    run(main())


def test_who_finds_its_name_taken_queues_and_is_granted(server: RedisServer) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(server.url) as locks, holdfast.aio.connect(server.url) as others:
            held = [await others.lock(f"n{n}").acquire() for n in range(0, TASKS, 4)]
            tasks = [asyncio.ensure_future(locks.lock(f"n{n}").acquire()) for n in range(TASKS)]
            await asyncio.wait([task for n, task in enumerate(tasks) if n % 4])
            assert not any(task.done() for task in tasks[::4])
            assert all(await asyncio.gather(*(lease.release() for lease in held)))
            leases = await asyncio.gather(*tasks)
            assert all(new.token > old.token for new, old in zip(leases[::4], held, strict=True))
            assert await asyncio.gather(*(lease.release() for lease in leases)) == [True] * TASKS

    run(main())


def test_the_same_name_many_times_is_one_holder_after_the_other(server: RedisServer) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            inside, tokens = 0, []

            async def one() -> None:
                nonlocal inside
                lease = await locks.lock("a").acquire()
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                tokens.append(lease.token)
                inside -= 1
                assert await lease.release()

            await asyncio.gather(*(one() for _ in range(TASKS)))
            assert tokens == sorted(set(tokens))

    run(main())


def test_a_key_of_another_kind_fails_alone(server: RedisServer) -> None:
    async def main() -> list[Any]:
        async with holdfast.aio.connect(server.url) as locks:
            assert await (await locks.lock("warm").acquire()).release()
            server.raw("LPUSH", "holdfast/line/n1", "not a lock")
            asked = (locks.lock(f"n{n}", timeout=0).acquire() for n in range(4))
            found: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
            return found

    zero, one, two, three = run(main())
    assert "WRONGTYPE" in str(one)
    assert [lease.name for lease in (zero, two, three)] == ["n0", "n2", "n3"]


@pytest.fixture
def together_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(batching.BUSY_COUNT, False, 1)


def test_threads_are_put_together_as_tasks_are(server: RedisServer, together_at_once: None) -> None:
    with holdfast.connect(server.url) as locks:
        held = [locks.lock(f"n{n}").acquire() for n in range(0, TASKS, 4)]
        tokens: dict[int, int] = {}

        def take(number: int) -> None:
            with locks.lock(f"n{number}", timeout=30) as lease:
                tokens[number] = lease.token

        threads = [threading.Thread(target=take, args=(n,)) for n in range(TASKS)]
        for thread in threads:
            thread.start()
        assert all(lease.release() for lease in held)
        for thread in threads:
            thread.join(30)
        assert sorted(tokens) == list(range(TASKS))
        assert not locks.survey("")


class Told:
    """What somebody who waits is told."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def set_result(self, value: Any) -> None:
        self.values.append(value)

    answer = set_result


class Event:
    def set(self) -> None: ...


class Scene:
    """A pool with one connection that is busy, requests that have joined, and a server that the test plays."""

    def __init__(self, count: int, kind: type = Take) -> None:
        self.codec = Codec("t", "host", 7)
        self.pool = RedisPool(lambda deadline: _never(), "nowhere")
        self.forgotten: list[str] = []
        self.batching = Batching(self.pool, self.codec, self.forgotten.append, lambda: "t/wake/1")
        self.link = RedisConnection(NoConnection(), WeakSet())
        self.batching.busy_count = self.pool.count = 1
        self.flows: list[Flow[None]] = []
        self.told: list[Told] = []
        for number in range(count):
            assert self.join(number, kind)
        self.carrier, self.watch = self.flows
        self.over = False
        assert isinstance(self.carrier.send(None), Now)
        assert isinstance(self.carrier.send(1.0), NewEvent)
        assert isinstance(self.carrier.send(Event()), Now)
        assert isinstance(self.carrier.send(1.0), WaitEvent)
        self.pool.put(self.link)  # it comes free
        self.op: Any = self.carrier.send(None)

    def join(self, number: int, kind: type, deadline: float = 100.0) -> bool:
        claim = Claim(LockSpec(f"n{number}"), f"o{number}", "actor")
        request: Any = Take((claim,), True) if kind is Take else Release(claim, 0.0)
        told = Told()
        joined = self.batching.join(request, deadline, told, self.flows.append)
        if joined:
            self.told.append(told)
        return joined

    def step(self, answer: object = None) -> None:
        """Answer the op of the carrier, or raise it there; readings of the clock by the way."""
        try:
            while isinstance(self.op, Now):
                self.op = self.carrier.send(1.0)
            self.op = self.carrier.throw(answer) if isinstance(answer, BaseException) else self.carrier.send(answer)
            while isinstance(self.op, Now | Tell | Sleep):
                if isinstance(self.op, Tell):
                    for pending, value in self.op.replies:
                        pending.set_result(value)
                self.op = self.carrier.send(1.0)
        except StopIteration:
            self.over = True

    def begin(self) -> None:
        while isinstance(self.op, Now):
            self.op = self.carrier.send(1.0)
        assert isinstance(self.op, Exchange)

    @property
    def replies(self) -> list[Any]:
        return [value for told in self.told for value in told.values]

    @property
    def rests(self) -> list[tuple[Any, bool]]:
        assert all(isinstance(each, RedisRest) for each in self.replies)
        return [(type(each.said) if each.said else None, each.again) for each in self.replies]


def _never() -> Flow[RedisConnection]:
    yield from ()
    raise AssertionError("nobody dials here")


def test_a_program_that_the_server_does_not_know_is_sent_whole() -> None:
    scene = Scene(2)
    scene.begin()
    assert scene.op.data.count(b"EVALSHA") == 1
    scene.step(b"-NOSCRIPT no\r\n")
    assert b"Takes: many claims" in scene.op.data
    scene.step(b"*2\r\n$2\r\n11\r\n$2\r\n12\r\n")
    assert scene.replies == [[Taken(11)], [Taken(12)]]
    assert scene.over
    assert scene.pool.idle == [scene.link]


def test_a_reply_that_comes_in_pieces() -> None:
    scene = Scene(2)
    scene.begin()
    scene.step(b"*2\r\n$2\r\n1")
    assert isinstance(scene.op, Receive)
    scene.step(b"1\r\n$2\r\n12\r\n")
    assert scene.replies == [[Taken(11)], [Taken(12)]]


def test_a_server_that_does_not_want_many_is_asked_one_by_one_from_then_on() -> None:
    scene = Scene(3, Release)
    scene.begin()
    scene.step(b"-CROSSSLOT no\r\n")
    assert scene.rests == [(None, False)] * 3
    assert not scene.batching.due


def test_what_is_not_usual_is_made_by_itself_and_the_others_are_told() -> None:
    scene = Scene(3)
    scene.begin()
    scene.step(b"*3\r\n$2\r\n11\r\n:0\r\n$2\r\n13\r\n")
    assert (scene.replies[0], scene.replies[2]) == ([Taken(11)], [Taken(13)])
    assert isinstance(scene.replies[1], RedisRest)
    assert (scene.replies[1].said, scene.replies[1].again, scene.replies[1].link) == (None, False, None)


def test_who_finds_its_name_taken_waits_in_its_line() -> None:
    scene = Scene(3)
    scene.begin()
    assert scene.op.data.count(b" t/wake/1 ") == 3
    scene.step(b"*3\r\n$2\r\n11\r\n*3\r\n:2000000\r\n:4\r\n:77\r\n:-5\r\n")
    assert scene.replies == [[Taken(11)], [Taken(0, 2.0, 4, mark=77)], [Taken(0, capacity=5)]]


def test_who_is_released_waits_no_longer() -> None:
    scene = Scene(3, Release)
    scene.begin()
    scene.step(b"*3\r\n:1\r\n:2\r\n:0\r\n")
    assert (scene.replies[0], scene.replies[2]) == (True, False)
    assert scene.forgotten == ["o0", "o2"]


def test_an_interrupted_carrier_keeps_nobody_waiting() -> None:
    scene = Scene(3, Release)
    scene.begin()
    assert scene.join(3, Release)  # it waits for the next call
    with pytest.raises(KeyboardInterrupt):
        scene.step(KeyboardInterrupt())
    assert scene.rests == [(None, True)] * 3 + [(None, False)]
    assert scene.pool.count == 0
    assert scene.batching.carriers == 0


def test_a_connection_that_has_ended_has_each_made_again() -> None:
    scene = Scene(3, Release)
    scene.begin()
    scene.step(b"")
    assert scene.rests == [(None, True)] * 3


def test_a_reply_that_does_not_come_is_missed_by_each() -> None:
    scene = Scene(3)
    scene.begin()
    scene.step(TimeoutError())
    assert scene.rests == [(OutcomeUnknown, True)] * 3
    assert scene.pool.count == 0


def test_who_has_less_time_than_those_before_does_not_join() -> None:
    scene = Scene(2)
    scene.begin()
    assert scene.join(3, Take, 100.0)
    assert not scene.join(4, Take, 99.0)
    assert scene.join(5, Take, 100.0)


def test_who_is_alone_is_given_the_connection() -> None:
    scene = Scene(1)
    assert isinstance(scene.op, Tell)
    [(_, rest)] = scene.op.replies
    assert isinstance(rest, RedisRest)
    assert (rest.link, rest.said) == (scene.link, None)
    scene.step()
    assert scene.over
    assert scene.pool.idle == []


def test_who_joins_while_others_are_told_goes_with_the_next_call_on_the_same_connection() -> None:
    scene = Scene(2)
    scene.begin()
    assert scene.join(2, Release)
    assert scene.join(3, Release)
    scene.step(b"*2\r\n$2\r\n11\r\n$2\r\n12\r\n")
    assert isinstance(scene.op, Exchange)
    assert scene.op.connection is scene.link.connection
    scene.step(b"*2\r\n:1\r\n:1\r\n")
    assert scene.replies == [[Taken(11)], [Taken(12)], True, True]
    assert len(scene.flows) == 2


def test_who_has_waited_for_a_while_has_another_carrier() -> None:
    scene = Scene(2)
    scene.begin()
    assert scene.join(2, Take)
    op = scene.watch.send(None)
    assert isinstance(op, Sleep)
    assert op.seconds == PATIENCE_S
    assert isinstance(scene.watch.send(None), Spawn)
    assert scene.batching.carriers == 2


def test_who_came_meanwhile_waits_for_the_carrier_that_is_there() -> None:
    scene = Scene(2)
    scene.begin()
    scene.watch.send(None)
    assert scene.join(2, Take)
    assert isinstance(scene.watch.send(None), Sleep)


@pytest.mark.parametrize(
    ("waiting", "count"), [(LEAST_COUNT + 3, LEAST_COUNT), (8 * 50, 50), (8 * MOST_COUNT + 30, MOST_COUNT)]
)
def test_no_call_is_so_long_that_it_keeps_the_server_from_others(waiting: int, count: int) -> None:
    """Few at once while few wait; more where those who wait would else be too late."""
    scene = Scene(waiting)
    scene.begin()
    assert scene.op.data.count(b"EVALSHA") == 1
    scene.step(b"*%d\r\n" % count + b"$2\r\n11\r\n" * count)
    assert len(scene.replies) == count
    assert isinstance(scene.op, Exchange)


def test_all_are_told_when_no_carrier_can_be_started() -> None:
    pool = RedisPool(lambda deadline: _never(), "nowhere")
    batching = Batching(pool, Codec("t", "host", 7), lambda owner: None, lambda: "t/wake/1")
    flow = batching.call(Release(Claim(LockSpec("n"), "o", "actor"), 0.0), 100.0)
    assert isinstance(flow.send(None), NewEvent)
    assert isinstance(flow.send(Event()), Spawn)
    assert isinstance(flow.send(False), Spawn)
    with pytest.raises(StopIteration) as ended:
        flow.send(False)
    assert isinstance(ended.value.value, RedisRest)
    assert batching.carriers == 0
