"""The same calls to libpq's handle on PostgreSQL, and to the simulated handle on its model; results compared.

What differs by nature is levelled, and nothing else:
1. The name of a new cluster is chance. Names and types of columns are not compared: no client of ours reads them.
2. Of several statements in one text, the last result is compared.
3. Rows of a survey are compared in any order: those of one moment have none. Where a row tells the note of a name only
   (it has no state), nothing else but the name is compared: a seat keeps what its last claim has left there.
4. The clock: both are told what time it is, before every statement. While a statement waits, time stands still.
5. The model gives its sessions the numbers that the real server gave, and a beginning before all played time: so
   have those of the real server, whose processes live in our time.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PGconn, PollingStatus, abc

from holdfast.backends.postgresql.programs import ProgramStatement
from holdfast_sim.servers.postgresql.handle import SimulatedConnection, SimulatedResult
from holdfast_sim.servers.postgresql.pooler import Pooler
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from tests.likeness.play import Recorder, in_pieces
from tests.likeness.virtual import VirtualTime

ANSWER_S = 20.0
LISTEN_S = 0.03
STATE_AT, NOTE_AT = 13, 15
ERRORS = (DiagnosticField.SQLSTATE, DiagnosticField.MESSAGE_PRIMARY)
Handle: TypeAlias = Any
"""A `PGconn`, or a `SimulatedConnection`."""
Send: TypeAlias = Callable[[Handle], None]


class Difference(AssertionError):
    """The model and the server answered differently."""


class Direct:
    """A connection to a model without a network between: what is sent is there at once, in pieces."""

    def __init__(self, server: PostgreSQLServer | Pooler, chance: Random) -> None:
        self.output = Recorder()
        self.session = server.accept(self.output)
        self._chance = chance
        assert isinstance(server.host, VirtualTime)
        self._host = server.host

    def fileno(self) -> int:
        return id(self)

    def connected(self) -> bool:
        return True

    def send(self, data: bytes) -> int:
        for piece in in_pieces(data, self._chance):
            self.session.receive(piece)
        self._host.advance()
        return len(data)

    def receive(self) -> bytes | None:
        size = self._chance.choice([1, 7, 1 << 16])
        data = bytes(self.output.data[:size])
        del self.output.data[:size]
        return data or (b"" if self.output.ended else None)

    def close(self) -> None:
        self.session.closed()


def seen(result: Any) -> object:
    """All that a client of ours sees of a result."""
    if result is None:
        return None
    if result.status == ExecStatus.TUPLES_OK:
        rows = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
        return int(result.status), result.nfields, sorted(map(levelled, rows), key=repr)
    return int(result.status), [result.error_field(field) for field in ERRORS]


def levelled(row: list[bytes | None]) -> list[bytes | None]:
    """Rule 3."""
    return [row[0], row[NOTE_AT]] if len(row) > NOTE_AT and row[STATE_AT] is None else row


class Pair:
    """One session at the real server, and one at the model."""

    def __init__(self, url: str, model: PostgreSQLServer, chance: Random) -> None:
        self.real: abc.PGconn = PGconn.connect(url.encode())
        if self.real.status != ConnStatus.OK:
            raise psycopg.OperationalError(self.real.get_error_message())
        self.real.nonblocking = 1
        self.number = self.real.backend_pid
        model.last_pid = self.number - 1
        self._host = model.host
        self.endpoint = Direct(model, chance)
        model.sessions[self.number].started_us = 0
        self.model = SimulatedConnection(self.endpoint, "postgres", model.name)
        while (status := self.model.connect_poll()) != PollingStatus.OK:
            assert status != PollingStatus.FAILED, self.model.get_error_message()
        assert self.model.backend_pid == self.number
        self.waiting: object = None
        self.last: Any = None
        """The real server's last result."""
        self._prepared: set[bytes] = set()

    def say(self, text: bytes) -> object:
        """Words without values."""
        return self._both(text, lambda handle: handle.send_query(text))

    def ask(self, statement: ProgramStatement, values: list[bytes], now: int, prepared: bool = True) -> object:
        self.set_clock(now)
        if not prepared:
            return self._both(statement.text, lambda handle: handle.send_query_params(statement.text, values))
        if statement.name not in self._prepared:
            self._prepared.add(statement.name)
            self._both(statement.text, lambda handle: handle.send_prepare(statement.name, statement.text))
        return self._both(statement.text, lambda handle: handle.send_query_prepared(statement.name, values))

    def set_clock(self, now: int) -> None:
        self.real.send_query(b"SET holdfast.now = %d" % now)
        self._real_result()

    def start(self, statement: ProgramStatement, values: list[bytes], now: int) -> None:
        """A statement whose reply may be long in coming."""
        self.set_clock(now)
        self.waiting = statement.text
        for handle in (self.real, self.model):
            handle.send_query_params(statement.text, values)
            assert not handle.flush()

    def settle(self) -> bool:
        """If the model has answered what it was asked, so does the server; else it has not, either."""
        assert isinstance(self._host, VirtualTime)
        self._host.advance()
        if not self.endpoint.output.data:
            if select.select([self.real.socket], [], [], LISTEN_S)[0]:
                self._compare(self.waiting, seen(self._real_result()), "nothing yet")
            return False
        what, self.waiting = self.waiting, None
        self._compare(what, seen(self._real_result()), seen(self._model_result()))
        return True

    def heard(self) -> list[bytes]:
        """The notifications that came: as many as the model has, and no more."""
        self.model.send_query(b"SELECT 1")
        self.model.flush()
        self._model_result()
        modelled, real = payloads(self.model), []
        end = time.monotonic() + ANSWER_S
        while True:
            self.real.send_query(b"SELECT 1")
            self._real_result()
            real += payloads(self.real)
            if len(real) >= len(modelled) or time.monotonic() > end:
                self._compare("notifications", sorted(real), sorted(modelled))
                return modelled
            time.sleep(0.005)

    def _both(self, what: object, send: Send) -> object:
        send(self.real)
        send(self.model)
        assert not self.model.flush()
        said = seen(self._real_result())
        self._compare(what, said, seen(self._model_result()))
        return said

    def _compare(self, what: object, said: object, other: object) -> None:
        if said != other:
            raise Difference(f"{what!r}\n  server {said!r}\n  model  {other!r}")

    def _real_result(self) -> Any:
        while self.real.flush():
            select.select([], [self.real.socket], [], ANSWER_S)
        last = None
        while True:
            while self.real.is_busy():
                assert select.select([self.real.socket], [], [], ANSWER_S)[0], "the server does not answer"
                self.real.consume_input()
            if (result := self.real.get_result()) is None:
                self.last = last
                return last
            last = result

    def _model_result(self) -> SimulatedResult | None:
        last = None
        while True:
            while self.model.is_busy():
                if not self.endpoint.output.data:
                    raise Difference("the model does not answer")
                self.model.consume_input()
            if (result := self.model.get_result()) is None:
                return last
            last = result

    def ended(self) -> None:
        """Both find that the server has ended it, and say why in the same words."""
        said = _last_words(self.real, lambda: bool(select.select([self.real.socket], [], [], ANSWER_S)[0]))
        other = _last_words(self.model, lambda: bool(self.endpoint.output.data) or self.endpoint.output.ended)
        self._compare("the end", said, other)

    def close(self) -> None:
        self.real.finish()
        self.model.finish()


def _last_words(handle: Handle, readable: Callable[[], bool]) -> str:
    try:
        while readable():
            handle.consume_input()
            handle.is_busy()
    except psycopg.OperationalError as error:
        return str(error).splitlines()[0]
    raise Difference("it has not ended")


def payloads(handle: Handle) -> list[bytes]:
    found = []
    while (note := handle.notifies()) is not None:
        found.append(note.extra)
    return found
