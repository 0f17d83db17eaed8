"""The nodes and sessions that are committed on one server, and what a transaction does to them.

1. A transaction has been judged by the leader before it comes here: it is carried out, the same on every server.
2. A refusal is a transaction, too (`Failed`): it has a zxid, and changes nothing.
3. `creates` counts the children that were ever made. It numbers sequential children; the stat's cversion is computed
   from it, as 2 × creates − children.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from . import access
from .records import Acl, Code, Op
from .watches import Watches

CONTAINER_CODE = -(1 << 63)
_TTL_MARK, _TTL_LIMIT = -(1 << 56), 1 << 40
_STAT = struct.Struct("!qqqqiiiqiiq")
SPECIAL = frozenset({"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"})


def ttl_owner(ttl_ms: int) -> int:
    """What stands for the owner of a node with a ttl."""
    if not 0 < ttl_ms < _TTL_LIMIT:
        raise ValueError(ttl_ms)
    return _TTL_MARK | ttl_ms


def ttl_of(owner: int) -> int:
    """The ttl of such a node in milliseconds; 0 of any other."""
    return owner & (_TTL_LIMIT - 1) if owner >> 56 == -1 else 0


def is_session(owner: int) -> bool:
    return owner not in (0, CONTAINER_CODE) and not ttl_of(owner)


def parent_of(path: str) -> str:
    """The root's path is written as an empty one here."""
    return path[: path.rindex("/")]


@dataclass(slots=True)
class Node:
    data: bytes | None
    acl: Sequence[Acl]
    owner: int = 0
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    version: int = 0
    creates: int = 0
    aversion: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> bytes:
        count = len(self.children)
        return _STAT.pack(
            self.czxid, self.mzxid, self.ctime_ms, self.mtime_ms, self.version, 2 * self.creates - count, self.aversion,
            self.owner if is_session(self.owner) else 0, len(self.data or b""), count, self.pzxid,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes | None
    acl: Sequence[Acl]
    owner: int
    creates: int
    """Of its parent, with this one."""


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class SetAcl:
    path: str
    acl: Sequence[Acl]
    aversion: int


@dataclass(frozen=True, slots=True)
class Check:
    path: str


@dataclass(frozen=True, slots=True)
class OpenSession:
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failed:
    code: int


@dataclass(frozen=True, slots=True)
class Multi:
    """`parts` with the operation number that each is answered with."""

    parts: Sequence[tuple[int, Txn]]


Txn = Create | Delete | SetData | SetAcl | Check | OpenSession | CloseSession | Failed | Multi


@dataclass(frozen=True, slots=True)
class Result:
    """What a transaction has come to; `stat` as it was then."""

    code: int = Code.OK
    path: str = ""
    stat: bytes = b""
    parts: Sequence[tuple[int, Result]] = ()


class Tree:
    """All that one server has committed."""

    def __init__(self) -> None:
        self.nodes = {"": Node(b"", access.OPEN, children={"zookeeper": None})}
        self.nodes["/zookeeper"] = Node(b"", access.OPEN, children={"config": None, "quota": None})
        self.nodes["/zookeeper/quota"] = Node(b"", access.OPEN)
        self.nodes["/zookeeper/config"] = Node(b"", (Acl(access.READ, "world", "anyone"),), aversion=-1)
        self.sessions: dict[int, int] = {}
        """Their timeouts, in milliseconds."""
        self.ephemerals: dict[int, dict[str, None]] = {}
        self.swept: dict[str, None] = {}
        """Containers and nodes with a ttl: what the leader looks through now and then."""
        self.zxid = 0
        """Of the last transaction; a new leader counts its epoch's beginning as one."""
        self.watches = Watches()

    def copy(self) -> Tree:
        """With nobody who watches."""
        found = Tree()
        found.nodes = {path: replace(node, children=dict(node.children)) for path, node in self.nodes.items()}
        found.sessions, found.swept, found.zxid = dict(self.sessions), dict(self.swept), self.zxid
        found.ephemerals = {session: dict(paths) for session, paths in self.ephemerals.items()}
        return found

    def node(self, path: str) -> Node | None:
        return self.nodes.get("" if path == "/" else path)

    def apply(self, zxid: int, time_ms: int, session: int, txn: Txn) -> Result:
        result = self._apply(zxid, time_ms, session, txn)
        self.zxid = zxid
        return result

    def _apply(self, zxid: int, time_ms: int, session: int, txn: Txn) -> Result:
        match txn:
            case Create():
                return self._create(zxid, time_ms, txn)
            case Delete():
                self._delete(zxid, txn.path)
                return Result(path=txn.path)
            case SetData():
                node = self.nodes["" if txn.path == "/" else txn.path]
                node.data, node.version, node.mzxid, node.mtime_ms = txn.data, txn.version, zxid, time_ms
                self.watches.data_changed(txn.path)
                return Result(path=txn.path, stat=node.stat())
            case SetAcl():
                node = self.nodes["" if txn.path == "/" else txn.path]
                node.acl, node.aversion = txn.acl, txn.aversion
                return Result(path=txn.path, stat=node.stat())
            case OpenSession():
                self.sessions[session] = txn.timeout_ms
            case CloseSession():
                for path in txn.paths:
                    self._delete(zxid, path)
                self.ephemerals.pop(session, None)
                self.sessions.pop(session, None)
            case Failed():
                return Result(txn.code)
            case Multi():
                return self._multi(zxid, time_ms, session, txn)
            case Check():
                pass
        return Result()

    def _create(self, zxid: int, time_ms: int, txn: Create) -> Result:
        path, above = txn.path, parent_of(txn.path)
        parent = self.nodes[above]
        parent.creates, parent.pzxid = txn.creates, zxid
        parent.children[path[len(above) + 1 :]] = None
        node = Node(txn.data, txn.acl, txn.owner, zxid, zxid, zxid, time_ms, time_ms)
        self.nodes[path] = node
        if is_session(txn.owner):
            self.ephemerals.setdefault(txn.owner, {})[path] = None
        elif txn.owner:
            self.swept[path] = None
        self.watches.created(path, above or "/")
        return Result(path=path, stat=node.stat())

    def _delete(self, zxid: int, path: str) -> None:
        above = parent_of(path)
        parent = self.nodes[above]
        del parent.children[path[len(above) + 1 :]]
        parent.pzxid = zxid
        node = self.nodes.pop(path)
        self.swept.pop(path, None)
        if (owned := self.ephemerals.get(node.owner)) is not None:
            owned.pop(path, None)
        self.watches.deleted(path, above or "/")

    def _multi(self, zxid: int, time_ms: int, session: int, txn: Multi) -> Result:
        """All, or none: then those before the one that failed say OK, and those after it that they were not tried."""
        parts: list[tuple[int, Result]] = []
        if any(isinstance(part, Failed) for _, part in txn.parts):
            parts = [(Op.ERROR, Result(part.code if isinstance(part, Failed) else Code.OK)) for _, part in txn.parts]
        else:
            parts = [(kind, self._apply(zxid, time_ms, session, part)) for kind, part in txn.parts]
        return Result(parts=parts)
