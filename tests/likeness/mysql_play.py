"""The same packets to MariaDB and to its model, on several sessions each; replies compared packet by packet.

What differs by nature is levelled, and nothing else:
1. The salt of a handshake, and the name of a new cluster, are chance.
2. In OK and EOF, the two status bits about the use of an index, and how many warnings there are (a SELECT INTO that
   finds nothing is one); in OK, the words "Rows matched …"; in the OK that ends a CALL, how many rows its statements
   have changed in all. No client of ours reads any of these.
3. The clock: both are told what time it is, before every statement. While a statement waits, time stands still.
4. The model gives its sessions the numbers that the real server gave. Numbers of prepared statements differ: a session
   of MariaDB may count on from where a session before it ended.
5. The rows of a survey of session locks, in any order: those who began to wait in the same moment have none.
6. Where a row of a survey tells the note of a name only (it has no state), nothing else but the name is compared: a
   seat keeps what its last claim has left there.
"""

from __future__ import annotations

import hashlib
import re
import select
import socket
from itertools import zip_longest
from random import Random

from holdfast.backends.mysql.packets import number_at, row_of
from holdfast_sim.servers.mysql.packets import framed
from holdfast_sim.servers.mysql.server import MariaDBServer
from holdfast_sim.servers.mysql.session import MariaDBSession
from tests.likeness.play import Recorder, in_pieces
from tests.likeness.virtual import VirtualTime

ANSWER_S = 20.0
FLAGS = 0x1 | 0x2 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x20000 | 0x40000 | 0x80000
INDEX_BITS = 0x30
LISTEN_S = 0.03
SURVEYED_COUNT, STATE_AT = 16, 13


class Difference(AssertionError):
    """The model and the server answered differently."""


def split(data: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """Whole packets (number, payload), and the rest."""
    packets = []
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:3], "little")):
        packets.append((data[3], data[4:end]))
        data = data[end:]
    return packets, data


class End:
    """Finds the end of a reply in its packets."""

    def __init__(self, prepare: bool) -> None:
        self._prepare = prepare

    def reached(self, packets: list[tuple[int, bytes]]) -> bool:
        if self._prepare and packets and packets[0][1][:1] == b"\0":
            values = int.from_bytes(packets[0][1][7:9], "little")
            return len(packets) == 1 + values + (values > 0)
        at = 0
        while at < len(packets):
            first = packets[at][1]
            if first[0] == 0xFF:
                return True
            if first[0] == 0:
                more = first[_status(first)] & 0x08
                at += 1
            else:
                at += 1 + number_at(first, 0)[0]  # columns, then their EOF
                at += 1
                while at < len(packets) and not _is_end(packets[at][1]):
                    if packets[at][1][0] == 0xFF:
                        return True
                    at += 1
                if at >= len(packets):
                    return False
                more = packets[at][1][3] & 0x08
                at += 1
            if not more:
                return True
        return False


def _status(packet: bytes) -> int:
    return number_at(packet, number_at(packet, 1)[1])[1]


def _is_end(packet: bytes) -> bool:
    return packet[0] == 0xFE and len(packet) < 9


def levelled(packets: list[tuple[int, bytes]], call: bool) -> list[tuple[int, bytes]]:
    """Rules 1 and 2."""
    plain, rows = [], not call and bool(packets) and packets[0][1][:1] not in (b"\0", b"\xff")
    for number, packet in packets:
        if packet[:1] == b"\0" and len(packet) >= 7 and len(packet) != 12 and not rows:
            at = _status(packet)
            made = packet[number_at(packet, 1)[1] : at]
            affected = b"" if call else packet[1 : number_at(packet, 1)[1]]
            packet = b"\0" + affected + b"|" + made + b"|" + _masked(packet[at : at + 2])
        elif _is_end(packet):
            packet = packet[:1] + _masked(packet[3:5])
        packet = re.sub(rb"\x07cluster\x0c[0-9a-f]{12}", b"cluster", packet)
        plain.append((number, packet))
    return plain


def in_any_order(packets: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Rule 5."""
    return list(enumerate(sorted(packet for _, packet in packets), packets[0][0]))


def without_leftovers(packets: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Rule 6."""
    head = SURVEYED_COUNT + 2
    rows = [row_of(packet) for _, packet in packets[head:-1]]
    kept = [repr([row[0], row[-1]] if row[STATE_AT] is None else row).encode() for row in rows]
    return [*packets[:head], *enumerate(kept), *packets[-1:]]


def _masked(status: bytes) -> bytes:
    return (int.from_bytes(status, "little") & ~INDEX_BITS).to_bytes(2, "little")


def without_salt(packet: bytes) -> bytes:
    at = packet.index(b"\0") + 5
    return packet[:at] + packet[at + 8 : at + 27] + packet[at + 39 :]


def salt_of(packet: bytes) -> bytes:
    at = packet.index(b"\0") + 5
    return packet[at : at + 8] + packet[at + 27 : at + 39]


def scramble(password: bytes, salt: bytes) -> bytes:
    once = hashlib.sha1(password).digest()
    mixed = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mixed, strict=True)) if password else b""


class Pair:
    """One session at the real server, and one at the model."""

    def __init__(self, port: int, model: MariaDBServer, chance: Random) -> None:
        self._chance = chance
        self._host = model.host
        assert isinstance(self._host, VirtualTime)
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self._unread = b""
        [hello] = self._real(lambda packets: bool(packets))
        self.number = int.from_bytes(hello[1][hello[1].index(b"\0") + 1 :][:4], "little")
        model._last_number = self.number - 1
        self.output = Recorder()
        session = model.accept(self.output)
        assert isinstance(session, MariaDBSession)
        self.session = session
        [other] = split(self._modelled())[0]
        compare([(hello[0], without_salt(hello[1]))], [(other[0], without_salt(other[1]))], b"the handshake")
        self._salts = salt_of(hello[1]), salt_of(other[1])
        self.waiting: bytes | None = None
        self._numbers: dict[bytes, tuple[bytes, bytes]] = {}

    # Both sides

    def log_in(self, user: bytes, password: bytes, database: bytes, plugin: bytes = b"mysql_native_password") -> None:
        head = FLAGS.to_bytes(4, "little") + b"\xff\xff\xff\0\x2d" + bytes(23) + user + b"\0"
        answers = [scramble(password, salt) for salt in self._salts]
        tail = database + b"\0" + plugin + b"\0"
        real, model = ([head + bytes([len(answer)]) + answer + tail] for answer in answers)
        said, other = self._exchange(real[0], model[0], 1, lambda packets: bool(packets))
        if said[0][1][:1] == b"\xfe":
            salts = said[0][1][23:43], other[0][1][23:43]
            compare([(said[0][0], said[0][1][:23])], [(other[0][0], other[0][1][:23])], b"the switch")
            pair = (scramble(password, salts[0]), scramble(password, salts[1]))
            said, other = self._exchange(*pair, 3, lambda packets: bool(packets))
        compare(levelled(said, False), levelled(other, False), b"the log-in")

    def say(self, body: bytes, now: int | None = None, model: bytes | None = None) -> list[tuple[int, bytes]]:
        """One command, and its reply; `model` if it is not the same for the model."""
        if now is not None:
            self.set_clock(now)
        said, other = self._exchange(body, model or body, 0, End(False).reached)
        self._compare(said, other, body)
        return said

    def prepare(self, text: bytes) -> None:
        said, other = self._exchange(b"\x16" + text, b"\x16" + text, 0, End(True).reached)
        self._numbers[text] = said[0][1][1:5], other[0][1][1:5]
        real, model = (
            [(packets[0][0], packets[0][1][:1] + packets[0][1][5:]), *packets[1:]] for packets in (said, other)
        )
        compare(real, model, text)

    def execute(self, text: bytes, values: bytes, now: int) -> list[tuple[int, bytes]]:
        real, model = (b"\x17" + number + values for number in self._numbers[text])
        return self.say(real, now, model)

    def say_out_of_order(self) -> None:
        """A command that does not begin at packet number 0."""
        said, other = self._exchange(b"\x03DO 0", b"\x03DO 0", 5, End(False).reached)
        compare(said, other, b"out of order")

    def set_clock(self, now: int) -> None:
        self.socket.sendall(framed([b"\x03SET timestamp = %d.%06d" % divmod(now, 1_000_000)], 0))
        self._real(End(False).reached)

    def start(self, body: bytes, now: int) -> None:
        """A command whose reply may be long in coming."""
        self.set_clock(now)
        self.waiting = body
        self.socket.sendall(framed([body], 0))
        self._feed(framed([body], 0))

    def settle(self) -> bool:
        """If the model has answered what it was asked, so does the server; else it has not, either."""
        assert isinstance(self._host, VirtualTime)
        self._host.advance()
        assert self.waiting is not None
        if not self.output.data and not self.output.ended:
            if select.select([self.socket], [], [], LISTEN_S)[0]:
                raise Difference(f"only the server answered {self.waiting!r}: {self.socket.recv(4096)!r}")
            return False
        body, self.waiting = self.waiting, None
        self._compare(self._real(End(False).reached), split(self._modelled())[0], body)
        return True

    def _compare(self, said: list[tuple[int, bytes]], other: list[tuple[int, bytes]], body: bytes) -> None:
        call = body[1:5] == b"CALL"
        plain = levelled(said, call), levelled(other, call)
        if b"holdfast_session_waiter w" in body:
            plain = in_any_order(plain[0]), in_any_order(plain[1])
        if b"AS state" in body and said[0][1] == bytes([SURVEYED_COUNT]):
            plain = without_leftovers(plain[0]), without_leftovers(plain[1])
        compare(*plain, body)

    def _exchange(self, real: bytes, model: bytes, number: int, whole: object) -> tuple[list[tuple[int, bytes]], ...]:
        assert callable(whole)
        self.socket.sendall(framed([real], number))
        self._feed(framed([model], number))
        assert isinstance(self._host, VirtualTime)
        self._host.advance()
        return self._real(whole), split(self._modelled())[0]

    def _feed(self, data: bytes) -> None:
        for piece in in_pieces(data, self._chance):
            self.session.receive(piece)

    def _modelled(self) -> bytes:
        data = bytes(self.output.data)
        self.output.data.clear()
        return data

    def _real(self, whole: object) -> list[tuple[int, bytes]]:
        assert callable(whole)
        while True:
            packets, _ = split(self._unread)
            if whole(packets):
                self._unread = b""
                return packets
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                return packets
            self._unread += more

    def close(self) -> None:
        """Both see the end of the connection."""
        self.socket.close()
        self.session.closed()

    def ended(self) -> bool:
        """Whether the server has ended it; both say the same."""
        self.socket.settimeout(ANSWER_S if self.output.ended else LISTEN_S)
        try:
            real = self.socket.recv(1) == b""
        except TimeoutError:
            real = False
        except ConnectionResetError:
            real = True
        self.socket.settimeout(ANSWER_S)
        if real != self.output.ended:
            raise Difference(f"ended: the server {real}, the model {self.output.ended}")
        return real


def compare(said: list[tuple[int, bytes]], other: list[tuple[int, bytes]], what: bytes) -> None:
    if said != other:
        pairs = zip_longest(said, other)
        lines = [f"  server {real!r}\n  model  {model!r}" for real, model in pairs if real != model]
        raise Difference(f"{what[:300]!r}\n" + "\n".join(lines))
