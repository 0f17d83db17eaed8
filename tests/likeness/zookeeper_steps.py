"""Random steps of ZooKeeper clients, made from a seed: what is sent does not depend on what was answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from holdfast_sim.servers.zookeeper import records
from holdfast_sim.servers.zookeeper.records import Acl, Op, acls, buffer, flag, integer, long, text, texts

PATHS = (
    *("/k", "/k/a", "/k/b", "/k/c", "/k/a/x", "/k/a/y", "/k/b/x") * 3,
    *(f"/k/{name}000000000{number}" for name in ("s", "b/s", "a/s") for number in range(4)),
    *("/", "/zookeeper", "/nowhere", "/nowhere/x", "bad", "/k/a/", "/k//a", "/k/./a", "/k/../k", "/ä", "/k/\x01"),
)
SEQUENCES = ("/k/s", "/k/a/s", "/k/b/s", "/k/b/", "/k/c/s")
OPEN = (Acl(31, "world", "anyone"),)
ACLS = (
    *(OPEN,) * 12,
    (Acl(1, "world", "anyone"),),
    (Acl(31, "auth", ""),),
    (Acl(31, "digest", "alice:6MzF2zHlpUYNfCCvRQfKkoVPH6I="), Acl(1, "world", "anyone")),
    (*OPEN, *OPEN),
    (Acl(31, "digest", "nobody"),),
    (Acl(31, "nonsense", "x"),),
    (),
)
USERS = (("digest", b"alice:secret"), ("digest", b"bob:secret"), ("digest", b"nobody"), ("nonsense", b"x"))
HOUR_MS = 3_600_000
ALONE = (Op.AUTH, Op.SET_ACL)
"""Credentials are answered at once, before what is under way (as is what is unknown); and until a new list is committed
a real server judges by the old one. With others in one go, either outcome is right."""
AUTH_XID, WATCHES_XID, PING_XID = -4, -8, -2


@dataclass(frozen=True)
class Send:
    """Requests that go out together, as (xid, kind, body)."""

    client: int
    requests: tuple[tuple[int, int, bytes], ...]


@dataclass(frozen=True)
class Connect:
    """`client` begins anew at a member: with a session of its own, or with that of `heir_of`, which may be itself.

    `seen` is added to the last zxid that the session has seen; None stands for zero.
    """

    client: int
    member: int
    timeout_ms: int
    heir_of: int | None = None
    seen: int | None = None
    wrong_password: bool = False


@dataclass(frozen=True)
class Drop:
    """The connection is closed by the client; its session lives on."""

    client: int


Step = Send | Connect | Drop


class Author:
    """Makes steps for some clients at some members."""

    def __init__(self, chance: Random, clients: int, members: int) -> None:
        self._chance = chance
        self._clients = clients
        self._members = members
        self._xid = 0

    def first(self) -> list[Step]:
        connects: list[Step] = [Connect(each, each % self._members, 60_000) for each in range(self._clients)]
        return [*connects, Send(0, tuple(self._create(path, 0) for path in ("/k", "/k/a", "/k/b")))]

    def next(self) -> Step:
        chance = self._chance
        client = chance.randrange(self._clients)
        odds = chance.random()
        if odds < 0.03:
            return Drop(client)
        if odds < 0.12:
            heir_of = chance.choice((None, client, chance.randrange(self._clients)))
            return Connect(
                client,
                chance.randrange(self._members),
                chance.choice((30_000, 60_000, 10**9)) if heir_of is None else 60_000,
                heir_of,
                chance.choice((None, 0, 0, 1000)),
                heir_of is not None and chance.random() < 0.1,
            )
        requests = [self.request() for _ in range(chance.choice((1, 1, 1, 2, 5)))]
        for request in requests:
            if request[1] in ALONE:
                return Send(client, (request,))
        if odds > 0.98:
            requests.append(self._numbered(Op.CLOSE_SESSION, b""))
        elif odds > 0.975:
            requests = [self._numbered(77, b"")]  # no such operation
        elif odds > 0.97:
            requests.append(self._numbered(Op.CREATE2, b"\x00\x00"))
        return Send(client, tuple(requests))

    def _numbered(self, kind: int, body: bytes) -> tuple[int, int, bytes]:
        self._xid += 1
        return self._xid, kind, body

    def request(self) -> tuple[int, int, bytes]:
        chance = self._chance
        kinds: tuple[tuple[int, Callable[[], tuple[int, int, bytes]]], ...] = (
            (30, self._any_create),
            (16, lambda: self._numbered(Op.DELETE, self._delete_body())),
            (10, lambda: self._numbered(Op.SET_DATA, self._write_body())),
            (6, lambda: self._numbered(Op.EXISTS, self._read_body())),
            (8, lambda: self._numbered(Op.GET_DATA, self._read_body())),
            (4, lambda: self._numbered(Op.GET_CHILDREN, self._read_body())),
            (10, lambda: self._numbered(Op.GET_CHILDREN2, self._read_body())),
            (12, self._multi),
            (5, lambda: (WATCHES_XID, Op.SET_WATCHES, self._watches_body())),
            (5, lambda: self._numbered(Op.SET_WATCHES, self._watches_body())),
            (3, lambda: self._numbered(Op.REMOVE_WATCHES, text(self._path()) + integer(chance.choice((1, 2, 3, 9))))),
            (3, lambda: self._numbered(Op.SYNC, text(self._path()))),
            (3, lambda: (PING_XID, Op.PING, b"")),
            (3, self._log_in),
            (2, lambda: self._numbered(Op.GET_ACL, text(self._path()))),
            (2, lambda: self._numbered(Op.SET_ACL, text(self._path()) + acls(self._acl()) + integer(self._version()))),
        )
        [make] = chance.choices([make for _, make in kinds], [weight for weight, _ in kinds])
        return make()

    def _path(self) -> str:
        return self._chance.choice(PATHS)

    def _acl(self) -> tuple[Acl, ...]:
        return self._chance.choice(ACLS)

    def _version(self) -> int:
        return self._chance.choice((-1, -1, -1, 0, 1, 2))

    def _create(self, path: str, flags: int) -> tuple[int, int, bytes]:
        return self._numbered(Op.CREATE2, text(path) + buffer(b"") + acls(OPEN) + integer(flags))

    def _any_create(self) -> tuple[int, int, bytes]:
        kind = self._chance.choice((Op.CREATE, Op.CREATE2, Op.CREATE2, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL))
        return self._numbered(kind, self._create_body(kind))

    def _create_body(self, kind: int) -> bytes:
        chance = self._chance
        flags = chance.choice((0, 0, 1, 1, 2, 3, 3, 3, 7))
        if kind == Op.CREATE_CONTAINER:
            flags = 4
        elif kind == Op.CREATE_TTL:
            flags = chance.choice((5, 5, 6))  # without one of these, a ttl of -1 kills a real server
        path = chance.choice(SEQUENCES) if flags in (2, 3, 6) and chance.random() < 0.9 else self._path()
        data = chance.choice((b"", b"some data", None))
        body = text(path) + buffer(data) + acls(self._acl()) + integer(flags)
        return body + long(chance.choice((HOUR_MS, HOUR_MS, 0, -1))) if kind == Op.CREATE_TTL else body

    def _delete_body(self) -> bytes:
        return text(self._path()) + integer(self._version())

    def _write_body(self) -> bytes:
        return text(self._path()) + buffer(self._chance.choice((b"", b"other", None))) + integer(self._version())

    def _read_body(self) -> bytes:
        return text(self._path()) + flag(self._chance.random() < 0.5)

    def _watches_body(self) -> bytes:
        chance = self._chance
        seen = chance.choice(((1 << 63) - 1, (1 << 63) - 1, 0))
        lists = [texts(self._path() for _ in range(chance.choice((0, 0, 1, 3)))) for _ in range(3)]
        return long(seen) + b"".join(lists)

    def _log_in(self) -> tuple[int, int, bytes]:
        scheme, secret = self._chance.choice(USERS[: 3 if self._chance.random() < 0.8 else 4])
        return AUTH_XID, Op.AUTH, integer(0) + text(scheme) + buffer(secret)

    def _multi(self) -> tuple[int, int, bytes]:
        chance = self._chance
        body = b""
        for _ in range(chance.choice((0, 1, 2, 3, 4))):
            kind = chance.choice(
                (Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.DELETE, Op.DELETE, Op.SET_DATA, Op.CHECK)
            )
            if kind in (Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER):
                part = self._create_body(kind)
            else:
                part = self._write_body() if kind == Op.SET_DATA else self._delete_body()
            body += integer(kind) + flag(False) + integer(-1) + part
        return self._numbered(Op.MULTI, body + integer(-1) + flag(True) + integer(-1))


def frame_of(request: tuple[int, int, bytes]) -> bytes:
    xid, kind, body = request
    return records.frame(integer(xid) + integer(kind) + body)
