"""The machines that servers run on: their clocks, and what listens there.

1. A machine's clock runs at its own rate, within the allowance; its calendar may differ from the others', and may jump.
2. A server may hang: its machine still accepts connections and takes bytes in, and nothing is done with them.
3. A server that stops ends its connections, or its whole machine is lost: then its clients are told nothing, and learn
   of it when they write to it after it is back, or after a long time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ..servers.model import Memory, Output, Server, Session

if TYPE_CHECKING:
    from .world import ByteWorld

EPOCH_S = 1_700_000_000.0
"""The calendar time at which a seed begins."""


class HostTimer:
    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def fire(self) -> None:
        if self._action is not None:
            self._action()

    def cancel(self) -> None:
        self._action = None


class SimHost:
    """A `model.Host`."""

    def __init__(self, world: ByteWorld, name: str, rate: float, ahead: float) -> None:
        self.chance: Random = world.chance
        self.name = name
        self._timeline = world.timeline
        self._rate = rate
        self._ahead = ahead

    def now(self) -> float:
        return 1000.0 + self._timeline.now * self._rate

    def calendar(self) -> float:
        return EPOCH_S + self._ahead + self._timeline.now * self._rate

    def jump_calendar(self, seconds: float) -> None:
        self._ahead += seconds

    def after(self, seconds: float, action: Callable[[], None]) -> HostTimer:
        timer = HostTimer(action)
        self._timeline.at(self._timeline.now + seconds / self._rate, timer.fire)
        return timer


class Listener:
    """What listens on a machine: a server, while it runs."""

    def __init__(self, host: SimHost, server: Server) -> None:
        self.host = host
        self.server = server
        self.up = True
        self.lost = False
        """The whole machine is: nobody even refuses a connection."""
        self._hangs = False
        self._held: list[Callable[[], None]] = []
        self._sessions: dict[AcceptedSession, None] = {}
        self._untold: list[AcceptedSession] = []
        """Of a machine that was lost: their clients do not know that they have ended."""

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    def accept(self, output: Output) -> AcceptedSession:
        session = AcceptedSession(self, output)
        self._sessions[session] = None
        self.run(session.begin)
        return session

    def run(self, action: Callable[[], None]) -> None:
        """Now, or when the server no longer hangs."""
        if self._hangs:
            self._held.append(action)
        else:
            action()

    def forget(self, session: AcceptedSession) -> None:
        self._sessions.pop(session, None)

    def hang(self) -> None:
        self._hangs = True

    def go_on(self) -> None:
        self._hangs = False
        held, self._held = self._held, []
        for action in held:
            action()

    def end_connections(self, chance: Random | None = None) -> None:
        """The server ends them, as one does that were idle for too long; with `chance` some of them."""
        for session in list(self._sessions):
            if chance is None or chance.random() < 0.5:
                session.end()
        if chance is None:  # in so long a time somebody has asked whether they live
            for session in self._untold:
                session.tell()
            self._untold.clear()

    def stop(self, lost: bool = False) -> None:
        if not self.up:
            return
        self.up, self.lost = False, lost
        self._hangs, self._held = False, []
        self.server.stop()
        sessions, self._sessions = list(self._sessions), {}
        for session in sessions:
            session.die()
            if not lost:
                session.tell()
        if lost:
            self._untold += sessions

    def start(self, memory: Memory) -> None:
        if not self.up:
            self.up, self.lost = True, False
            self.server.start(memory)


class AcceptedSession:
    """One connection, as the machine has it: a `model.Session`."""

    def __init__(self, listener: Listener, output: Output) -> None:
        self._listener = listener
        self._output = output
        self._session: Session | None = None
        self._dead = False

    def begin(self) -> None:
        if not self._dead:
            self._session = self._listener.server.accept(self._output)

    def receive(self, data: bytes) -> None:
        if not self._dead:
            if data:  # else it was only asked whether it is there
                self._listener.run(lambda: self._hand_over(data))
        elif self._listener.up:
            self._output.close()  # a machine that is back knows nothing of this connection

    def _hand_over(self, data: bytes) -> None:
        if self._session is not None and not self._dead:
            self._session.receive(data)

    def closed(self) -> None:
        self._listener.forget(self)
        if not self._dead:
            self._listener.run(self._tell_closed)

    def _tell_closed(self) -> None:
        if self._session is not None and not self._dead:
            self._dead = True
            self._session.closed()

    def end(self) -> None:
        """By the server."""
        self._listener.forget(self)
        if not self._dead:
            self._tell_closed()
            self._output.close()

    def die(self) -> None:
        """With its server."""
        self._dead = True

    def tell(self) -> None:
        """Its client learns that it has ended."""
        self._output.close()
