"""PostgreSQL: the lock table (`postgresql`) or session locks (`postgresql+session`), over a simulated libpq."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast.backends.postgresql.engine import PostgreSQLEngine
from holdfast.backends.postgresql.programs import FUNCTIONS_VERSION, VERSION
from holdfast.backends.postgresql.session.engine import SessionEngine
from holdfast.ports import Opened

from ...servers.model import Host
from ...servers.postgresql import errors
from ...servers.postgresql.server import PostgreSQLServer
from ...servers.postgresql.transport import starter
from .relational import SessionLocks, SimulatedDatabase

if TYPE_CHECKING:
    from ..process import ClientProcess


class SimulatedPostgreSQL(SimulatedDatabase):
    """The lock table."""

    name = "postgresql"
    address = "10.0.0.1"
    """A name would be looked up."""
    version = VERSION
    facts = {"revision": str(FUNCTIONS_VERSION)}  # noqa: RUF012
    deadlock = errors.deadlock()
    lock_timeout = errors.lock_timeout()
    opens: type[PostgreSQLEngine] | type[SessionEngine] = PostgreSQLEngine

    def serve(self, host: Host, users: dict[str, str]) -> PostgreSQLServer:
        return PostgreSQLServer(host, users=users)

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        engine = self.opens(self.url, "holdfast", self.world.profile.request_timeout)
        engine.start = starter(process)  # type: ignore[assignment]
        return engine.open()


class SimulatedPostgreSQLSessions(SessionLocks, SimulatedPostgreSQL):
    """Session locks."""

    name = "postgresql+session"
    opens = SessionEngine
