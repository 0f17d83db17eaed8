"""What `holdfast.testing` gives to the tests of other people: a clock to move, leases to make up and to lose."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable, Coordinator, LeaseLost, OutcomeUnknown, State, clock
from holdfast.aio import Coordinator as AioCoordinator
from holdfast.model import Promises
from holdfast.testing import (
    BODIES,
    EngineUnderTest,
    FakeClock,
    Fault,
    FaultInjector,
    aio_connect_faulty,
    aio_granted,
    connect_faulty,
    contract_promises,
    granted,
    lose,
    memory_engine,
    run_promise,
)
from holdfast.testing.context import Context
from holdfast.testing.promise import Promise, promise


def test_a_lease_with_the_token_you_want() -> None:
    lease = granted("orders/7", 42)
    assert (lease.name, lease.token, lease.state) == ("orders/7", 42, State.HELD)
    lease.check()
    assert lease.release() is True


def test_a_lease_is_lost_when_you_say_so() -> None:
    lease = granted("orders/7", 42)
    lose(lease, "evicted")
    assert lease.lost.is_set()
    with pytest.raises(LeaseLost, match="token 42"):
        lease.check()
    assert lease.release() is False


def test_the_same_for_asyncio() -> None:
    async def main() -> None:
        lease = await aio_granted("orders/7", 42)
        assert lease.token == 42
        lose(lease)
        assert lease.reason == "expired"

    asyncio.run(main())


def test_an_engine_that_is_out_of_reach_for_a_while() -> None:
    faults = FaultInjector()
    with connect_faulty(faults, ttl=30.0) as locks:
        lease = locks.lock("a").acquire()
        faults.cut()
        with pytest.raises(BackendUnavailable, match="made so by a test"):
            lease.renew()
        assert lease.state is State.HELD, "its ttl has not run out"
        faults.heal()
        lease.renew()


def test_a_reply_that_is_lost() -> None:
    faults = FaultInjector()
    with connect_faulty(faults) as locks:
        faults.at(0, Fault.REPLY_LOST)
        with pytest.raises(OutcomeUnknown):
            locks.lock("a").try_acquire()
        lease = locks.lock("a").acquire(timeout=10)
        assert lease.state is State.HELD, "what may have been granted was given back"


def test_an_engine_out_of_reach_for_asyncio() -> None:
    async def main() -> None:
        faults = FaultInjector()
        async with await aio_connect_faulty(faults) as locks:
            faults.cut()
            with pytest.raises(BackendUnavailable):
                await locks.lock("a").try_acquire()
            faults.heal()
            async with locks.lock("a"):
                pass

    asyncio.run(main())


def test_threads_see_the_clock_move() -> None:
    fake = FakeClock()
    with fake.installed(), Coordinator(memory_engine(), 30.0, None, None) as locks:
        lease = locks.lock("a", ttl=10).acquire()
        assert lease.remaining() > 9
        fake.advance(5)
        assert 4 < lease.remaining() < 5
        lease.renew()
        assert lease.remaining() > 9
        fake.advance(11)
        assert (lease.state, lease.reason) == (State.LOST, "expired")
        with locks.lock("a", timeout=0) as successor:
            assert successor.token > lease.token


def test_engines_of_a_url_read_the_clock_that_is_installed(tmp_path: Path) -> None:
    """Not the one that was there when the engine was made: the lease was lost, and the name stayed held."""
    for url in ("memory://test-clock", f"sqlite://{tmp_path}/locks.db"):
        holdfast.connect(url).close()
        fake = FakeClock()
        with fake.installed(), holdfast.connect(url) as locks:
            lease = locks.lock("a", ttl=10).acquire()
            fake.advance(11)
            assert (lease.state, lease.reason) == (State.LOST, "expired")
            with locks.lock("a", timeout=0) as successor:
                assert successor.token > lease.token


def test_tasks_meet_the_same_at_engines_of_a_url(tmp_path: Path) -> None:
    async def main(fake: FakeClock, url: str) -> None:
        async with holdfast.aio.connect(url) as locks:
            lease = await locks.lock("a", ttl=10, max_hold=20).acquire()
            await asyncio.sleep(40)
            assert lease.state is State.LOST
            async with locks.lock("a", timeout=0) as successor:
                assert successor.token > lease.token

    for url in ("memory://test-clock-aio", f"sqlite://{tmp_path}/locks.db"):
        holdfast.connect(url).close()
        fake = FakeClock()
        fake.run(main(fake, url))


def test_tasks_live_through_hours_in_no_time() -> None:
    fake = FakeClock()

    async def main() -> float:
        engine = memory_engine()
        async with AioCoordinator(engine, await engine.async_wire(), 30.0, None, None) as locks:
            async with locks.lock("a", ttl=10) as lease:
                await asyncio.sleep(3600)
                lease.check()
        return fake.now()

    assert fake.run(main()) == pytest.approx(1000.0 + 3600.0, abs=1)


def test_the_clock_is_given_back() -> None:
    real = clock.now, clock.calendar_us
    with FakeClock().installed() as fake:
        assert clock.now() == fake.now() == 1000.0
        assert holdfast.base_lease.now() == 1000.0  # type: ignore[attr-defined]
    assert (clock.now, clock.calendar_us) == real
    assert holdfast.base_lease.now() != 1000.0  # type: ignore[attr-defined]


def test_a_program_that_never_waits_is_stopped() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110  that is the mistake
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="turns on the spot"):
        FakeClock().run(main())


@pytest.mark.parametrize("body", BODIES)
def test_a_promise_of_your_own(body: holdfast.testing.Body) -> None:
    @promise()
    async def kept(context: Context) -> None:
        locks = await context.connect()
        async with locks.lock("a"):
            assert len((await context.view("a")).holders) == 1

    assert isinstance(kept, Promise)
    assert kept not in contract_promises()
    run_promise(kept, EngineUnderTest("memory://promise"), body)


@pytest.mark.parametrize("body", BODIES)
def test_what_is_left_behind_is_found_out(body: holdfast.testing.Body, monkeypatch: pytest.MonkeyPatch) -> None:
    @promise()
    async def untidy(context: Context) -> None:
        await (await context.connect()).lock("a").acquire()

    monkeypatch.setattr("holdfast.testing.context.HANG_S", 0.1)
    with pytest.raises(AssertionError, match="nobody at any name"):
        run_promise(untidy, EngineUnderTest("memory://promise"), body)


@pytest.mark.parametrize("body", BODIES)
def test_a_promise_that_hangs_is_ended(body: holdfast.testing.Body, monkeypatch: pytest.MonkeyPatch) -> None:
    @promise()
    async def hanging(context: Context) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("holdfast.testing.contract.HANG_S", 0.1)
    with pytest.raises(AssertionError, match="it hangs"):
        run_promise(hanging, EngineUnderTest("memory://promise"), body)


@pytest.mark.parametrize("body", BODIES)
def test_what_an_engine_can_not_do_it_must_refuse(body: holdfast.testing.Body) -> None:
    @promise(needs={"durable"})
    async def durable(context: Context) -> None:
        locks = await context.connect()
        locks.promises.demand({"durable"}, "memory")

    @promise(needs={"durable"})
    async def silent(context: Context) -> None:
        await context.connect()

    run_promise(durable, EngineUnderTest("memory://promise"), body)
    with pytest.raises(AssertionError, match="was not raised"):
        run_promise(silent, EngineUnderTest("memory://promise"), body)


def test_names_of_earlier_versions_still_work() -> None:
    for old, new in holdfast.testing.RENAMED.items():
        with pytest.warns(DeprecationWarning, match=new):
            assert getattr(holdfast.testing, old) is getattr(holdfast.testing, new)
    with pytest.raises(AttributeError, match="no attribute 'stag'"):
        holdfast.testing.stag  # noqa: B018

    with pytest.warns(DeprecationWarning, match="under_test"):

        class Mine(holdfast.testing.Contract):
            @classmethod
            def venue(cls) -> EngineUnderTest:
                return EngineUnderTest("memory://mine")

    assert Mine.under_test().url == "memory://mine"


def test_a_lack_is_declared_with_its_reason() -> None:
    """So that no engine is spared a promise in silence; what it lacks can be required, and is refused."""
    promises = Promises(frozenset(), {"order": "there is no queue"}, frozenset({"order"}))
    assert "order" not in promises
    assert "ttl" in promises
    with pytest.raises(holdfast.Misconfigured, match="mine cannot promise 'order': there is no queue"):
        promises.demand({"ttl", "order"}, "mine")
    with pytest.raises(ValueError, match="say why"):
        Promises(frozenset(), {}, frozenset({"order"}))
    with pytest.raises(ValueError, match="name one of deadlock, evict"):
        Promises(frozenset(), {"colour": "x"}, frozenset({"colour"}))


def test_a_promise_needs_what_can_be_declared() -> None:
    with pytest.raises(ValueError, match="colour"):
        promise(needs={"colour"})(lambda context: asyncio.sleep(0))
