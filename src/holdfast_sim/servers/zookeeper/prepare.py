"""The leader makes a transaction of a request, or of its refusal.

1. A request is judged as if all that was proposed before it were done. What is proposed and not yet committed is kept
   as drafts of nodes, over the tree.
2. Of a `MULTI` each part is judged as if the parts before it were done. After the first refusal none is tried.
3. The order of the checks is ZooKeeper's: of two that fail, the first one names the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import access
from .records import CREATES, Acl, Code, Malformed, Op, RecordReader, Refused
from .sessions import Sessions
from .tree import (
    CONTAINER_CODE,
    SPECIAL,
    Check,
    CloseSession,
    Create,
    Delete,
    Failed,
    Multi,
    OpenSession,
    SetAcl,
    SetData,
    Tree,
    Txn,
    is_session,
    parent_of,
    ttl_owner,
)  # fmt: skip

if TYPE_CHECKING:
    from .connection import Connection

_EPHEMERAL, _SEQUENTIAL, _TTL = {1, 3}, {2, 3, 6}, {5, 6}
_LAST_FLAG = 6


@dataclass(slots=True, eq=False)
class Request:
    """`owner` stands for the server that it came by, for as long as that one follows this leader."""

    kind: int
    session: int
    xid: int = 0
    body: bytes = b""
    identities: Sequence[access.Identity] = ()
    owner: object = None
    connection: Connection | None = None
    refusal: int = 0
    """Why the leader does not let one of its own clients read."""
    waits_for: int = 0
    """The zxid that a read at the leader waits for."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a node will be."""

    zxid: int
    acl: Sequence[Acl]
    owner: int = 0
    version: int = 0
    creates: int = 0
    aversion: int = 0
    children: int = 0
    deleted: bool = False


class Preparation:
    """Over the tree of the leader."""

    def __init__(self, tree: Tree, sessions: Sessions) -> None:
        self._tree = tree
        self._sessions = sessions
        self._drafts: dict[str, Draft] = {}
        self._zxid = 0
        self._part: dict[str, Draft] = {}
        """Drafts of the request in hand."""

    def prepare(self, request: Request, zxid: int, now_ms: int) -> Txn:
        self._zxid, self._part = zxid, {}
        try:
            txn = self._prepare(request, now_ms)
        except Refused as refusal:
            return Failed(refusal.code)
        except Malformed:
            return Failed(Code.MARSHALLING)
        self._drafts.update(self._part)
        return txn

    def applied(self, zxid: int) -> None:
        """The tree tells now what these drafts told."""
        for path in [path for path, draft in self._drafts.items() if draft.zxid <= zxid]:
            del self._drafts[path]

    def _prepare(self, request: Request, now_ms: int) -> Txn:
        reader = RecordReader(request.body)
        match request.kind:
            case Op.CREATE_SESSION:
                timeout_ms = reader.integer()
                self._sessions.track(request.session, timeout_ms, now_ms)
                self._sessions.own(request.session, request.owner)
                return OpenSession(timeout_ms)
            case Op.CLOSE_SESSION:
                return self._close(request.session)
            case Op.MULTI:
                return self._multi(request, reader)
            case _:
                return self._one(request.kind, request, reader)

    def _one(self, kind: int, request: Request, reader: RecordReader) -> Txn:
        if kind == Op.DELETE_CONTAINER:
            return self._delete(reader.text(), -1, None)
        if kind in CREATES:
            return self._create(kind, request, reader)
        self._sessions.check(request.session, request.owner)
        path = reader.text()
        match kind:
            case Op.DELETE:
                return self._delete(path, reader.integer(), request.identities)
            case Op.SET_DATA:
                data, version = reader.buffer(), reader.integer()
                _validate(path)
                node = self._node(path)
                access.check(node.acl, access.WRITE, request.identities)
                after = _next(node.version, version)
                self._put(path, replace(node, zxid=self._zxid, version=after))
                return SetData(path, data, after)
            case Op.SET_ACL:
                acl, version = reader.acls(), reader.integer()
                _validate(path)
                complete = access.complete(acl, request.identities)
                node = self._node(path)
                access.check(node.acl, access.ADMIN, request.identities)
                after = _next(node.aversion, version)
                self._put(
                    path, replace(node, zxid=self._zxid, aversion=after)
                )  # until it is committed, the old list counts
                return SetAcl(path, complete, after)
            case Op.CHECK:
                version = reader.integer()
                _validate(path)
                node = self._node(path)
                access.check(node.acl, access.READ, request.identities)
                _next(node.version, version)
                return Check(path)
            case _:
                raise Malformed(f"operation {kind}")

    def _create(self, kind: int, request: Request, reader: RecordReader) -> Create:
        path, data, acl, flags = reader.text(), reader.buffer(), reader.acls(), reader.integer()
        ttl_ms = reader.long() if kind == Op.CREATE_TTL else -1
        if not 0 <= flags <= _LAST_FLAG:
            raise Refused(Code.BAD_ARGUMENTS)
        owner = CONTAINER_CODE if kind == Op.CREATE_CONTAINER else 0
        if flags in _TTL:
            try:
                owner = ttl_owner(ttl_ms)
            except ValueError:
                raise Refused(Code.BAD_ARGUMENTS) from None
        elif ttl_ms >= 0:
            raise Refused(Code.BAD_ARGUMENTS)
        unknown = Code.UNKNOWN_SESSION
        if flags in _EPHEMERAL:
            unknown = Code.SESSION_EXPIRED
            owner = owner or request.session
        self._sessions.check(request.session, request.owner, unknown)
        if "/" not in path or "\0" in path:
            raise Refused(Code.BAD_ARGUMENTS)
        complete = access.complete(acl, request.identities)
        above = parent_of(path)
        parent = self._node(above)
        access.check(parent.acl, access.CREATE, request.identities)
        if flags in _SEQUENTIAL:
            path += f"{parent.creates:010d}"
        _validate(path)
        if self._look(path) is not None:
            raise Refused(Code.NODE_EXISTS)
        if is_session(parent.owner):
            raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
        creates = parent.creates + 1
        self._put(above, replace(parent, zxid=self._zxid, creates=creates, children=parent.children + 1))
        self._put(path, Draft(self._zxid, complete, owner))
        return Create(path, data, complete, owner, creates)

    def _delete(self, path: str, version: int, identities: Sequence[access.Identity] | None) -> Delete:
        """By a client, or (`identities` is None) by the leader: a container or a node whose ttl is over."""
        if "/" not in path or "\0" in path or path in SPECIAL:
            raise Refused(Code.BAD_ARGUMENTS)
        above = parent_of(path)
        parent = self._node(above)
        if identities is not None:
            access.check(parent.acl, access.DELETE, identities)
        node = self._node(path)
        _next(node.version, version)
        if node.children:
            raise Refused(Code.NOT_EMPTY)
        if identities is None and is_session(node.owner):
            raise Refused(Code.BAD_VERSION)
        self._put(above, replace(parent, zxid=self._zxid, children=parent.children - 1))
        self._put(path, replace(node, zxid=self._zxid, deleted=True))
        return Delete(path)

    def _close(self, session: int) -> CloseSession:
        paths = dict(self._tree.ephemerals.get(session, ()))
        for path, draft in self._drafts.items():
            if draft.deleted:
                paths.pop(path, None)
            elif draft.owner == session:
                paths[path] = None
        for path in paths:
            parent = self._node(parent_of(path))
            self._put(parent_of(path), replace(parent, zxid=self._zxid, children=parent.children - 1))
            self._put(path, replace(self._node(path), zxid=self._zxid, deleted=True))
        self._sessions.close(session)
        return CloseSession(tuple(paths))

    def _multi(self, request: Request, reader: RecordReader) -> Multi:
        parts: list[tuple[int, Txn]] = []
        failed = False
        while True:
            kind, done, _ = reader.integer(), reader.flag(), reader.integer()
            if done:
                break
            before = reader.left
            try:
                if failed:
                    _skip(kind, reader)
                    parts.append((Op.ERROR, Failed(Code.INCONSISTENCY)))
                else:
                    txn = self._one(kind, request, reader)
                    barely = isinstance(txn, Create) and (not txn.owner or is_session(txn.owner))
                    answered = (Op.CREATE if barely else Op.CREATE2) if isinstance(txn, Create) else kind
                    parts.append((answered, txn))
            except Refused as refusal:
                reader.back_to(before)
                _skip(kind, reader)
                parts.append((Op.ERROR, Failed(refusal.code)))
                failed = True
        if failed:
            self._part = {}
        return Multi(parts)

    # Nodes as they will be

    def _look(self, path: str) -> Draft | None:
        path = "" if path == "/" else path
        draft = self._part.get(path) or self._drafts.get(path)
        if draft is not None:
            return None if draft.deleted else draft
        node = self._tree.nodes.get(path)
        if node is None:
            return None
        return Draft(0, node.acl, node.owner, node.version, node.creates, node.aversion, len(node.children))

    def _node(self, path: str) -> Draft:
        if (found := self._look(path)) is None:
            raise Refused(Code.NO_NODE)
        return found

    def _put(self, path: str, draft: Draft) -> None:
        self._part["" if path == "/" else path] = draft


def _next(now: int, expected: int) -> int:
    if expected not in (-1, now):
        raise Refused(Code.BAD_VERSION)
    return now + 1


def _skip(kind: int, reader: RecordReader) -> None:
    """Past the body of a part that is not tried."""
    if kind in CREATES:
        reader.text(), reader.buffer(), reader.acls(), reader.integer()
        if kind == Op.CREATE_TTL:
            reader.long()
    elif kind in (Op.DELETE, Op.CHECK):
        reader.text(), reader.integer()
    elif kind == Op.SET_DATA:
        reader.text(), reader.buffer(), reader.integer()
    else:
        raise Malformed(f"operation {kind} in a multi")


def _validate(path: str) -> None:
    steps = path.split("/")
    if path == "/":
        return
    if steps[0] or len(steps) < 2 or any(step in ("", ".", "..") for step in steps[1:]) or any(map(_odd, path)):
        raise Refused(Code.BAD_ARGUMENTS)


def _odd(sign: str) -> bool:
    return sign < " " or "\x7f" <= sign <= "\x9f" or "\ud800" <= sign <= "\uf8ff" or "\ufff0" <= sign <= "\uffff"
