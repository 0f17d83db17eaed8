"""One connection at the simulated MariaDB.

1. Handshake, log-in (with a switch of the method where the client named another), then commands, one after the other:
   what arrives while a statement waits is kept until that is over.
2. A command that does not begin at packet number 0 ends the session, as it does at the server.
3. A session that says nothing for `wait_timeout` is ended without a word; one that does not log in, after ten seconds.
4. The end of a client is noticed at once, unless a statement waits: then within a second, and not at all if anything is
   left to read, be it the client's own goodbye (measured on 10.11). Then the statement waits on, and gets its lock.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from ..model import Output, Timer
from ..relational.database import Database
from ..relational.statement_runner import Running, ServerError
from . import errors
from .login import PLUGIN, Response, new_salt, read_response, scrambled
from .packets import AUTOCOMMIT, Done, Result, SimPacketReader, error, framed, handshake, ok, prepared, reply
from .statement_texts import PREPARED
from .statements import carry_out
from .values import read_values

if TYPE_CHECKING:
    from .server import MariaDBServer

QUIT, QUERY, PING, PREPARE, EXECUTE, CLOSE_STATEMENT = 0x01, 0x03, 0x0E, 0x16, 0x17, 0x19
LOGIN_TIMEOUT_S = 10.0
NOTICE_S = 1.0

Outcome: TypeAlias = list[Result]


class MariaDBSession:
    def __init__(self, server: MariaDBServer, output: Output, number: int) -> None:
        self.server = server
        self.number = number
        self.chance: Random = server.host.chance
        self.wait_timeout_s = server.wait_timeout_s
        self._output = output
        self._reader = SimPacketReader()
        self._commands: deque[tuple[int, bytes]] = deque()
        self._statements: dict[int, bytes] = {}
        self._last_statement = self.chance.choice([0, 4])
        """A session counts on where one before it ended, if the server uses its memory again."""
        self._salt = new_salt(self.chance)
        self._response: Response | None = None
        self._logged_in = False
        self._running: Running[Outcome] | None = None
        self._client_gone = False
        self.ended = False
        self._idle: Timer = server.host.after(LOGIN_TIMEOUT_S, self.end)
        output.send(framed([handshake(server.version, number, self._salt)], 0))

    @property
    def database(self) -> Database:
        return self.server.database

    @property
    def now_us(self) -> int:
        """The server's clock, at this statement."""
        return round(self.server.host.calendar() * 1_000_000)

    def require_table(self, table: str) -> None:
        if self.database.meta is None:
            raise errors.no_table(self.server.name, table)

    # Bytes in

    def receive(self, data: bytes) -> None:
        if not self.ended:
            self._commands += self._reader.feed(data)
            self._next()

    def closed(self) -> None:
        self._client_gone = True
        if self._running is None:
            self.end()
        elif not self._commands and not self._reader.started:
            self.server.host.after(NOTICE_S, self.end)

    def _next(self) -> None:
        while self._commands and self._running is None and not self.ended:
            number, packet = self._commands.popleft()
            self._idle.cancel()
            if not self._logged_in:
                self._log_in(number, packet)
            elif number:
                self._output.send(framed([error(errors.out_of_order())], 0))
                self.end()
            else:
                self._carry_out(packet)
        if self._running is None and not self.ended:
            if self._client_gone:
                self.end()
                return
            self._idle.cancel()
            self._idle = self.server.host.after(self.wait_timeout_s if self._logged_in else LOGIN_TIMEOUT_S, self.end)

    def _log_in(self, number: int, packet: bytes) -> None:
        switched = self._response is not None
        try:
            response = self._response or read_response(packet)
        except (ValueError, IndexError):
            self.end()
            return
        answer = packet if switched else response.answer
        if response.plugin != PLUGIN and not switched:
            self._response, self._salt = response, new_salt(self.chance)
            switch = b"\xfe" + PLUGIN.encode() + b"\0" + self._salt + b"\0"
            self._output.send(framed([switch], number + 1))
            return
        password = self.server.users.get(response.user)
        if password is None or answer != scrambled(password, self._salt):
            refusal = errors.access_denied(response.user, bool(answer))
        elif response.database not in ("", self.server.name):
            refusal = errors.unknown_database(response.database)
        else:
            self._logged_in = True
            self._output.send(framed([ok(Done(), AUTOCOMMIT)], number + 1))
            return
        self._output.send(framed([error(refusal)], number + 1))
        self.end()

    # Commands

    def _carry_out(self, packet: bytes) -> None:
        command, body = packet[0], packet[1:]
        running = Running[Outcome](self.server.host, self.server.locks, self.number, self._answer)
        self._running = running
        try:
            match command:
                case 0x01:  # QUIT
                    self._running = None
                    self.end()
                case 0x0E:  # PING
                    self._answer([Done()])
                case 0x03:  # QUERY
                    self.server.check_fault(body)
                    running.start(carry_out(self, body))
                case 0x16:  # PREPARE
                    self._send(prepared(*self._prepare(body)))
                case 0x17:  # EXECUTE
                    number = int.from_bytes(body[:4], "little")
                    if (words := self._statements.get(number)) is None:
                        raise errors.no_statement(number)
                    self.server.check_fault(words)
                    running.start(PREPARED[words](self, read_values(body[4:], words.count(b"?"))))
                case 0x19:  # CLOSE_STATEMENT, which is not answered
                    self._running = None
                    self._statements.pop(int.from_bytes(body[:4], "little"), None)
                case _:
                    raise errors.unknown_command()
        except ServerError as refusal:
            self._answer(refusal)

    def _prepare(self, words: bytes) -> tuple[int, int]:
        if words not in PREPARED:
            raise errors.syntax(words.decode("utf-8", "replace"))
        self.require_table("holdfast_session" if b"holdfast_session" in words else "holdfast_claim")
        self._last_statement += 1
        number = self._last_statement
        self._statements[number] = words
        return number, words.count(b"?")

    def _answer(self, outcome: Outcome | ServerError) -> None:
        results, refusal = ([], outcome) if isinstance(outcome, ServerError) else (outcome, None)
        self._send(reply(results, refusal))

    def _send(self, packets: list[bytes]) -> None:
        self._running = None
        if not self._client_gone:
            self._output.send(framed(packets, 1))
        self._next()

    # The end

    def interrupt(self) -> None:
        """KILL QUERY; it does nothing to a session that carries out nothing."""
        if self._running is not None:
            self._running.interrupt(errors.interrupted())

    def end(self) -> None:
        """The server ends it; its locks are free."""
        if not self.ended:
            self.vanish()
            self._output.close()

    def vanish(self) -> None:
        """It is no more, and nobody is told."""
        self.ended = True
        self._idle.cancel()
        if self._running is not None:
            self._running.abandon()
            self._running = None
        self.server.sessions.pop(self.number, None)
        self.server.locks.end_session(self.number)
