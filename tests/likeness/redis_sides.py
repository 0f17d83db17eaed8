"""A simulated and a real Redis server side by side: what each answers, and what of it counts.

What depends on time or chance is normalised, and nothing else:
1. A number within two days of now (a time, a token, a mark) becomes T0, T1, … in the order in which a side first says
   it, so that it must be the same number wherever it was the same before. Ballots that the test chose stay.
2. The id of the server's run becomes RUN, other 40 hex digits (hashes) R0, R1, … likewise, a session's id #.
3. Any other number from 100,000 on (spans in ms and µs) is rounded to two digits; for how long a key is kept, to one.
4. An error in a program is cut where it begins to say in which line; one of Lua itself is only known as such.
5. How many stand before a waiter is a bound, which depends on when those who are gone were dropped: it does not count.
6. What has no order (settings, scanned keys) is sorted; of INFO the fields count that clients read.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from holdfast_sim.servers.redis.server import RedisServer as Model
from tests.likeness.play import RealTime, Recorder, in_pieces
from tests.support.redis_server import RedisServer

Tree: TypeAlias = tuple[str, Any]
"""A reply as it stood there: its type byte, and what it holds."""
ANSWER_TIMEOUT_S = 5.0
TWO_DAYS_US = 2 * 86_400_000_000
SMALL = 100_000
FIELDS = ("redis_version", "redis_mode", "role", "connected_slaves")


def parse(data: bytes) -> tuple[list[Tree], bytes]:
    """All whole replies, and the rest."""
    trees: list[Tree] = []
    at = 0
    while (found := _parse_one(data, at)) is not None:
        tree, at = found
        trees.append(tree)
    return trees, data[at:]


def _parse_one(data: bytes, at: int) -> tuple[Tree, int] | None:
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, head, at = chr(data[at]), data[at + 1 : end], end + 2
    if kind in "$=" and head != b"-1":
        size = int(head)
        return ((kind, data[at : at + size]), at + size + 2) if len(data) >= at + size + 2 else None
    if kind in "*%>~" and head != b"-1":
        items = []
        for _ in range(int(head) * (2 if kind == "%" else 1)):
            if (found := _parse_one(data, at)) is None:
                return None
            items.append(found[0])
            at = found[1]
        return (kind, items), at
    if kind in "$*" and head == b"-1":
        return ("nothing", kind.encode()), at
    return (kind, int(head) if kind == ":" else head), at


@dataclass
class Side:
    """What one server has said in this play, and what is known from it."""

    symbols: dict[object, str] = field(default_factory=dict)
    ballots: frozenset[int] = frozenset()
    tokens: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """Of records, as they were last told."""
    memory: bytes = b""
    run_id: str = ""
    _rest: dict[int, bytes] = field(default_factory=dict)

    def learn(self, data: bytes, client: int) -> list[Tree]:
        trees, self._rest[client] = parse(self._rest.get(client, b"") + data)
        for kind, items in trees:
            if kind in ">*" and len(items) == 3 and items[0] == ("$", b"message"):
                words: list[bytes] = items[2][1].split(b" ")
                self.tokens[words[0].decode()] = int(words[1]) if len(words) > 1 else 0
        return trees

    def normal(self, tree: Tree, how: str = "") -> Any:
        kind, value = tree
        if how == "info":
            return [line for line in value.decode().split("\r\n") if line.partition(":")[0] in FIELDS]
        if how == "json" and kind == "$" and value[:1] == b"[":
            return self._of_json(value)
        if how == "sorted" and kind in "*%" and value:
            pairs = kind == "%" or (value[0][0] == "$" and len(value) % 2 == 0 and value[0][1] != b"0")
            if pairs:
                return kind, sorted(
                    (self.normal(a), self.normal(b)) for a, b in zip(value[::2], value[1::2], strict=True)
                )
            return kind, self.normal(value[0]), sorted(map(self.normal, value[1][1]))
        if kind in "*%>":
            items = [self.normal(item) for item in value]
            for number, item in enumerate(value[:-1]):
                if item == ("$", b"id"):
                    items[number + 1] = "#"
            if [each[0] for each in value] == [":", ":", ":"]:
                items[1] = "ahead"  # what a waiter is told
            return kind, items
        if kind == ":":
            if how == "span" and value > SMALL:
                return kind, float(f"{value:.0e}")
            return kind, "#" if how == "number" else self._number(value)
        if kind == "-":
            value = re.sub(rb"( script: |(?<=ERR user_script):).*", b"", value)
        return kind, self._text(value) if isinstance(value, bytes) else value

    def _number(self, number: int) -> object:
        if number in self.ballots:
            return number
        if abs(number - time.time() * 1e6) < TWO_DAYS_US:
            return self.symbols.setdefault(number, f"T{len(self.symbols)}")
        return float(f"{number:.1e}") if abs(number) >= SMALL else number

    def _text(self, text: bytes) -> str:
        said = text.decode("utf-8", "backslashreplace").replace(self.run_id or "no id", " RUN ")
        if (held := re.fullmatch(r"H(\d{20})(\d+) (\d+)", said)) is not None:
            return f"H{self._number(int(held[1]))} {self._number(int(held[2]))} {held[3]}"
        said = re.sub(
            r"(?<![0-9a-f])[0-9a-f]{40}", lambda found: self.symbols.setdefault(found[0], f"R{len(self.symbols)}"), said
        )
        return re.sub(r"(?<!\d)\d{16,20}", lambda found: str(self._number(int(found[0]))), said)

    def _of_json(self, value: bytes) -> object:
        said = json.loads(value)
        compact = json.dumps(said, separators=(",", ":"), ensure_ascii=False).replace("/", "\\/")
        holds = sorted(tuple(said[at : at + 4]) for at in range(3, len(said), 4))
        shown = [
            (key, self._text(hold.encode()), self._number(left), self._text(mark.encode()))
            for key, hold, left, mark in holds
        ]
        waiting = said[2] and [self._text(each.encode()) for each in said[2]]
        return compact.encode() == value, said[0], self._text(said[1].encode()), waiting, shown


@dataclass(frozen=True)
class Step:
    """Requests of one client, whole, as bytes for each side. `how`: see `Side.normal`, for each reply."""

    client: int
    what: str
    frame: Callable[[Side], bytes]
    how: tuple[str, ...] = ("",)
    learn: Callable[[Side, Tree], None] = lambda side, tree: None


class ModelSide(Side):
    """`servers`: the one that each client talks to."""

    def __init__(self, host: RealTime, servers: Sequence[Model], ballots: Iterable[int] = ()) -> None:
        super().__init__(ballots=frozenset(ballots))
        self.host = host
        self.run_id = servers[0].run_id
        self._recorders = [Recorder() for _ in servers]
        self._sessions = [server.accept(recorder) for server, recorder in zip(servers, self._recorders, strict=True)]

    def send(self, client: int, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._sessions[client].receive(piece)
        self.host.run_soon()

    def heard(self) -> list[list[Tree]]:
        """What each client was told since the last time."""
        heard = []
        for client, recorder in enumerate(self._recorders):
            heard.append(self.learn(bytes(recorder.data), client))
            recorder.data.clear()
            if recorder.ended:
                heard[-1].append(("end", b""))
        return heard


class RealSide(Side):
    """`servers`: the one that each client talks to."""

    def __init__(self, servers: Sequence[RedisServer], ballots: Iterable[int] = ()) -> None:
        super().__init__(ballots=frozenset(ballots))
        self._links = [socket.create_connection(("127.0.0.1", server.port), ANSWER_TIMEOUT_S) for server in servers]
        self.run_id = servers[0].raw("INFO", "server").decode().partition("run_id:")[2][:40]
        self._ended: set[int] = set()
        for link in self._links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, client: int, pieces: list[bytes]) -> None:
        for piece in pieces:
            try:
                self._links[client].sendall(piece)
            except OSError:
                return  # it has ended: that is seen when it is read

    def heard(self, expected: list[list[Tree]]) -> list[list[Tree]]:
        """As many replies for each client as the model had, or what came in time."""
        heard: list[list[Tree]] = []
        for client, replies in enumerate(expected):
            got: list[Tree] = []
            end = time.monotonic() + ANSWER_TIMEOUT_S
            while len(got) < len(replies) and time.monotonic() < end:
                got += self._read(client)
            heard.append(got)
        return heard

    def _read(self, client: int) -> list[Tree]:
        if client in self._ended:
            return [("end", b"")]
        try:
            data = self._links[client].recv(1 << 16)
        except TimeoutError:
            return []
        except ConnectionError:
            data = b""
        if not data:
            self._ended.add(client)
            return [("end", b"")]
        return self.learn(data, client)

    def close(self) -> None:
        for link in self._links:
            link.close()


def first_difference(model: ModelSide, real: RealSide, steps: Iterable[Step], chance: Random) -> str | None:
    """What the two say differently, and what came before; None if nothing."""
    said: list[str] = []
    for step in steps:
        seed = chance.random()
        model.send(step.client, list(in_pieces(step.frame(model), Random(seed))))
        by_model = model.heard()
        real.send(step.client, list(in_pieces(step.frame(real), Random(seed))))
        by_real = real.heard(by_model)
        said.append(f"{step.client}: {step.what}")
        for client, (ours, theirs) in enumerate(zip(by_model, by_real, strict=True)):
            how = step.how if client == step.client else ()
            one = [model.normal(tree, how[n] if n < len(how) else "") for n, tree in enumerate(ours)]
            other = [real.normal(tree, how[n] if n < len(how) else "") for n, tree in enumerate(theirs)]
            if one != other:
                told = "\n".join(said[-12:])
                return f"client {client}\n{told}\nmodel {one}\nreal  {other}"
        if by_model[step.client] and by_real[step.client]:
            step.learn(model, by_model[step.client][-1])
            step.learn(real, by_real[step.client][-1])
        if any(reply == ("end", b"") for replies in by_model for reply in replies):
            return None  # a session has been ended: the play is over
    return None
