"""Pushes: whoever listens listens for all, and misses nothing that comes another way. Played by threads."""

from __future__ import annotations

import threading
import time

import pytest

from holdfast._core.flow import NEW_EVENT, Flow, WaitAny, WakeEvent
from holdfast.backends.connections.multiplexer import Multiplexer, Pending
from holdfast.backends.queue_backend import Push
from holdfast.backends.relational.notifications import Heard, Notifications
from holdfast.clock import now
from holdfast.errors import Misconfigured
from holdfast.sync.client_driver import Monitor
from tests.relational.test_table import FakeConnector


class QuietChannel(Multiplexer):
    """Nothing comes but what a test says."""

    def __init__(self, event: WakeEvent, heard: Heard) -> None:
        super().__init__(FakeTransport(), lambda data: None, lambda error: None)  # type: ignore[arg-type]
        self.event = event
        self.said: list[tuple[str, int]] = []
        self._heard = heard

    def _receive(self, deadline: float) -> Flow[bool]:
        self._receiving = True
        try:
            ready = yield WaitAny((self.event,), deadline)
        finally:
            self._receiving = False
        said, self.said = self.said, []
        for owner, token in said:
            self._heard(owner, Push(token))
        return bool(ready)


class FakeTransport:
    def close(self) -> None: ...


class QuietListener:
    wake = b"here"

    def __init__(self, event: WakeEvent, heard: Heard) -> None:
        self.channel = QuietChannel(event, heard)

    @property
    def closed(self) -> bool:
        return self.channel.over

    def say(self, owner: str, token: int) -> None:
        self.channel.said.append((owner, token))
        self.channel.event.set()

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        return (yield from self.channel.until(pending, deadline))

    def finish(self, pending: Pending) -> None:
        self.channel.finish(pending)
        self.channel.event.set()

    def close(self) -> None:
        self.channel.lose(ConnectionAbortedError("closed"))
        self.channel.event.set()

    def abandon(self) -> None: ...


class Stage:
    """Notifications, and threads that wait, in the order of their names: the first one listens."""

    def __init__(self, *owners: str) -> None:
        self.monitor = Monitor()
        self.listeners: list[QuietListener] = []
        self.notifications = Notifications(self._listen, FakeConnector())
        assert not self.notifications.wake
        self.run(self.notifications.open(now() + 5.0))
        self.pushes: dict[str, Push | None] = {}
        self.threads = {owner: threading.Thread(target=self._wait, args=(owner,)) for owner in owners}
        channel = self.listeners[0].channel
        for number, (owner, thread) in enumerate(self.threads.items()):
            self.notifications.expect(owner)
            thread.start()
            while len(channel._line) < number or not channel._receiving:
                time.sleep(0.001)

    def _listen(self, heard: Heard, deadline: float) -> Flow[QuietListener]:
        event: WakeEvent = yield NEW_EVENT
        self.listeners.append(QuietListener(event, heard))
        return self.listeners[-1]

    def _wait(self, owner: str) -> None:
        self.pushes[owner] = self.run(self.notifications.wait(owner, now() + 60.0))

    def run(self, flow: Flow[Push | None]) -> Push | None:
        return self.monitor.run(flow)

    def outcome(self, owner: str) -> Push | None:
        self.threads[owner].join(30)
        return self.pushes[owner]


def test_whoever_listens_is_roused_by_a_push_that_comes_another_way() -> None:
    stage = Stage("listener", "sleeper")
    stage.notifications.deliver("listener", Push(1))
    assert stage.outcome("listener") == Push(1)
    stage.notifications.deliver("sleeper", Push(2))
    assert stage.outcome("sleeper") == Push(2)
    stage.notifications.close()


def test_the_listener_hears_for_the_others_and_hands_over() -> None:
    stage = Stage("first", "second", "third")
    [listener] = stage.listeners
    listener.say("second", 2)
    assert stage.outcome("second") == Push(2)
    listener.say("first", 1)
    assert stage.outcome("first") == Push(1)
    listener.say("third", 3)  # somebody listens again
    assert stage.outcome("third") == Push(3)
    stage.notifications.close()
    assert listener.closed


def test_a_listener_that_is_lost_sends_its_waiters_to_look() -> None:
    stage = Stage("first", "second")
    stage.listeners[0].close()
    assert stage.outcome("first") is None
    assert stage.outcome("second") is None
    assert not stage.notifications.wake
    stage.run(stage.notifications.open(now() + 5.0))
    assert stage.notifications.wake
    stage.notifications.close()


def test_closing_lets_nobody_wait_on() -> None:
    stage = Stage("first", "second")
    stage.notifications.close()
    assert stage.outcome("first") is None
    assert stage.outcome("second") is None
    assert stage.listeners[0].closed
    with pytest.raises(Misconfigured, match="closed"):
        stage.run(stage.notifications.open(now() + 1.0))
    assert not stage.notifications.wake
