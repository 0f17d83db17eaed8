"""Which reader of replies is used: hiredis's where it is installed, else ours (`resp.Reader`)."""

from __future__ import annotations

from typing import Any, Protocol

from .resp import Error, NotRedis, Pushed, Reply, RespReader


class ReplyReader(Protocol):
    """Bytes in, replies out; `NOT_YET` while one is not complete."""

    def feed(self, data: bytes) -> object: ...

    def gets(self) -> Reply: ...


def make_reader() -> ReplyReader:
    try:
        import hiredis
    except ImportError:
        return RespReader()
    reader: ReplyReader = hiredis.Reader(protocolError=NotRedis, replyError=Error)
    return reader


def push_type() -> type[list[Any]]:
    """What a push is to the reader that `make_reader` makes."""
    try:
        from hiredis import PushNotification
    except ImportError:
        return Pushed
    kind: type[list[Any]] = PushNotification
    return kind


PUSHED = push_type()
