"""One client's connection to one member.

1. Requests of one connection are answered one after the other, however many came at once; a watch never ends, so
   nothing behind it is read.
2. When its client has gone, what it was busy with goes on, and what came behind that is carried out or not, by chance:
   Go notices the end of a connection only when it reads or writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Output
from . import errors, service
from .errors import RpcError
from .fields import Json, write
from .http import FIRST_READ_BYTES, LAST_CHUNK, BadRequest, HttpRequest, RequestParser, Responder, message
from .requests import Span
from .state import Outcome
from .watches import WatchStream

if TYPE_CHECKING:
    from .member import EtcdMember


class EtcdSession:
    """Implements `model.Session`."""

    def __init__(self, member: EtcdMember, output: Output) -> None:
        self._member, self._output = member, output
        self._parser = RequestParser()
        self._muted = self._ended = self._busy = self._pumping = False
        self._stream: WatchStream | None = None
        self._requires_leader = False
        self._responder = Responder()
        self._begun = False
        """The head of a stream has been sent."""
        self._keep_open = True

    # The connection

    def receive(self, data: bytes) -> None:
        if not self._ended:
            self._member.run(lambda: self._receive(data))

    def _receive(self, data: bytes) -> None:
        if not self._ended:
            self._parser.feed(data)
            self._pump()

    def closed(self) -> None:
        self._member.run(self._closed)

    def _closed(self) -> None:
        self._muted = True
        self._end_stream()
        if not self._busy or self._member.host.chance.random() < 0.5:
            self.abandon()
        self._member.sessions.discard(self)

    def abandon(self) -> None:
        """The member is no more, or nobody is left to answer."""
        self._muted = self._ended = True

    def leader_lost(self) -> None:
        """The member has been without a leader for a while."""
        if self._stream is not None and self._requires_leader:
            self._end_stream()
            self._refuse_stream(errors.NO_LEADER)

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._member.watches.close(stream)

    def _send(self, data: bytes) -> None:
        if not self._muted:
            self._output.send(data)

    def _pump(self) -> None:
        """Deal with what has come, until something takes its time."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self._busy and not self._ended and (request := self._parser.next()) is not None:
                self._busy, self._keep_open = True, request.keep_open
                self._responder, self._begun = Responder(request.keep_open), False
                self._carry_out(request)
        except (BadRequest, ValueError):
            self._finish_connection()
        finally:
            self._pumping = False

    def _done(self) -> None:
        self._busy = False
        if not self._keep_open:
            self._finish_connection()
        self._pump()

    def _finish_connection(self) -> None:
        if not self._muted:
            self._output.close()
        self.abandon()
        self._member.sessions.discard(self)

    # One request

    @property
    def _date(self) -> float:
        return self._member.host.calendar()

    def _carry_out(self, request: HttpRequest) -> None:
        if request.path not in service.PATHS:
            self._send(self._responder.plain(404, self._date))
            self._done()
        elif request.method != "POST":
            self._send(self._responder.plain(405, self._date))
            self._done()
        elif request.path == service.WATCH:
            self._watch(request)
        elif request.path == service.KEEP_ALIVE:
            self._keep_alive(request)
        elif request.require_leader and self._member.lead is None:
            self._answer(errors.NO_LEADER)
        else:
            service.call(self._member, request, self._answer)

    def _answer(self, outcome: Outcome) -> None:
        if isinstance(outcome, RpcError):
            self._send(self._responder.unary_error(outcome, self._date))
        else:
            revision, fields = outcome
            header: Json = {} if revision < 0 else {"header": self._member.header(revision)}
            self._send(self._responder.unary(write(header | fields), self._date))
        self._done()

    # Streams

    def _message(self, result: Json) -> None:
        if not self._begun:
            self._begun = True
            self._send(self._responder.stream_head(self._date))
        self._send(message(write({"result": result})))

    def _refuse_stream(self, error: RpcError) -> None:
        self._send(self._responder.stream_error(error, self._date, self._begun))
        self._done()

    def _messages(self, request: HttpRequest) -> list[service.Fields] | None:
        """Those of a stream; None if it has ended already."""
        body, chance = request.body, self._member.host.chance
        cut = request.keep_open and len(body) > FIRST_READ_BYTES
        lost = cut and chance.random() < self._member.cluster.settings.lost_body_chance
        messages, error = service.read_messages(body[:FIRST_READ_BYTES] if lost else body)
        if error is not None and not messages:
            self._answer(RpcError(errors.UNKNOWN, error.message, of_gateway=True))
            return None
        if request.require_leader and self._member.lead is None:
            self._refuse_stream(errors.NO_LEADER)
            return None
        return messages

    def _watch(self, request: HttpRequest) -> None:
        messages = self._messages(request)
        if messages is None:
            return

        def send(fields: Json, revision: int) -> None:
            self._message({"header": self._member.header(revision)} | fields)

        def permit(span: Span) -> None:
            service.check_read(self._member, request.token, span)

        self._requires_leader = request.require_leader
        stream = self._stream = WatchStream(send, permit)
        for each in messages:
            self._member.watches.ask(stream, each)

    def _keep_alive(self, request: HttpRequest) -> None:
        messages = self._messages(request)
        if messages is not None:
            self._keep_next(messages)

    def _keep_next(self, messages: list[service.Fields]) -> None:
        if not messages:
            end = LAST_CHUNK if self._begun else self._responder.stream_head(self._date, messages=False) + LAST_CHUNK
            self._send(end)
            self._done()
            return
        try:
            id_ = messages[0].number("ID")
        except RpcError as error:
            self._answer(RpcError(errors.UNKNOWN, error.message, of_gateway=True))
            return
        header = self._member.header()  # from before the renewal, as etcd has it

        def answer(seconds: int) -> None:
            self._message({"header": header} | service.present(ID=id_, TTL=seconds))
            self._keep_next(messages[1:])

        self._member.forwarder.renew(id_, answer, self._refuse_stream)
