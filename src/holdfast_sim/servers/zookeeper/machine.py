"""The machine that a server runs on, as that server uses it: it may hang, and it may crash.

1. One that hangs does nothing at all; connections to it stay open. When it goes on, what has come from clients, and
   what the clock and the other servers have sent, were for two threads: either may be first.
2. What was to be done in a former life is not done: `begin_anew`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model import Host, Timer

Action = Callable[[], None]


class Machine:
    """`run` does one thing after the other."""

    def __init__(self, host: Host, run: Callable[[Action], None]) -> None:
        self.host = host
        self.hung = False
        self.up = False
        self._run = run
        self._life = 0
        self._from_clients: list[Action] = []
        self._from_others: list[Action] = []

    @property
    def now_ms(self) -> int:
        return round(self.host.now() * 1000)

    def begin_anew(self) -> None:
        self._life += 1

    def crash(self) -> None:
        self.begin_anew()
        self.up = self.hung = False
        self._from_clients, self._from_others = [], []

    def go_on(self) -> None:
        """After it was `hung`."""
        self.hung = False
        backlogs = [self._from_clients, self._from_others]
        self._from_clients, self._from_others = [], []
        if self.host.chance.random() < 0.5:
            backlogs.reverse()
        for action in [*backlogs[0], *backlogs[1]]:
            self.do(action)

    def do(self, action: Action) -> None:
        """As soon as it can."""
        if self.hung:
            self._from_others.append(action)
        elif self.up:
            self._run(action)

    def do_for_client(self, action: Action) -> None:
        if self.hung:
            self._from_clients.append(action)
        elif self.up:
            self._run(action)

    def later(self, seconds: float, action: Action) -> Timer:
        life = self._life

        def due() -> None:
            if self._life == life:
                self.do(action)

        return self.host.after(seconds, due)

    def between(self, span: tuple[float, float]) -> float:
        """By chance."""
        least, most = span
        return least if least == most else self.host.chance.uniform(least, most)
