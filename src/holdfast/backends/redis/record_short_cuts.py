"""The swap of a record, which is all that most attempts send, as a short cut (see `short_cuts`).

1. It decides as `records` does. It is never sent twice, so the connection is looked at before it is used, and one that
   has ended is left to the general way; a reply that is lost is `OutcomeUnknown`.
2. An error reply means that nothing was done: the general way sends it again, and knows what the error means.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, cast

from ..._core.flow import Flow, Receive
from ...errors import BackendUnavailable
from ...ports import Rest
from ...record import Record, Swapped
from ..record_requests import RecordReply, SwapRecord
from .connection import RedisConnection
from .error_mapping import no_answer
from .pool import RedisPool
from .record_codec import FoundRecord, RecordCodec, swapped_of
from .resp import NOT_YET, Error, Reply

SwapReply: TypeAlias = "list[int | FoundRecord | None]"
SWAPPED_BYTES = len("*2\r\n:1\r\n:1794739688509276\r\n")


class GeneralSwap(Protocol):
    """How the client does all else."""

    def call(self, request: SwapRecord, deadline: float) -> Flow[RecordReply]: ...


class SwapRest(Rest):
    """The reply that is there, or not yet, or the error that came instead."""

    __slots__ = ("link", "said")

    def __init__(self, link: RedisConnection, said: Reply | BaseException) -> None:
        self.link = link
        self.said = said


class SwapShortCut:
    """The swaps of one client."""

    def __init__(self, pool: RedisPool, codec: RecordCodec, general: GeneralSwap) -> None:
        self._pool, self._codec, self._general = pool, codec, general

    def frame(self, request: SwapRecord, link: RedisConnection) -> bytes | None:
        """What is to be sent on this connection; None if it has ended."""
        return None if link.connection.readable() else self._codec.swapping(request)

    def end(self, request: SwapRecord, link: RedisConnection, said: bytes | BaseException) -> Swapped | Rest:
        if not isinstance(said, bytes):
            return SwapRest(link, said)
        if len(said) == SWAPPED_BYTES and said[:8] == b"*2\r\n:1\r\n" and request.data is not None:
            self._pool.put(link)
            return Swapped(True, Record(request.key, int(said[9:25]), request.data, request.owner, request.ttl))
        try:
            reply = link.first(said)
        except Exception as error:  # noqa: BLE001  raised by `go_on`
            return SwapRest(link, error)
        if reply is NOT_YET or isinstance(reply, Error):
            return SwapRest(link, reply)
        self._pool.put(link)
        return swapped_of(cast(SwapReply, reply), request)

    def go_on(self, request: SwapRecord, rest: SwapRest, deadline: float) -> Flow[RecordReply]:
        link, reply = rest.link, rest.said
        try:
            if isinstance(reply, BaseException) and not isinstance(reply, Error):
                raise reply
            if reply is NOT_YET:
                data: bytes = yield Receive(link.connection, deadline)
                reply = yield from link.parse(data, deadline)
        except BaseException as error:
            self._pool.drop(link)
            if not isinstance(error, OSError) or isinstance(error, BackendUnavailable):
                raise
            self._pool.drop_idle()  # as `Primary.failed`
            raise no_answer(error) from error
        self._pool.put(link)
        if isinstance(reply, Error):
            return (yield from self._general.call(request, deadline))
        return swapped_of(cast(SwapReply, reply), request)
