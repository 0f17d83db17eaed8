"""Pushes for threads: whoever listens listens for all, and misses nothing that comes another way."""

from __future__ import annotations

import select
import socket
import threading

from holdfast.backends.queue_backend import Push
from holdfast.backends.relational.error_mapping import ErrorMapping, Silence
from holdfast.backends.relational.wires.ears import Ears
from holdfast.backends.relational.wires.ports import AsyncEar, Heard


class Quiet:
    """An ear that hears what a test says, and a bell."""

    wake = b"here"

    def __init__(self) -> None:
        self._bell, self._rope = socket.socketpair()
        self.said: list[tuple[str, int]] = []
        self.deaf = False
        self.closed = False

    def hear(self, timeout: float) -> list[tuple[str, int]]:
        if select.select([self._bell], [], [], timeout)[0]:
            self._bell.recv(64)
        if self.deaf:
            raise Silence("the connection ended")
        said, self.said = self.said, []
        return said

    def set(self) -> None:
        self._rope.send(b"!")

    def say(self, owner: str, token: int) -> None:
        self.said.append((owner, token))
        self.set()

    def hang_up(self) -> None:
        self.deaf = True
        self.set()

    def disown(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self._bell.close()
        self._rope.close()


class Room:
    """Hands out quiet ears."""

    def __init__(self) -> None:
        self.ears: list[Quiet] = []

    def listen(self) -> Quiet:
        self.ears.append(Quiet())
        return self.ears[-1]

    async def listen_async(self, heard: Heard) -> AsyncEar:
        raise NotImplementedError


class Waiters:
    """Threads that wait, in the order of their names: the first one listens."""

    def __init__(self, ears: Ears, *owners: str) -> None:
        self.pushes: dict[str, Push | None] = {}
        self.threads = {owner: threading.Thread(target=self._wait, args=(ears, owner)) for owner in owners}
        for number, (owner, thread) in enumerate(self.threads.items(), 1):
            ears.expect(owner)
            thread.start()
            while len(ears._sleepers) < number or ears._listener is None:
                pass

    def _wait(self, ears: Ears, owner: str) -> None:
        self.pushes[owner] = ears.wait(owner, 60.0)

    def outcome(self, owner: str) -> Push | None:
        self.threads[owner].join(30)
        return self.pushes[owner]


def opened() -> tuple[Ears, Quiet]:
    room = Room()
    ears = Ears(room, ErrorMapping("a server", {}, frozenset()))
    assert not ears.wake
    ears.open(1.0)
    return ears, room.ears[0]


def test_whoever_listens_is_roused_by_a_push_that_comes_another_way() -> None:
    ears, _ = opened()
    waiters = Waiters(ears, "listener", "sleeper")
    ears.deliver("listener", 1)
    assert waiters.outcome("listener") == Push(1)
    ears.deliver("sleeper", 2)
    assert waiters.outcome("sleeper") == Push(2)
    ears.close()


def test_the_listener_hears_for_the_others_and_hands_over() -> None:
    ears, ear = opened()
    waiters = Waiters(ears, "first", "second", "third")
    ear.say("second", 2)
    assert waiters.outcome("second") == Push(2)
    ear.say("first", 1)
    assert waiters.outcome("first") == Push(1)
    ear.say("third", 3)  # somebody listens again
    assert waiters.outcome("third") == Push(3)
    ears.close()
    assert ear.closed


def test_ears_that_go_deaf_send_their_waiters_to_look() -> None:
    ears, ear = opened()
    waiters = Waiters(ears, "first", "second")
    ear.hang_up()
    assert waiters.outcome("first") is None
    assert waiters.outcome("second") is None
    assert not ears.wake
    assert ear.closed
    ears.open(1.0)
    assert ears.wake
    ears.close()


def test_closing_lets_nobody_wait_on() -> None:
    ears, ear = opened()
    waiters = Waiters(ears, "first", "second")
    ears.close()
    assert waiters.outcome("first") is None
    assert waiters.outcome("second") is None
    assert ear.closed
    ears.open(1.0)
    assert not ears.wake
