"""A connection for the next stream, dialled before anybody needs it: who is late to listen has to look again."""

from __future__ import annotations

from ..._core.flow import Connection, Flow
from .connector import Connector


class SpareConnection:
    """One at most."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._spare: tuple[Connection, int] | None = None
        """And the number of its member."""
        self.is_wanted = True

    def take(self) -> tuple[Connection, int] | None:
        """If there is one, to the member in use, and the member has not ended it."""
        spare = self._spare
        if spare is None or (spare[1] == self._connector.member and not spare[0].readable()):
            self._spare = None
            return spare
        self.close()
        return None

    def dial(self, deadline: float) -> Flow[None]:
        """What the worker does last."""
        if self._spare is None and self.is_wanted:
            member = self._connector.member
            connection = yield from self._connector.dial(member, deadline)
            if self._may_keep():
                self._spare = connection, member
            else:
                connection.close()

    def _may_keep(self) -> bool:
        return self._spare is None and self.is_wanted

    def close(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare[0].close()

    def end(self) -> None:
        self.is_wanted = False
        self.close()

    def abandon(self) -> None:
        """In a forked child."""
        if self._spare is not None:
            self._spare[0].abandon()
