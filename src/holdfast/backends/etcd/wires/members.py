"""Which member of the cluster to speak with: the first of the URL that answers, until it stumbles.

Shared by both wires. A member that refuses, hangs, or has lost its leader is left for the next one in turn, together
with all idle connections to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....errors import BackendUnavailable, OutcomeUnknown
from .address import Address

IMPATIENT = 0.1
"""Who waits no longer than this says nothing of a member by giving up."""
LONGEST_DIAL = 1.0
"""Seconds for which a member may take to accept a connection: a host that is gone does not answer at all."""


class Members:
    """The endpoints, and which of them is in use."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.at = 0
        self._token = ""
        self._heads = self._make_heads()

    @property
    def token(self) -> str:
        """What etcd gave for user and password."""
        return self._token

    @token.setter
    def token(self, token: str) -> None:
        self._token = token
        self._heads = self._make_heads()

    def head(self, index: int) -> str:
        """The header lines of every request to a member."""
        return self._heads[index]

    def _make_heads(self) -> list[str]:
        authorization = f"Authorization: {self._token}\r\n" if self._token else ""
        return [f"Host: {host}:{port}\r\n{authorization}" for host, port in self.address.endpoints]

    def candidates(self) -> Iterator[tuple[int, int]]:
        """Whom to dial, and how many are left with that one."""
        count, at = len(self.address.endpoints), self.at
        return (((at + step) % count, count - step) for step in range(count))

    def stumble(self, index: int) -> None:
        """This one did not do well."""
        if self.at == index:
            self.at = (index + 1) % len(self.address.endpoints)

    def dial_timeout(self, left: float, members: int) -> float:
        """How long one of so many members may take to accept a connection, TLS included, if so much time is left."""
        return max(0.01, min(left / members, LONGEST_DIAL))

    def unanswered(self, index: int, timeout: float | None, error: BaseException | None) -> OutcomeUnknown:
        """`timeout`: no answer came within it; None: the connection came to an end, or something else came."""
        host, port = self.address.endpoints[index]
        if timeout is not None:
            return OutcomeUnknown(f"etcd at {host}:{port} did not answer within {timeout:.3g} s")
        return OutcomeUnknown(f"etcd at {host}:{port} ended the connection before it had answered: {error}")

    def unreachable(self, error: BaseException | None) -> BackendUnavailable:
        return BackendUnavailable(
            f"no member of {self.address.url} can be reached: {error}; see that it runs and that the hosts are right"
        )
