"""Pushes for the waiters of one coordinator: one connection listens for all of them.

1. Whoever waits and finds nobody listening listens for everybody, until its own push is there; then another waiter
   takes over (`Multiplexer`). So there is no thread or task of its own, and nobody listens for nobody.
2. What is promoted by a release of this coordinator may come with the reply to it (`deliver`).
3. A server cannot tell whether a waiter is alive; one that died costs its patience at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from ..._core.flow import Flow
from ..connections.multiplexer import Pending
from ..queue_backend import Push
from .connection import DatabaseConnector
from .dialer import Dialer

Wake: TypeAlias = Any
"""Where pushes reach a coordinator, as the engine writes it; None while nobody listens."""
Heard: TypeAlias = Callable[[str, Push], None]
"""Takes a push, and to whom it is."""


class PushListener(Protocol):
    """A connection that listens, under one address."""

    @property
    def wake(self) -> Wake: ...

    @property
    def closed(self) -> bool: ...

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        """Listen, or have another flow listen, until `pending` is done; False once the time is over."""
        ...

    def finish(self, pending: Pending) -> None:
        """Make it done, whoever listens at the moment."""
        ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class Inbox(Pending):
    """Where the push to one owner arrives; done without one, it waits no longer."""

    __slots__ = ("push",)

    def __init__(self) -> None:
        super().__init__()
        self.push: Push | None = None


class Notifications:
    """One listener, opened with the first waiter. `listen` makes it, and gives what it hears to `deliver`."""

    def __init__(
        self,
        listen: Callable[[Heard, float], Flow[PushListener]],
        connector: DatabaseConnector,
        granted: Callable[[str], None] = lambda owner: None,
    ) -> None:
        """`granted` is told each owner for whom a push has come."""
        self._granted = granted
        self._listener: PushListener | None = None
        self._inboxes: dict[str, Inbox] = {}
        self._dialer: Dialer[PushListener] = Dialer(
            lambda deadline: listen(self.deliver, deadline), self._keep, connector.timeout_s, connector.errors
        )

    def _keep(self, listener: PushListener) -> None:
        self._listener = listener

    @property
    def wake(self) -> Wake:
        """Where pushes are heard now; None while nobody listens."""
        listener = self._listener
        return None if listener is None or listener.closed else listener.wake

    def open(self, deadline: float) -> Flow[None]:
        while self.wake is None:
            yield from self._dialer.wait(deadline)

    def expect(self, owner: str) -> None:
        """A push that came before is forgotten: the look that is about to happen tells better."""
        inbox = self._inboxes.get(owner)
        if inbox is None or inbox.done:
            self._inboxes[owner] = Inbox()

    def expects(self, owner: str) -> bool:
        return owner in self._inboxes

    def forget(self, owner: str) -> bool:
        """Nothing is expected any more, and nobody waits for it; whether it was."""
        inbox = self._inboxes.pop(owner, None)
        if inbox is not None:
            self._finish(inbox)
        return inbox is not None

    def deliver(self, owner: str, push: Push) -> None:
        inbox = self._inboxes.get(owner)
        if inbox is not None and not inbox.done:
            inbox.push = push
            self._finish(inbox)
            self._granted(owner)

    def awaits(self, owner: str) -> bool:
        """Whether a push is expected, and has not come."""
        inbox = self._inboxes.get(owner)
        return inbox is not None and not inbox.done

    def rouse(self, owner: str) -> None:
        """Have it ask by itself: it waits no longer, and nothing was pushed."""
        inbox = self._inboxes.get(owner)
        if inbox is not None and not inbox.done:
            self._finish(inbox)

    def _finish(self, inbox: Inbox) -> None:
        inbox.done = True
        if self._listener is not None:
            self._listener.finish(inbox)

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        """The push to this owner; None once the time is over, or if nothing can be heard any more."""
        inbox, listener = self._inboxes[owner], self._listener
        if listener is not None and not inbox.done:
            yield from listener.until(inbox, deadline)
        if inbox.push is not None and self._inboxes.get(owner) is inbox:
            self._inboxes[owner] = Inbox()  # a push is told once; the release still knows that it was waited for
        return inbox.push

    def close(self) -> None:
        self._dialer.close()
        if self._listener is not None:
            self._listener.close()
        for inbox in self._inboxes.values():
            self._finish(inbox)
        self._listener = None

    def abandon(self) -> None:
        """In a forked child."""
        if self._listener is not None:
            self._listener.abandon()
