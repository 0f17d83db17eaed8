"""Takes and releases of many flows leave as one call: each is told as if it had been alone."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from weakref import WeakSet

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import Exchange, Flow, NewEvent, Now, Receive, WaitEvent
from holdfast.backends.queue_backend import Release, Take, Taken
from holdfast.backends.redis import batching
from holdfast.backends.redis.batching import MOST_COUNT, PATIENCE_S, Batching
from holdfast.backends.redis.codec import Codec
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.pool import RedisPool, Waiter
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


class Scene:
    """A pool with one connection that is busy, flows that have asked together, and a server that the test plays."""

    def __init__(self, count: int, kind: type = Take) -> None:
        self.codec = Codec("t", "host", 7)
        self.pool = RedisPool(lambda deadline: _never(), "nowhere")
        self.batching = Batching(self.pool, self.codec)
        self.link = RedisConnection(NoConnection(), WeakSet())
        self.batching.busy_count = self.pool.count = 1
        self.flows = [self.ask(number, kind) for number in range(count)]
        self.pool.put(self.link)  # it comes free: the first has it
        self.leader = self.flows[0]
        self.op: Any = None
        self.ended: dict[int, Any] = {}

    def ask(self, number: int, kind: type) -> Flow[Waiter]:
        claim = Claim(LockSpec(f"n{number}"), f"o{number}", "actor")
        request: Any = Take((claim,), True) if kind is Take else Release(claim, 0.0)
        flow = self.batching.join(request, 100.0)
        assert isinstance(flow.send(None), NewEvent)
        assert isinstance(flow.send(Event()), Now)
        assert isinstance(flow.send(1.0), Now)
        assert isinstance(flow.send(1.0), WaitEvent)
        return flow

    def step(self, number: int, answer: object = None) -> None:
        """Answer the op of one of them, or raise it there."""
        flow = self.flows[number]
        try:
            self.op = flow.throw(answer) if isinstance(answer, BaseException) else flow.send(answer)
        except StopIteration as stop:
            self.ended[number] = stop.value
        except Exception as error:  # noqa: BLE001  it is what the test wants to see
            self.ended[number] = error

    def tell_followers(self) -> None:
        for number in range(1, len(self.flows)):
            self.step(number)

    @property
    def replies(self) -> list[Any]:
        return [getattr(self.ended[number], "reply", self.ended[number]) for number in range(len(self.flows))]


class Event:
    def set(self) -> None: ...


def _never() -> Flow[RedisConnection]:
    yield from ()
    raise AssertionError("nobody dials here")


def test_a_program_that_the_server_does_not_know_is_sent_whole() -> None:
    scene = Scene(2)
    scene.step(0)
    assert isinstance(scene.op, Exchange)
    assert scene.op.data.count(b"EVALSHA") == 1
    scene.step(0, b"-NOSCRIPT no\r\n")
    assert b"Takes: many claims" in scene.op.data
    scene.step(0, b"*2\r\n$2\r\n11\r\n$2\r\n12\r\n")
    scene.tell_followers()
    assert scene.replies == [[Taken(11)], [Taken(12)]]
    assert scene.pool.idle == [scene.link]


def test_a_reply_that_comes_in_pieces() -> None:
    scene = Scene(2)
    scene.step(0)
    scene.step(0, b"*2\r\n$2\r\n1")
    assert isinstance(scene.op, Receive)
    scene.step(0, b"1\r\n$2\r\n12\r\n")
    scene.tell_followers()
    assert scene.replies == [[Taken(11)], [Taken(12)]]


def test_a_server_that_does_not_want_many_is_asked_one_by_one_from_then_on() -> None:
    scene = Scene(3, Release)
    scene.step(0)
    scene.step(0, b"-CROSSSLOT no\r\n")
    scene.tell_followers()
    assert [(each.reply, each.again, each.sent) for each in scene.ended.values()] == [(None, False, True)] * 3
    assert not scene.batching.due


def test_what_is_not_usual_is_made_by_itself_and_the_others_are_told() -> None:
    scene = Scene(3)
    scene.step(0)
    scene.step(0, b"*3\r\n$2\r\n11\r\n:0\r\n$2\r\n13\r\n")
    scene.tell_followers()
    assert scene.replies == [[Taken(11)], None, [Taken(13)]]


def test_an_interrupted_leader_does_not_keep_the_others_waiting() -> None:
    scene = Scene(3, Release)
    scene.step(0)
    with pytest.raises(KeyboardInterrupt):
        scene.step(0, KeyboardInterrupt())
    scene.tell_followers()
    assert [(each.reply, each.again) for each in scene.ended.values()] == [(None, True)] * 2
    assert scene.pool.count == 0


def test_a_connection_that_has_ended_has_each_made_again() -> None:
    scene = Scene(3, Release)
    scene.step(0)
    scene.step(0, b"")
    scene.tell_followers()
    assert [(each.reply, each.again) for each in scene.ended.values()] == [(None, True)] * 3


def test_a_reply_that_does_not_come_is_missed_by_each() -> None:
    scene = Scene(3)
    scene.step(0)
    scene.step(0, TimeoutError())
    scene.tell_followers()
    assert [type(each) for each in scene.replies] == [OutcomeUnknown] * 3
    assert scene.pool.count == 0


def test_who_has_less_time_than_the_first_is_not_taken_along() -> None:
    scene = Scene(2)
    scene.pool.line[0].deadline = 50.0
    scene.step(0)
    assert scene.ended[0].connection is scene.link
    assert len(scene.pool.line) == 1


def test_who_has_stood_in_the_line_for_a_while_has_a_connection_of_its_own() -> None:
    scene = Scene(1)
    scene.flows = [scene.ask(number, Take) for number in (1, 2)]
    assert isinstance(scene.flows[0].send(None), Now)
    scene.step(0, 1.0 + PATIENCE_S)
    assert (scene.ended[0].sent, scene.ended[0].connection) == (False, None)
    assert len(scene.pool.line) == 1


def test_no_call_is_so_long_that_it_keeps_the_server_from_others() -> None:
    scene = Scene(MOST_COUNT + 3)
    scene.step(0)
    assert len(scene.pool.line) == 3
