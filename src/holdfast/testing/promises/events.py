"""Each step of a lease's life is told to `on_event`, as data; and a listener disturbs nothing."""

from __future__ import annotations

from ...errors import BackendUnavailable, NotAcquired
from ...observe.event import Event
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def the_steps_of_a_life(context: Context) -> None:
    """Acquired, timed out, released; with name, owner, token and how long it took."""
    events: list[Event] = []
    locks = await context.connect(on_event=events.append)
    async with locks.lock("door", ttl=20) as lease:
        await context.raises(NotAcquired, locks.lock("door").acquire(timeout=context.seconds(0.2)))
    assert [event.kind for event in events] == ["acquired", "timed_out", "released"]
    acquired, timed_out, released = events
    assert (acquired.name, acquired.owner, acquired.token, acquired.ttl) == ("door", lease.owner, lease.token, 20)
    assert (timed_out.name, timed_out.token) == ("door", 0)
    assert timed_out.seconds >= context.seconds(0.199)
    assert released.token == lease.token
    assert released.seconds >= context.seconds(0.199)


@promise()
async def a_loss_with_its_reason(context: Context) -> None:
    """Told once."""
    events: list[Event] = []
    locks = await context.connect(on_event=events.append)
    lease = await locks.lock("door", ttl=context.short, renew=False).acquire()
    await lease.lost.wait()
    await context.eventually(lambda: len(events) > 1, "the event")
    assert await lease.release() is False
    assert [(event.kind, event.reason) for event in events] == [("acquired", ""), ("lost", "expired")]
    assert 0 < events[1].seconds < context.short * 20


@promise()
async def a_fault_with_its_reason(context: Context) -> None:
    """An acquisition that cannot ask its engine, and a renewal that fails: each is told, and why."""
    events: list[Event] = []
    faults = FaultInjector()
    locks = await context.connect(on_event=events.append, faults=faults)
    ttl = 30.0 if context.virtual else context.seconds(2.0)
    lease = await locks.lock("door", ttl=ttl).acquire()
    faults.cut()
    await context.raises(BackendUnavailable, locks.lock("other", ttl=ttl).acquire(timeout=context.seconds(0.1)))
    await context.eventually(lambda: {"failed", "jeopardy"} <= {event.kind for event in events}, "the events")
    told = {event.kind: event for event in events}
    assert (told["failed"].name, told["failed"].token) == ("other", 0)
    assert told["failed"].reason
    assert (told["jeopardy"].name, told["jeopardy"].token) == ("door", lease.token)
    assert told["jeopardy"].reason
    faults.heal()
    await lease.release()


@promise()
async def a_listener_that_raises_harms_nobody(context: Context) -> None:
    """Neither the acquisition, nor the keeper, nor the release."""

    def broken(event: Event) -> None:
        raise RuntimeError("a listener of the user's")

    locks = await context.connect(on_event=broken)
    async with locks.lock("door", ttl=context.short):
        async with locks.lock("other", ttl=context.short, renew=False) as lease:
            await context.eventually(lambda: lease.remaining() < context.short / 2, "time to pass")
        assert await locks.lock("door").try_acquire() is None
