"""One client's connection: frames in, replies and events out.

1. Nothing is read between the request to connect and its answer.
2. Requests are answered in the order in which they came. Writes and syncs go to the leader as they come; a read waits
   until all before it on this connection is answered, and is answered from this server's own tree. Credentials are
   answered at once.
3. A frame that is too long, or a request to connect that cannot be read, ends the connection.
4. A client that has seen more than this server is turned away: the connection is closed without an answer.
5. At a follower, a sync goes to the leader and back, and comes after all that was proposed before. A leader answers it
   as it does a read: that waits for what is under way of the same session, even by way of another server, and not for
   what others have proposed. At a server that stands alone it waits for everything.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..model import Output
from . import access, records, replies
from .prepare import Request
from .records import READS, WRITES, Code, Malformed, Op, RecordReader, Refused
from .tree import Failed, Multi, Result, Txn

if TYPE_CHECKING:
    from .member import Member

_EVENT_XID, _PING_XID = -1, -2
_CONNECTED_CODE = 3


class Connection:
    """What `Server.accept` answers with."""

    def __init__(self, member: Member, output: Output) -> None:
        self.member = member
        self.session = 0
        self.timeout_ms = 0
        self.open = True
        """False once either side has ended it."""
        self.heard = member.machine.host.now()
        self._output = output
        self._buffer = b""
        self._reading = True
        self._connected = False
        self._is_old_client = False
        self._identities: tuple[access.Identity, ...] = (("ip", "127.0.0.1"),)
        self._queue: deque[Request] = deque()

    # From the client

    def receive(self, data: bytes) -> None:
        self.member.machine.do_for_client(lambda: self._take_in(data))

    def closed(self) -> None:
        self.member.machine.do_for_client(self.forget)

    def _take_in(self, data: bytes) -> None:
        self.heard = self.member.machine.host.now()
        self._buffer += data
        self._read_frames()

    def _read_frames(self) -> None:
        while self.open and self._reading and len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big", signed=True)
            if not 0 <= size <= records.MAX_FRAME_BYTES or not self.member.serves:
                self.close()
            elif len(self._buffer) < 4 + size:
                return
            else:
                record, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
                try:
                    if self._connected:
                        self._request(record)
                    else:
                        self._connect(RecordReader(record))
                except Malformed:
                    self.close()

    def _connect(self, reader: RecordReader) -> None:
        _, seen, timeout_ms, session, password = (
            reader.integer(), reader.long(), reader.integer(), reader.long(), reader.buffer()
        )  # fmt: skip
        self._is_old_client = not reader.left
        if seen > self.member.tree.zxid:
            self.close()
            return
        self._connected, self._reading = True, False
        self.timeout_ms = self.member.settings.session_ms(timeout_ms)
        if session == 0:
            self.session = self.member.clients.new_session()
            self._submit(Request(Op.CREATE_SESSION, self.session, body=records.integer(self.timeout_ms)))
            return
        self.member.clients.close_session(session)
        self.session = session
        if password == access.password_of(session):
            self.member.revalidate(self)
        else:
            self.welcome(False)

    def welcome(self, valid: bool) -> None:
        """The answer to the request to connect."""
        if not self.open:
            return
        body = records.integer(0)
        if valid:
            body += records.integer(self.timeout_ms) + records.long(self.session)
            body += records.buffer(access.password_of(self.session))
        else:
            body += records.integer(0) + records.long(0) + records.buffer(bytes(16))
        self._output.send(records.frame(body if self._is_old_client else body + records.flag(False)))
        if not valid:
            self.close()
            return
        self.member.clients.connected(self)
        self._reading = True
        self._read_frames()

    def _request(self, record: bytes) -> None:
        reader = RecordReader(record)
        xid, kind = reader.integer(), reader.integer()
        body = record[8:]
        if kind == Op.AUTH:
            self._log_in(xid, RecordReader(body))
        elif kind not in READS and kind not in WRITES and kind != Op.SYNC:
            self._output.send(records.reply(xid, -1, Code.UNIMPLEMENTED))
            self.close()
        else:
            self._submit(Request(kind, self.session, xid, body, self._identities))

    def _log_in(self, xid: int, reader: RecordReader) -> None:
        reader.integer()
        who = access.identity_of(reader.text(), reader.buffer() or b"")
        self._output.send(records.reply(xid, 0, Code.OK if who else Code.AUTH_FAILED))
        if who is None:
            self.close()
        elif who not in self._identities:
            self._identities = (*self._identities, who)

    def _submit(self, request: Request) -> None:
        request.connection = self
        if request.kind != Op.CREATE_SESSION and not self.member.touch(self.session, self.timeout_ms):
            return  # a session that is closing: nobody is told
        self._queue.append(request)
        if self._is_answered_here(request):
            self.member.admit(request)
            self.answer_reads()
        else:
            self.member.forward(request)

    def _is_answered_here(self, request: Request) -> bool:
        """A leader does not ask anybody about a sync (rule 5)."""
        return request.kind in READS or (request.kind == Op.SYNC and self.member.leads)

    # To the client

    def answer_reads(self) -> None:
        """As far as they wait for nothing."""
        while self.open and self._queue and self._is_answered_here(request := self._queue[0]):
            if request.waits_for > self.member.tree.zxid:
                return
            self._queue.popleft()
            if request.refusal == Code.SESSION_MOVED:
                self.close()
                return
            try:
                if request.refusal:
                    raise Refused(request.refusal)
                body, code = replies.read(self.member.tree, request, self), Code.OK
            except Refused as refusal:
                body, code = b"", refusal.code
            except Malformed:
                body, code = b"", Code.MARSHALLING
            xid = _PING_XID if request.kind == Op.PING else request.xid
            self._output.send(records.reply(xid, self.member.tree.zxid, code, body))

    def complete(self, request: Request, txn: Txn, result: Result) -> None:
        """A write of this connection is carried out here, or its sync has come back."""
        if not self.open:
            return
        assert self._queue[0] is request
        self._queue.popleft()
        if request.kind == Op.CREATE_SESSION:
            self.welcome(True)
        elif _has_moved(txn):
            self.close()
        else:
            body = b"" if result.code else replies.written(request, result)
            self._output.send(records.reply(request.xid, self.member.tree.zxid, result.code, body))
            if request.kind == Op.CLOSE_SESSION:
                self.close()
        self.answer_reads()

    def notify(self, kind: int, path: str) -> None:
        body = records.integer(kind) + records.integer(_CONNECTED_CODE) + records.text(path)
        self._output.send(records.reply(_EVENT_XID, -1, Code.OK, body))

    def close(self) -> None:
        """By the server."""
        if self.open:
            self.forget()
            self._output.close()

    def forget(self) -> None:
        """Whatever it still says is not heard, and what is under way for it is not answered."""
        self.open = False
        self._queue.clear()
        self._buffer = b""
        self.member.disconnected(self)


def _has_moved(txn: Txn) -> bool:
    """Such a refusal is not told: the connection is closed."""
    parts = [part for _, part in txn.parts] if isinstance(txn, Multi) else [txn]
    return any(isinstance(part, Failed) and part.code == Code.SESSION_MOVED for part in parts)
