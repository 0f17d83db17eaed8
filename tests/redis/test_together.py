"""Takes and releases of many tasks leave as one call: each is told as if it had been alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast.aio
from holdfast.backends.queue_backend import Release, Take
from holdfast.backends.redis.codec import Codec
from holdfast.backends.redis.wires.reply import Reply
from holdfast.backends.redis.wires.stream import Stream
from holdfast.backends.redis.wires.together import MOST, Together
from holdfast.errors import OutcomeUnknown
from holdfast.model import Claim, LockSpec
from tests.redis.faces import calls, run
from tests.redis.test_streams import Pipe, from_the_loop, settled
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


class Scene:
    """A stream of ours, and tasks that have asked together."""

    def __init__(self, count: int, kind: type = Take) -> None:
        self.pipe = Pipe()
        self.alone: list[Reply] = []
        self.codec = Codec("t", "host", 7)
        self.together = Together(self.codec, "t/wake/1", self.alone.append)
        self.stream = Stream(self.pipe, on_many=self.together.write)
        self.told: list[tuple[int, Any]] = []
        self.interrupted: set[int] = set()
        self.tasks = [asyncio.ensure_future(self._ask(number, kind)) for number in range(count)]

    async def _ask(self, number: int, kind: type) -> None:
        claim = Claim(LockSpec(f"n{number}"), f"o{number}", "actor")
        request: Any = Take((claim,), True) if kind is Take else Release(claim, 0.0)
        self.told.append((number, await self.stream.join(5.0, lambda reply, value: reply.answer(value), request)))
        if number in self.interrupted:
            raise KeyboardInterrupt

    @property
    def written(self) -> bytes:
        written = b"".join(self.pipe.written)
        self.pipe.written.clear()
        return written


def test_a_program_that_the_server_does_not_know_is_sent_whole() -> None:
    async def main() -> None:
        scene = Scene(2)
        await settled()
        assert scene.written.count(b"EVALSHA") == 1
        await from_the_loop(scene.pipe.on_data, b"-NOSCRIPT no\r\n")
        assert b"Takes: many claims" in scene.written
        await from_the_loop(scene.pipe.on_data, b"*2\r\n$2\r\n11\r\n$2\r\n12\r\n")
        assert scene.told == [(0, b"11"), (1, b"12")]

    run(main())


def test_a_server_that_does_not_want_many_is_asked_one_by_one_from_then_on() -> None:
    async def main() -> None:
        scene = Scene(3, Release)
        await settled()
        await from_the_loop(scene.pipe.on_data, b"-CROSSSLOT no\r\n")
        assert [reply.request.claim.owner for reply in scene.alone] == ["o0", "o1", "o2"]
        assert scene.written
        more = [asyncio.ensure_future(scene._ask(number, Release)) for number in (3, 4)]
        await settled()
        assert scene.written.count(b"EVALSHA") == 2
        await from_the_loop(scene.pipe.on_data, b":1\r\n:1\r\n")
        await asyncio.gather(*more)
        for task in scene.tasks:
            task.cancel()
        for reply in scene.alone:
            reply.set_result(True)

    run(main())


def test_what_is_not_usual_is_made_by_itself_and_the_others_are_told() -> None:
    async def main() -> None:
        scene = Scene(3)
        await settled()
        await from_the_loop(scene.pipe.on_data, b"*3\r\n$2\r\n11\r\n:0\r\n$2\r\n13\r\n")
        assert scene.told == [(0, b"11"), (2, b"13")]
        assert [reply.request.claims[0].owner for reply in scene.alone] == ["o1"]
        scene.alone[0].set_result(b"12")
        await scene.tasks[1]

    run(main())


def test_an_interrupted_one_does_not_keep_the_others_waiting() -> None:
    async def main() -> None:
        scene = Scene(3)
        scene.interrupted = {0}
        await settled()
        with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
            await from_the_loop(scene.pipe.on_data, b"*3\r\n$2\r\n11\r\n$2\r\n12\r\n$2\r\n13\r\n")
        await settled()
        assert scene.told == [(0, b"11"), (1, b"12"), (2, b"13")]
        assert isinstance(scene.tasks[0].exception(), KeyboardInterrupt)

    run(main())


@pytest.mark.parametrize("sent", [True, False])
def test_a_lost_connection_is_lost_for_each(sent: bool) -> None:
    async def main() -> None:
        scene = Scene(3)
        if sent:
            await settled()
        else:
            await asyncio.sleep(0)
        assert bool(scene.written) is sent
        scene.stream.connection_lost(None)
        found = await asyncio.gather(*scene.tasks, return_exceptions=True)
        assert [type(each) for each in found] == [OutcomeUnknown] * 3

    run(main())


def test_no_call_is_so_long_that_it_keeps_the_server_from_others() -> None:
    async def main() -> None:
        scene = Scene(2 * MOST + 1)
        await settled()
        assert scene.written.count(b"EVALSHA") == 3
        scene.stream.connection_lost(None)
        await asyncio.gather(*scene.tasks, return_exceptions=True)

    run(main())
