"""Reads, answered from the tree of the server that was asked, and the replies of writes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from . import access, records
from .prepare import Request
from .records import Code, Op, RecordReader, Refused
from .tree import Node, Result, Tree
from .watches import ANY, CHILDREN, CHILDREN_CHANGED, CREATED, DATA, DATA_CHANGED, DELETED, Watcher


def read(tree: Tree, request: Request, watcher: Watcher) -> bytes:
    """The body of the reply. Raises `Refused` and `Malformed`."""
    reader = RecordReader(request.body)
    match request.kind:
        case Op.PING:
            return b""
        case Op.SYNC:
            return written(request, Result())
        case Op.SET_WATCHES:
            set_watches(tree, reader, watcher)
            return b""
        case Op.REMOVE_WATCHES:
            path, which = reader.text(), reader.integer()
            if which not in (CHILDREN, DATA, ANY):
                raise Refused(Code.MARSHALLING)
            if not tree.watches.remove(path, which, watcher):
                raise Refused(Code.NO_WATCHER)
            return b""
    path = reader.text()
    watch = reader.flag() if request.kind != Op.GET_ACL else False
    node = tree.node(path)
    if node is None:
        if request.kind == Op.EXISTS and watch:
            tree.watches.on_data(path, watcher)
        raise Refused(Code.NO_NODE)
    if request.kind != Op.EXISTS:  # whether a node is there is no secret
        right = access.READ | (access.ADMIN if request.kind == Op.GET_ACL else 0)
        access.check(node.acl, right, request.identities)
    if watch and request.kind in (Op.EXISTS, Op.GET_DATA):
        tree.watches.on_data(path, watcher)
    elif watch:
        tree.watches.on_children(path, watcher)
    return _body(request, node)


def _body(request: Request, node: Node) -> bytes:
    match request.kind:
        case Op.EXISTS:
            return node.stat()
        case Op.GET_DATA:
            return records.buffer(node.data) + node.stat()
        case Op.GET_ACL:
            return records.acls(_shown(node, request)) + node.stat()
        case Op.GET_CHILDREN:
            return records.texts(in_no_order(node.children))
        case _:
            return records.texts(in_no_order(node.children)) + node.stat()


def _shown(node: Node, request: Request) -> Iterable[records.Acl]:
    """Digests are hidden from those who may not change the list."""
    try:
        access.check(node.acl, access.ADMIN, request.identities)
    except Refused:
        return [
            each._replace(who=each.who.split(":")[0] + ":x") if each.scheme == "digest" else each for each in node.acl
        ]
    return node.acl


def in_no_order(names: Iterable[str]) -> list[str]:
    """A server lists children in the order of their hashes. Ours are others, and no more of use to anybody."""
    return sorted(names, key=lambda name: zlib.crc32(name.encode()))


def set_watches(tree: Tree, reader: RecordReader, watcher: Watcher) -> None:
    """What happened since `seen` is told at once, the rest is watched."""
    seen, on_data, on_creation, on_children = reader.long(), reader.texts(), reader.texts(), reader.texts()
    for path in on_data:
        node = tree.node(path)
        if node is None:
            watcher.notify(DELETED, path)
        elif node.mzxid > seen:
            watcher.notify(DATA_CHANGED, path)
        else:
            tree.watches.on_data(path, watcher)
    for path in on_creation:
        if tree.node(path) is not None:
            watcher.notify(CREATED, path)
        else:
            tree.watches.on_data(path, watcher)
    for path in on_children:
        node = tree.node(path)
        if node is None:
            watcher.notify(DELETED, path)
        elif node.pzxid > seen:
            watcher.notify(CHILDREN_CHANGED, path)
        else:
            tree.watches.on_children(path, watcher)


def written(request: Request, result: Result) -> bytes:
    """The body of the reply to a write that was carried out, or to a sync."""
    match request.kind:
        case Op.CREATE:
            return records.text(result.path)
        case Op.CREATE2 | Op.CREATE_CONTAINER | Op.CREATE_TTL:
            return records.text(result.path) + result.stat
        case Op.SET_DATA | Op.SET_ACL:
            return result.stat
        case Op.MULTI:
            return b"".join(_part(kind, part) for kind, part in result.parts) + _head(Op.ERROR, True, -1)
        case Op.SYNC:
            return records.text(RecordReader(request.body).text())
        case _:
            return b""


def _part(kind: int, result: Result) -> bytes:
    match kind:
        case Op.ERROR:
            return _head(kind, False, result.code) + records.integer(result.code)
        case Op.CREATE:
            return _head(kind, False, 0) + records.text(result.path)
        case Op.CREATE2:
            return _head(kind, False, 0) + records.text(result.path) + result.stat
        case Op.SET_DATA:
            return _head(kind, False, 0) + result.stat
        case _:
            return _head(kind, False, 0)


def _head(kind: int, done: bool, code: int) -> bytes:
    return records.integer(kind) + records.flag(done) + records.integer(code)
