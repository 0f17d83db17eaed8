"""A holder that is asked to give way, and a guard for the user's own transaction: what the core does with them.

The engine is the memory engine with the two capabilities added; etcd and ZooKeeper have their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast import Coordinator, Misconfigured
from holdfast._core.flow import NOW, Flow
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import QueueBackend
from holdfast.model import Claim, Extension, Refusal
from holdfast.observe.event import Event


class Asking:
    """A backend whose holders are asked by hand."""

    def __init__(self, inner: QueueBackend) -> None:
        self._inner = inner
        self.asked: set[tuple[str, int | None]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def ask(self, name: str, token: int | None) -> Flow[int]:
        yield NOW
        self.asked.add((name, token))
        return 1

    def guard(self, claim: Claim) -> tuple[str, int]:
        return claim.spec.name, claim.token

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[Extension | Refusal | None]]:
        replies = yield from self._inner.renew(claims, within)
        return [
            Extension(reply.since, reply.ttl, bool(self.asked)) if isinstance(reply, Extension) else reply
            for reply in replies
        ]


@pytest.fixture
def engine() -> Any:
    engine: Any = open_engine("memory://asked", namespace="t", request_timeout=5.0)
    engine.backend = Asking(engine.backend)
    return engine


def test_the_holder_is_told_with_a_renewal_and_goes_on_holding(engine: Any) -> None:
    events: list[Event] = []
    with Coordinator(engine, 30.0, None, events.append) as locks:
        with locks.lock("a") as lease:
            hooked: list[holdfast.Lease] = []
            lease.when_asked(hooked.append)
            assert not lease.asked.is_set()
            assert locks.ask("a", lease.token) == 1
            lease.renew()
            lease.renew()
            assert lease.asked.is_set()
            assert hooked == [lease]  # once
            lease.check()
    assert [event.kind for event in events] == ["acquired", "asked", "released"]


def test_who_looks_only_afterwards_sees_it_too(engine: Any) -> None:
    with Coordinator(engine, 30.0, None, None) as locks, locks.lock("a") as lease:
        locks.ask("a")
        lease.renew()
        hooked: list[holdfast.Lease] = []
        lease.when_asked(hooked.append)
        assert lease.asked.is_set()
        assert hooked == [lease]


def test_a_hook_that_raises_harms_nobody(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    with Coordinator(engine, 30.0, None, None) as locks, locks.lock("a") as lease:
        lease.when_asked(lambda lease: 1 / 0)
        locks.ask("a")
        lease.renew()
        assert lease.asked.is_set()
    assert "'a'" in caplog.text


def test_tasks_are_told_alike(engine: Any) -> None:
    async def main() -> None:
        async with holdfast.aio.Coordinator(engine, await engine.async_wire(), 30.0, None, None) as locks:
            async with locks.lock("a") as lease:
                told = asyncio.Event()

                async def hook(lease: holdfast.aio.Lease) -> None:
                    told.set()

                lease.when_asked(hook)
                assert await locks.ask("a") == 1
                await lease.renew()
                await told.wait()
                assert lease.asked.is_set()

    asyncio.run(main())


def test_a_guard_names_the_very_grant(engine: Any) -> None:
    with Coordinator(engine, 30.0, None, None) as locks, locks.lock("a") as lease:
        assert lease.guard() == ("a", lease.token)


@pytest.mark.parametrize("wish", [lambda locks, lease: locks.ask("a"), lambda locks, lease: lease.guard()])
def test_an_engine_that_can_not_says_what_can_be_done_instead(wish: Callable[..., object]) -> None:
    with holdfast.connect("memory://plain") as locks, locks.lock("a") as lease:
        with pytest.raises(Misconfigured, match=r"memory .*'a'.*(evict|fence)"):
            wish(locks, lease)
