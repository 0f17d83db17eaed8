"""Which member to speak with, and how to reach it: the first of the URL that answers, until it fails.

A member that refuses, hangs, or has lost its leader is left for the next one in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Connection, Endpoint, Flow, Open
from ...errors import BackendUnavailable, OutcomeUnknown
from .connection import EtcdConnection

LONGEST_DIAL_S = 1.0
"""How long a member may take to accept a connection: a host that is gone does not answer at all."""
SHORTEST_DIAL_S = 0.01


class Connector:
    """The endpoints, and which of them is in use."""

    def __init__(self, endpoints: Sequence[Endpoint], url: str) -> None:
        self._endpoints = endpoints
        self._url = url
        self.plain_heads = [f"Host: {each}\r\n" for each in endpoints]
        """The header lines of a log-in, by member: etcd refuses it with a token that is no longer good."""
        self.member = 0
        """The number of the endpoint that is in use."""
        self.token = None

    @property
    def count(self) -> int:
        """Of the members."""
        return len(self._endpoints)

    @property
    def token(self) -> str | None:
        """What etcd gave for user and password; None: it was not asked; empty: it wants none."""
        return self._token

    @token.setter
    def token(self, token: str | None) -> None:
        self._token = token
        authorization = f"Authorization: {token}\r\n" if token else ""
        self.heads = [f"{each}{authorization}" for each in self.plain_heads]
        """The header lines of every other request, by member."""

    def connect(self, deadline: float) -> Flow[EtcdConnection]:
        """To the member in use, or the next one that accepts; each has its share of the time."""
        failure: OSError | None = None
        count, first = len(self._endpoints), self.member
        for step in range(count):
            member = (first + step) % count
            now: float = yield NOW
            try:
                connection = yield from self.dial(member, now + (deadline - now) / (count - step))
            except OSError as error:
                failure = error
                continue
            self.member = member
            return EtcdConnection(connection, member)
        raise BackendUnavailable(
            f"no member of {self._url} can be reached: {failure}; see that it runs and that the hosts are right"
        ) from failure

    def dial(self, member: int, deadline: float) -> Flow[Connection]:
        now: float = yield NOW
        patience_s = max(SHORTEST_DIAL_S, min(deadline - now, LONGEST_DIAL_S))
        connection: Connection = yield Open(self._endpoints[member], now + patience_s)
        return connection

    def mark_failed(self, member: int) -> None:
        """Prefer another."""
        if self.member == member:
            self.member = (member + 1) % len(self._endpoints)

    def unanswered(self, member: int, timeout_s: float | None, error: BaseException) -> OutcomeUnknown:
        """`timeout_s`: no answer came within it; None: the connection came to an end, or something else came."""
        if timeout_s is not None:
            return OutcomeUnknown(f"etcd at {self._endpoints[member]} did not answer within {timeout_s:.3g} s")
        return OutcomeUnknown(f"etcd at {self._endpoints[member]} ended the connection before it had answered: {error}")
