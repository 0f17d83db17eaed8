"""One side of a play, a real ensemble or the model: steps in, and what every client was told, in comparable form.

1. After each step every connection sends a sync until its server has caught up, and all that came before the answer is
   what the step has led to.
2. These values depend on the side, and are made comparable, each in one way:
   - session ids become the order in which they were given; passwords, whether they belong to their id;
   - zxids count from the beginning of the first epoch;
   - times become whether a transaction has the same one wherever it is seen;
   - children are sorted, and so are events that arrive one after the other when a session was closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from holdfast_sim.servers.zookeeper import records
from holdfast_sim.servers.zookeeper.access import password_of
from holdfast_sim.servers.zookeeper.records import Code, Malformed, Op, RecordReader
from tests.likeness.play import in_pieces
from tests.likeness.zookeeper_steps import PING_XID, Connect, Drop, Send, Step, frame_of
from tests.likeness.zookeeper_wires import NoWire, Wire

BARRIER_XID = -16
EPOCH = 1 << 32
MANY = 10_000
Story = tuple[object, ...]
Request = tuple[int, int, bytes]


@dataclass
class Client:
    wire: Wire
    buffer: bytes = b""
    alive: bool = True
    session: int = 0
    zxid: int = 0
    kinds: dict[int, int] = field(default_factory=dict)

    def frame(self) -> bytes | None:
        """The next one; None once the connection has ended."""
        while len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            data = self.wire.receive() if self.alive else b""
            if not data:
                self.alive = False
                return None
            self.buffer += data
        size = int.from_bytes(self.buffer[:4], "big")
        found, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
        return found


class Side:
    """`open_wire` connects to a member, by its number from 0."""

    def __init__(self, open_wire: Callable[[int], Wire]) -> None:
        self._open_wire = open_wire
        self._chance = Random(0)
        self._clients: dict[int, Client] = {}
        self._retired: list[Client] = []
        self._sessions: dict[int, int] = {0: 0}
        self._epoch: int | None = None
        self._times: dict[int, int] = {0: 0}
        self._owners: dict[int, Client] = {}
        self._open: list[int] = []
        """Sessions of this round, which may live."""

    def begin(self, seed: int) -> list[Story]:
        """A round. No session of the last one lives on, to expire in this one."""
        self._chance = Random(seed)
        self.close()
        told = []
        for session in self._open:
            self._clients[0] = Client(NoWire(), session=session)
            told += list(self._connect(Connect(0, 0, 60_000, heir_of=0)))
            told += self.play(Send(0, ((1, Op.CLOSE_SESSION, b""),)))
            self.close()
        self._open.clear()
        return told

    def play(self, step: Step) -> list[Story]:
        told: list[Story] = []
        closes = False
        match step:
            case Connect():
                told += self._connect(step)
            case Drop():
                if (dropped := self._clients.get(step.client)) is not None:
                    dropped.wire.close()
                    dropped.alive = False
            case Send():
                client = self._clients.get(step.client)
                if client is not None and client.alive:
                    requests = self._certain(client, step.requests)
                    closes = any(kind == Op.CLOSE_SESSION for _, kind, _ in requests)
                    told += [(step.client, *each) for each in self._send(client, requests)]
        latest = max((client.zxid for client in self._clients.values()), default=0)
        for number, client in sorted(self._clients.items()):
            more = [(number, *each) for each in self._catch_up(client, latest)]
            told += sorted(more, key=repr) if closes else more
        return told

    def _catch_up(self, client: Client, latest: int) -> Iterator[Story]:
        """A leader answers a sync at once, and may be behind its followers for a moment: it is asked again."""
        client.kinds[BARRIER_XID] = Op.SYNC
        for _ in range(MANY):
            if not client.alive:
                return
            client.wire.send(frame_of((BARRIER_XID, Op.SYNC, records.text("/"))))
            found = list(self._replies(client, 1))
            if client.zxid >= latest or not client.alive:
                yield from found
                return
            yield from found[:-1]
        raise AssertionError(f"a server does not get to {latest:x}")

    def close(self) -> None:
        for client in (*self._clients.values(), *self._retired):
            client.wire.close()
        self._clients.clear()
        self._retired.clear()

    def _connect(self, step: Connect) -> Iterator[Story]:
        old, heir_of = self._clients.get(step.client), None
        if step.heir_of is not None:
            heir_of = self._clients.get(step.heir_of)
        if old is not None and old is not heir_of:
            old.wire.close()
        elif old is not None:
            self._retired.append(old)
        session = heir_of.session if heir_of is not None else 0
        seen = heir_of.zxid + step.seen if heir_of is not None and step.seen is not None else 0
        password = bytes(16) if not session or step.wrong_password else password_of(session)
        client = self._clients[step.client] = Client(self._open_wire(step.member), session=session)
        body = records.integer(0) + records.long(seen) + records.integer(step.timeout_ms) + records.long(session)
        for piece in in_pieces(records.frame(body + records.buffer(password) + b"\x00"), self._chance):
            client.wire.send(piece)
        frame = client.frame()
        if frame is None:
            yield step.client, "turned away"
            return
        reader = RecordReader(frame)
        version, timeout_ms, given = reader.integer(), reader.integer(), reader.long()
        fits = reader.buffer() == (password_of(given) if given else bytes(16))
        if given not in self._sessions:
            self._sessions[given] = len(self._sessions)
            self._open.append(given)
        client.session = given
        self._owners[given] = client
        yield step.client, "welcome", version, timeout_ms, self._sessions[given], fits, reader.flag(), reader.left

    def _certain(self, client: Client, requests: Sequence[Request]) -> Sequence[Request]:
        """Of two connections with one session, what happens after a refusal, and which hears first of its end, is open:
        the one that has lost it asks for one thing only, and neither ends it."""
        if self._owners.get(client.session) is not client:
            requests = requests[:1]
        shared = [each.session for each in self._clients.values() if each.alive].count(client.session) > 1
        return [each for each in requests if each[1] != Op.CLOSE_SESSION or not shared]

    def _send(self, client: Client, requests: Sequence[Request]) -> Iterator[Story]:
        client.kinds.update((xid, kind) for xid, kind, _ in requests)
        for piece in in_pieces(b"".join(map(frame_of, requests)), self._chance):
            client.wire.send(piece)
        if requests:
            yield from self._replies(client, len(requests))

    def _replies(self, client: Client, count: int) -> Iterator[Story]:
        """So many, and all events before them."""
        while (frame := client.frame()) is not None:
            reader = RecordReader(frame)
            xid, zxid, code = reader.integer(), reader.long(), reader.integer()
            if zxid > 0:
                client.zxid = zxid
            if xid == -1:
                yield "event", zxid, code, reader.integer(), reader.integer(), reader.text(), reader.left
                continue
            if xid == PING_XID and client.wire.reminders:
                client.wire.reminders -= 1
                continue
            kind = client.kinds[xid]
            yield "reply", xid, self._zxid(zxid), code, self._body(kind, reader), reader.left
            count -= 1
            if not count and kind != Op.CLOSE_SESSION and code not in (Code.AUTH_FAILED, Code.UNIMPLEMENTED):
                return  # after these the server ends the connection
        yield ("ended",)

    def _zxid(self, zxid: int) -> int:
        if self._epoch is None and zxid > 0:
            self._epoch = zxid // EPOCH
        return zxid - (self._epoch or 0) * EPOCH if zxid >= EPOCH else zxid

    def _body(self, kind: int, reader: RecordReader) -> Story:
        if not reader.left:
            return ()
        match kind:
            case Op.CREATE | Op.SYNC:
                return (reader.text(),)
            case Op.CREATE2 | Op.CREATE_CONTAINER | Op.CREATE_TTL:
                return reader.text(), self._stat(reader)
            case Op.EXISTS | Op.SET_DATA | Op.SET_ACL:
                return (self._stat(reader),)
            case Op.GET_DATA:
                return reader.buffer(), self._stat(reader)
            case Op.GET_ACL:
                return reader.acls(), self._stat(reader)
            case Op.GET_CHILDREN:
                return (sorted(reader.texts()),)
            case Op.GET_CHILDREN2:
                return sorted(reader.texts()), self._stat(reader)
            case Op.MULTI:
                return tuple(self._parts(reader))
            case _:
                raise Malformed(f"an answer to {kind} with {reader.left} bytes")

    def _parts(self, reader: RecordReader) -> Iterator[Story]:
        done = False
        while not done:
            kind, done, code = reader.integer(), reader.flag(), reader.integer()
            match kind:
                case Op.ERROR if not done:
                    yield kind, code, reader.integer()
                case Op.CREATE:
                    yield kind, code, reader.text()
                case Op.CREATE2:
                    yield kind, code, reader.text(), self._stat(reader)
                case Op.SET_DATA:
                    yield kind, code, self._stat(reader)
                case _:
                    yield kind, done, code

    def _stat(self, reader: RecordReader) -> Story:
        czxid, mzxid, ctime, mtime = reader.long(), reader.long(), reader.long(), reader.long()
        same = self._times.setdefault(czxid, ctime) == ctime and self._times.setdefault(mzxid, mtime) == mtime
        versions = reader.integer(), reader.integer(), reader.integer()
        owner = reader.long()
        sizes = reader.integer(), reader.integer()
        who = self._sessions.get(owner, owner)
        return self._zxid(czxid), self._zxid(mzxid), same, *versions, who, *sizes, self._zxid(reader.long())
