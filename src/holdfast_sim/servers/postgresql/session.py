"""One connection at the simulated PostgreSQL.

1. Start (TLS and GSS are declined), password where there is one, then messages, one after the other: what arrives
   while a statement waits is kept until that is over.
2. In the extended protocol, an error makes it skip everything until the next Sync. Nothing is sent before a Sync or the
   end of a simple query.
3. Notifications reach a session that listens when it is idle, or at the end of what it carries out.
4. The end of a client is noticed at once, unless a statement waits: then at the next check
   (`client_connection_check_interval`), or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast._core.line import Place

from ..model import Output, Timer
from ..relational.lock_table import words_to
from ..relational.statement_runner import Running, ServerError, Steps
from . import errors
from .messages import (
    CANCEL,
    GSS,
    SSL,
    MessageReader,
    MessageRows,
    Result,
    error,
    message,
    notification,
    number,
    read_values,
    ready,
    result,
    row_description,
    welcome,
)
from .programs import COLUMNS, PROGRAMS
from .queries import SETTING, carry_out

if TYPE_CHECKING:
    from .server import PostgreSQLServer

LOGIN_TIMEOUT_S = 60.0


class PostgreSQLSession:
    def __init__(self, server: PostgreSQLServer, output: Output, pid: int) -> None:
        self.server = server
        self.number = pid
        self.started_us = self.now_us
        self.statement_timeout_s = self.idle_timeout_s = 0.0
        self.check_s: float | None = None
        """How often it looks for its client while a statement waits."""
        self.channels: set[str] = set()
        self.prepared: dict[bytes, bytes] = {}
        self.ended = False
        self._output = output
        self._reader = MessageReader(of_client=True)
        self._user = ""
        self._logged_in = self._skipping = self._client_gone = False
        self._bound: tuple[bytes, Sequence[str]] = (b"", ())
        self._said = b""
        self._running: Running[Result] | None = None
        self._timers: list[Timer] = [server.host.after(LOGIN_TIMEOUT_S, self.end)]

    @property
    def now_us(self) -> int:
        return round(self.server.host.calendar() * 1_000_000)

    # Bytes in

    def receive(self, data: bytes) -> None:
        if not self.ended:
            self._reader.feed(data)
            self._next()

    def closed(self) -> None:
        self._client_gone = True
        if self._running is None:
            self.end()
        elif self.check_s is not None:
            self.server.host.after(self.check_s, self.end)

    def _next(self) -> None:
        while self._running is None and not self.ended and (found := self._reader.next()) is not None:
            self._stop_timers()
            if self._logged_in:
                self._carry_out(*found)
            else:
                self._log_in(*found)
        if self._running is None and self._client_gone:
            self.end()

    def _log_in(self, kind: bytes, body: bytes) -> None:
        code = int.from_bytes(body[:4], "big")
        if kind == b"p":
            self._check_password(body.rstrip(b"\0").decode())
        elif code in (SSL, GSS):
            self._output.send(b"N")
        elif code == CANCEL:
            self.server.kill_query(int.from_bytes(body[4:8], "big"))
            self.end()
        else:
            self._reader.starting = False
            words = body[4:].split(b"\0")
            given = dict(zip(words[::2], words[1::2], strict=False))
            self._user = given.get(b"user", b"").decode()
            database = given.get(b"database", given.get(b"user", b"")).decode()
            if len(self.server.sessions) > self.server.most_sessions:
                self.fail(errors.too_many())
            elif database != self.server.name:
                self.fail(errors.no_database(database))
            elif self.server.users.get(self._user) == "":
                self._welcome()
            else:
                self._output.send(message(b"R", number(3)))

    def _check_password(self, password: str) -> None:
        if password and self.server.users.get(self._user) == password:
            self._welcome()
        else:
            self.fail(errors.password_failed(self._user))

    def _welcome(self) -> None:
        self._logged_in = True
        self._output.send(welcome(self.number, self.server.host.chance.getrandbits(31), self.server.told()))

    # Messages

    def _carry_out(self, kind: bytes, body: bytes) -> None:
        if kind == b"X":
            self.end()
        elif kind == b"S":
            self._skipping = False
            self._finish()
        elif not self._skipping:
            try:
                self._extended(kind, body) if kind != b"Q" else self._query(body[:-1])
            except ServerError as refusal:
                self._refuse(refusal, kind == b"Q")

    def _query(self, words: bytes) -> None:
        def done(answer: Result) -> None:
            self._say(result(answer))
            self._finish()

        self._run(carry_out(self, words), done, simple=True)

    def _extended(self, kind: bytes, body: bytes) -> None:
        if kind == b"P":
            name, words = body.split(b"\0")[:2]
            self._parse(name, words)
            self._say(message(b"1"))
        elif kind == b"B":
            name = body.split(b"\0")[1]
            if name not in self.prepared:
                raise errors.not_prepared(name.decode())
            at = 1 + len(name) + 1
            at += 2 + 2 * int.from_bytes(body[at : at + 2], "big")
            self._bound = self.prepared[name], [(one or b"").decode() for one in read_values(body, at)]
            self._say(message(b"2"))
        elif kind == b"D":
            columns = COLUMNS.get(self._bound[0], ())
            self._say(row_description(columns) if columns else message(b"n"))
        elif kind == b"E":
            words, values = self._bound
            self.server.check_fault(words)
            steps = PROGRAMS[words](self, values) if words in PROGRAMS else carry_out(self, words)
            self._run(steps, lambda answer: self._say(result(answer, isinstance(answer, MessageRows))))

    def _parse(self, name: bytes, words: bytes) -> None:
        if words not in PROGRAMS and SETTING.fullmatch(words) is None:
            raise errors.syntax(words.decode("utf-8", "replace"))
        if self.server.database.meta is None and b"holdfast_" in words:
            column = COLUMNS[words][0] if COLUMNS[words] else b""
            called = column.startswith(b"holdfast")
            raise errors.no_function(f"{column.decode()}(…)") if called else errors.no_relation("holdfast_claim")
        if name and name in self.prepared:
            raise errors.prepared_before(name.decode())
        self.prepared[name] = words

    def _run(self, steps: Steps[Result], done: Callable[[Result], None], simple: bool = False) -> None:
        def finished(outcome: Result | ServerError) -> None:
            self._running = None
            self._stop_timers()
            if isinstance(outcome, ServerError):
                self._refuse(outcome, simple)
            else:
                done(outcome)
            self._next()

        running = self._running = Running[Result](self.server.host, self.server.locks, self.number, finished)
        running.start(steps)
        if self._running is running and self.statement_timeout_s:
            late = errors.canceled("statement timeout")
            self._timers.append(self.server.host.after(self.statement_timeout_s, lambda: running.interrupt(late)))

    def _refuse(self, refusal: ServerError, simple: bool) -> None:
        self._say(error(refusal))
        self._skipping = not simple
        if simple:
            self._finish()

    # Bytes out

    def _say(self, words: bytes) -> None:
        self._said += words

    def _finish(self) -> None:
        """What was asked is answered."""
        words, self._said = self._said, b""
        self._running = None
        if not self._client_gone:
            self._output.send(words + ready())
        if self.idle_timeout_s:
            late = errors.idle_too_long()
            self._timers.append(self.server.host.after(self.idle_timeout_s, lambda: self.fail(late)))

    def tell(self, promoted: Sequence[Place]) -> None:
        """NOTIFY each on its channel; delivered with the commit."""
        for place in promoted:
            if place.wake:
                self.server.notify(self.number, place.wake, words_to(place))

    def hear(self, pid: int, channel: str, payload: str) -> None:
        if channel in self.channels and not self._client_gone:
            words = notification(pid, channel, payload)
            if self._running is not None:
                self._say(words)
            else:
                self._output.send(words)

    # The end

    def interrupt(self, refusal: ServerError) -> None:
        if self._running is not None:
            self._running.interrupt(refusal)

    def fail(self, refusal: ServerError) -> None:
        """End it, and say why."""
        if not self.ended:
            if not self._client_gone:
                self._output.send(error(refusal, b"FATAL"))
            self.end()

    def end(self) -> None:
        if not self.ended:
            self.vanish()
            self._output.close()

    def vanish(self) -> None:
        """It is no more, and nobody is told."""
        self.ended = True
        self._stop_timers()
        if self._running is not None:
            self._running.abandon()
            self._running = None
        self.server.sessions.pop(self.number, None)
        self.server.locks.end_session(self.number)

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
