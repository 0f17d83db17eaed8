"""MariaDB: the lock table (`mysql`) or session locks (`mysql+session`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast.backends.client_engine import ClientEngine
from holdfast.backends.mysql.engine import open_engine as open_table
from holdfast.backends.mysql.programs import VERSION
from holdfast.backends.mysql.session.engine import open_engine as open_session
from holdfast.ports import Opened

from ...servers.model import Host
from ...servers.mysql import errors
from ...servers.mysql.server import MariaDBServer
from .relational import SessionLocks, SimulatedDatabase

if TYPE_CHECKING:
    from ..process import ClientProcess

MOST_PUSHES_COUNT = 20
"""They stay for a minute at most where nobody hears them."""


class SimulatedMariaDB(SimulatedDatabase):
    """The lock table."""

    name = "mysql"
    address = "m1"
    version = VERSION
    deadlock = errors.deadlock()
    lock_timeout = errors.lock_wait_timeout()
    after_close_s = 1.5
    """A session that listens notices the end of its client within a second."""

    def serve(self, host: Host, users: dict[str, str]) -> MariaDBServer:
        return MariaDBServer(host, users=users)

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        return self._engine().open()

    def _engine(self) -> ClientEngine[Any, Any]:
        return open_table(self.url, "holdfast", self.world.profile.request_timeout)

    def growth(self) -> dict[str, tuple[int, int]]:
        return {"pushes": (len(self.server.database.pushes), MOST_PUSHES_COUNT)}


class SimulatedMariaDBSessions(SessionLocks, SimulatedMariaDB):
    """Session locks."""

    name = "mysql+session"
    life = "holdfast-session-"

    def _engine(self) -> ClientEngine[Any, Any]:
        return open_session(self.url, "holdfast", self.world.profile.request_timeout)
