"""libpq's non-blocking handle, for a simulated client: what a client over readiness uses of `psycopg.pq.PGconn`.

1. It never waits. `connect_poll` says what to wait for; `flush` says whether there is more to send; `consume_input`
   takes what is there; `is_busy` says whether `get_result` would have to wait.
2. It fails as libpq does: with `psycopg.OperationalError` once the connection has ended, and with a result that is an
   error where the server answered with one. What it sent before the end is delivered first.
3. One statement at a time, or, in pipeline mode, any number, with a `PIPELINE_SYNC` result after each sync.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from psycopg import OperationalError
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, PollingStatus, TransactionStatus

from .messages import (
    SYNC,
    TERMINATE,
    MessageReader,
    bind_and_execute,
    message,
    parse,
    read_fields,
    read_values,
    startup,
)

ENDED = "consuming input failed: server closed the connection unexpectedly"


class Endpoint(Protocol):
    """One end of a simulated connection; no method waits."""

    def fileno(self) -> int:
        """What the simulator's readiness op knows it by."""
        ...

    def connected(self) -> bool:
        """Whether it is; raises `OSError` if it cannot be."""
        ...

    def send(self, data: bytes) -> int:
        """How many of these bytes were taken; raises `OSError` once the connection is lost."""
        ...

    def receive(self) -> bytes | None:
        """What is there: None for nothing yet, `b""` for the end."""
        ...

    def close(self) -> None: ...


class Sent(enum.Enum):
    """What was sent and is not yet answered."""

    QUERY = enum.auto()
    PREPARE = enum.auto()
    SYNC = enum.auto()


class Notify(NamedTuple):
    relname: bytes
    be_pid: int
    extra: bytes


class SimulatedResult:
    """A result, with what `results.py` reads of one."""

    def __init__(self, status: ExecStatus, fields: dict[int, bytes] | None = None) -> None:
        self.status = status
        self.rows: list[list[bytes | None]] = []
        self.nfields = 0
        self._fields = fields or {}

    @property
    def ntuples(self) -> int:
        return len(self.rows)

    def get_value(self, row: int, column: int) -> bytes | None:
        return self.rows[row][column]

    def error_field(self, field: int) -> bytes | None:
        return self._fields.get(field)

    @property
    def error_message(self) -> bytes:
        severity, words = self._fields.get(ord("S"), b""), self._fields.get(ord("M"), b"")
        return severity + b":  " + words + b"\n" if self._fields else b""


class SimulatedConnection:
    def __init__(self, endpoint: Endpoint, user: str, database: str, password: str = "") -> None:
        self._endpoint = endpoint
        self._password = password
        self._unsent = startup(user, database)
        self._reader = MessageReader(of_client=False)
        self._greeted = False
        self._error = ""
        self._results: deque[SimulatedResult | None] = deque()
        self._building: SimulatedResult | None = None
        self._under_way: deque[Sent] = deque()
        self._notes: deque[Notify] = deque()
        self._pipeline = False
        self.status = ConnStatus.STARTED
        self.backend_pid = 0
        self.nonblocking = 1

    # The log-in

    @property
    def socket(self) -> int:
        if self.status == ConnStatus.BAD:
            raise OperationalError("the connection is lost")
        return self._endpoint.fileno()

    def connect_poll(self) -> PollingStatus:
        if self.status != ConnStatus.STARTED:
            return PollingStatus.OK if self.status == ConnStatus.OK else PollingStatus.FAILED
        try:
            if not self._endpoint.connected() or self.flush():
                return PollingStatus.WRITING
            self.consume_input()
        except (OSError, OperationalError) as error:
            return self._fail(str(error))
        while not self._greeted and (found := self._reader.next()) is not None:
            if not self._log_in(*found):
                return PollingStatus.FAILED
        if not self._greeted:
            return PollingStatus.WRITING if self._unsent and self.flush() else PollingStatus.READING
        self.status = ConnStatus.OK
        return PollingStatus.OK

    def _log_in(self, kind: bytes, body: bytes) -> bool:
        match kind:
            case b"E":
                fields = read_fields(body)
                self._fail(f"connection failed: {fields[ord('S')].decode()}:  {fields[ord('M')].decode()}")
                return False
            case b"R" if int.from_bytes(body, "big") == 3:
                if not self._password:
                    self._fail("connection failed: fe_sendauth: no password supplied")
                    return False
                self._unsent += message(b"p", self._password.encode() + b"\0")
                self.flush()
            case b"K":
                self.backend_pid = int.from_bytes(body[:4], "big")
            case b"Z":
                self._greeted = True
        return True

    def _fail(self, why: str) -> PollingStatus:
        self._error = why
        self.status = ConnStatus.BAD
        self._endpoint.close()
        return PollingStatus.FAILED

    @property
    def error_message(self) -> bytes:
        return self._error.encode()

    def get_error_message(self, encoding: str = "utf-8") -> str:
        return self._error

    # What is sent

    def send_query(self, command: bytes) -> None:
        self._send(message(b"Q", command + b"\0"))

    def send_prepare(self, name: bytes, command: bytes) -> None:
        self._send(parse(name, command), SYNC, Sent.PREPARE)

    def send_query_params(self, command: bytes, values: Sequence[bytes | None] | None) -> None:
        self._send(parse(b"", command) + bind_and_execute(b"", values or ()), SYNC)

    def send_query_prepared(self, name: bytes, values: Sequence[bytes | None] | None) -> None:
        self._send(bind_and_execute(name, values or ()), SYNC)

    def _send(self, words: bytes, sync: bytes = b"", sent: Sent = Sent.QUERY) -> None:
        self._check()
        if self._under_way and not self._pipeline:
            raise OperationalError("another command is already in progress")
        self._unsent += words + (b"" if self._pipeline else sync)
        self._under_way.append(sent)

    def enter_pipeline_mode(self) -> None:
        self._pipeline = True

    @property
    def pipeline_status(self) -> PipelineStatus:
        return PipelineStatus.ON if self._pipeline else PipelineStatus.OFF

    def pipeline_sync(self) -> None:
        self._check()
        self._unsent += SYNC
        self._under_way.append(Sent.SYNC)

    def flush(self) -> int:
        """1 if there is more to send."""
        self._check()
        try:
            while self._unsent:
                sent = self._endpoint.send(self._unsent)
                self._unsent = self._unsent[sent:]
                if not sent:
                    return 1
        except OSError as error:
            self._lose(str(error))
        return 0

    # What is received

    def consume_input(self) -> None:
        self._check()
        try:
            data = self._endpoint.receive()
        except OSError as error:
            self._lose(str(error))
        if data is not None and not data:
            self._lose(ENDED)
        self._reader.feed(data or b"")

    def _check(self) -> None:
        if self.status == ConnStatus.BAD:
            raise OperationalError(self._error or "the connection is closed")

    def _lose(self, why: str) -> None:
        self._fail(why)
        raise OperationalError(why)

    def is_busy(self) -> bool:
        """Whether `get_result` would have to wait."""
        self._read()
        return not self._results and bool(self._under_way)

    def get_result(self) -> SimulatedResult | None:
        self._read()
        if self._results:
            return self._results.popleft()
        if self._under_way:
            raise OperationalError("get_result would wait: ask is_busy first")
        return None

    def notifies(self) -> Notify | None:
        self._read()
        return self._notes.popleft() if self._notes else None

    @property
    def transaction_status(self) -> TransactionStatus:
        if self.status != ConnStatus.OK:
            return TransactionStatus.UNKNOWN
        return TransactionStatus.ACTIVE if self._under_way or self._results else TransactionStatus.IDLE

    def finish(self) -> None:
        if self.status != ConnStatus.BAD:
            try:
                self._endpoint.send(TERMINATE)
            except OSError:
                pass  # the server sees the end of the connection only
            self._fail("the connection is closed")

    def _read(self) -> None:
        while self._greeted and (found := self._reader.next()) is not None:
            self._take(*found)

    def _take(self, kind: bytes, body: bytes) -> None:
        match kind:
            case b"A":
                channel, payload = body[4:].split(b"\0")[:2]
                self._notes.append(Notify(channel, int.from_bytes(body[:4], "big"), payload))
            case b"T":
                self._building = SimulatedResult(ExecStatus.TUPLES_OK)
                self._building.nfields = int.from_bytes(body[:2], "big")
            case b"D":
                assert self._building is not None
                self._building.rows.append(read_values(body, 0))
            case b"C":
                self._done(self._building or SimulatedResult(ExecStatus.COMMAND_OK))
            case b"1" if self._under_way and self._under_way[0] is Sent.PREPARE:
                self._done(SimulatedResult(ExecStatus.COMMAND_OK))
            case b"E" if self._under_way:  # else nobody asked: libpq takes it for a notice, and then finds the end
                self._done(SimulatedResult(ExecStatus.FATAL_ERROR, read_fields(body)))
            case b"Z":
                self._synced()

    def _done(self, result: SimulatedResult) -> None:
        self._building = None
        self._results.append(result)
        if self._pipeline and self._under_way:
            self._under_way.popleft()
            self._results.append(None)

    def _synced(self) -> None:
        """The end of a statement; in pipeline mode, of all up to a sync."""
        if not self._pipeline:
            self._under_way.clear()
            return
        while self._under_way and self._under_way.popleft() is not Sent.SYNC:
            self._results += [SimulatedResult(ExecStatus.PIPELINE_ABORTED), None]
        self._results.append(SimulatedResult(ExecStatus.PIPELINE_SYNC))
