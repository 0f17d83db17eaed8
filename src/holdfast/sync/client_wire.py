"""The blocking wire of an engine whose client is flows: it runs them, and decides nothing."""

from __future__ import annotations

from typing import Generic

from .._core.flow import Flow
from ..clock import now as clock
from ..ports import Backend, Client, Opened, Reply, Request, Rest, UsedConnection, Wire, short_cuts_of
from .client_driver import Monitor
from .connection import ThreadConnection

GOODBYE_S = 5.0
"""How long closing may take where the engine names no time of its own."""


class ClientWire(Generic[Request, Reply]):
    """One client and its monitor."""

    __slots__ = ("_client", "_monitor", "_patience_s", "_short_cuts")

    def __init__(self, client: Client[Request, Reply], monitor: Monitor, patience_s: float = GOODBYE_S) -> None:
        self._client = client
        self._short_cuts = short_cuts_of(client)
        self._monitor = monitor
        self._patience_s = patience_s

    def call(self, request: Request, timeout: float) -> Reply:
        deadline = clock() + timeout
        monitor = self._monitor
        if (short_cuts := self._short_cuts) is None:
            return monitor.run(self._client.call(request, deadline))
        lock = monitor.lock
        begun: tuple[UsedConnection, bytes] | None = None
        reply: Reply | Rest | None = None
        try:
            with lock:
                begun = short_cuts.begin(request)
            if begun is not None:
                link, data = begun
                said: bytes | BaseException
                try:
                    connection = link.connection
                    assert isinstance(connection, ThreadConnection)
                    said = connection.exchange(data, deadline)
                except BaseException as error:  # noqa: BLE001  raised by `go_on`
                    said = error
                while True:  # as in `Monitor.run`
                    try:
                        lock.acquire()
                        break
                    except BaseException as error:  # noqa: BLE001  raised by `go_on`
                        said = error
                        if lock._is_owned():  # type: ignore[attr-defined]
                            break
                try:
                    reply = short_cuts.end(request, link, said)
                finally:
                    lock.release()
        except BaseException as interruption:  # between two lines: its connection is not to be used again
            if begun is None or reply is not None:
                raise
            reply = short_cuts.end(request, begun[0], interruption)
        if reply is None:
            return monitor.run(self._client.call(request, deadline))
        return monitor.run(short_cuts.go_on(request, reply, deadline)) if isinstance(reply, Rest) else reply

    def wait(self, owner: str, timeout: float) -> Reply | None:
        return self._monitor.run(self._client.wait(owner, clock() + timeout))

    def before_fork(self) -> None:
        """No flow is inside a step while the process forks, so the child finds a whole state."""
        self._monitor.enter()

    def after_fork_in_parent(self) -> None:
        self._monitor.leave()

    def after_fork_in_child(self) -> None:
        self._monitor = Monitor()
        self._client.after_fork_in_child()
        self._short_cuts = short_cuts_of(self._client)

    def close(self) -> None:
        self._monitor.run(self._client.close(clock() + self._patience_s))


def open_wire(opening: Flow[Opened[Request, Reply]]) -> tuple[Backend[Request, Reply], Wire[Request, Reply]]:
    """What `opening` has opened, run by threads; the caller closes the wire."""
    monitor = Monitor()
    opened = monitor.run(opening)
    return opened.backend, ClientWire(opened.client, monitor)
