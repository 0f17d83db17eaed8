"""What the client needs of libpq, and of what a URL says: `transport.py` and `address.py` have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from ..._core.flow import File, FileWatch
from .results import LibpqResult

Parameters: TypeAlias = dict[str, str]
"""Of one attempt to connect, by libpq's names."""


class Notification(Protocol):
    @property
    def extra(self) -> bytes: ...


class Handle(Protocol):
    """What is used of libpq's."""

    nonblocking: int

    @property
    def status(self) -> int: ...

    @property
    def socket(self) -> int: ...

    @property
    def backend_pid(self) -> int: ...

    def connect_poll(self) -> int: ...

    def get_error_message(self, encoding: str = ..., /) -> str: ...

    def enter_pipeline_mode(self) -> None: ...

    def pipeline_sync(self) -> None: ...

    def send_query(self, command: bytes, /) -> None: ...

    def send_query_params(self, command: bytes, values: Sequence[bytes | None] | None, /) -> None: ...

    def send_prepare(self, name: bytes, command: bytes, /) -> None: ...

    def send_query_prepared(self, name: bytes, values: Sequence[bytes | None] | None, /) -> None: ...

    def flush(self) -> int: ...

    def consume_input(self) -> None: ...

    def is_busy(self) -> int: ...

    def get_result(self) -> LibpqResult | None: ...

    def notifies(self) -> Notification | None: ...

    def finish(self) -> None: ...


class Transport(Protocol):
    """A handle, and what can be done with its socket from outside: a `Connection` that is waited for only."""

    handle: Handle
    error: type[Exception]
    """What its methods raise."""
    closed: bool

    def file(self, writable: bool) -> File:
        """To be waited for; while the connection is made, another one each time."""
        ...

    def keep(self, watch: FileWatch) -> None:
        """The connection is made: this is waited for from now on, and closed before the socket."""
        ...

    def begin_wait(self) -> None: ...

    def end_wait(self) -> None: ...

    def readable(self) -> bool: ...

    def told_end(self) -> bool:
        """Whether the server has said, unasked, that it ends the session; the end of the connection comes later."""
        ...

    def write(self, data: bytes) -> bool:
        """Send what libpq has kept (`data` is empty: it was given all). False: some of it did not fit."""
        ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class ServerAddress(Protocol):
    """Where to connect to."""

    @property
    def shuffled(self) -> bool:
        """Whether the attempts are made in the order of chance."""
        ...

    @property
    def most_per_attempt_s(self) -> float:
        """How long one attempt may take, where the user has said so."""
        ...

    def attempts(self) -> list[Parameters]:
        """One after the other. It blocks, for host names are looked up."""
        ...

    def in_turn(self, attempts: list[Parameters]) -> list[Parameters]:
        """What is really tried, when chance has had its say."""
        ...
