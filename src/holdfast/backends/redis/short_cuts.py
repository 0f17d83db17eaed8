"""The usual calls, a take of one name and a release that does not linger: one exchange each, on one primary. And the
swap of a record (`record_short_cuts`), which is never put together with others.

1. These are steps (`ports.ShortCuts`): a driver does the exchange between `begin` and `end` by itself, and so saves the
   flow. `call` is the same as a flow, for drivers that do not.
2. Whatever is not usual (a name that is taken, an error, a connection that has ended) goes on in the general way, from
   the very bytes or the error that came (`go_on`).
3. Where many come at once they are carried out together (`batching`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeGuard

from ..._core.flow import Exchange, Flow, PendingReply
from ...errors import BackendUnavailable
from ...model import Claim
from ...ports import Rest, UsedConnection
from ..queue_backend import Release, Take, Taken
from ..record_requests import RecordReply, SwapRecord
from .batching import Batching, RedisRest
from .codec import NOT_YET_HEARING, Codec
from .connection import RedisConnection
from .error_mapping import no_answer
from .notifications import Listener
from .pool import RedisPool
from .record_short_cuts import SwapRest, SwapShortCut
from .replies import one_taken
from .resp import Error
from .waiter_connections import MOST_COUNT as MOST_WAITERS_COUNT
from .waiter_connections import WaiterConnections

UsualAnswer: TypeAlias = "list[Taken] | bool | RecordReply"

RELEASED = b":1\r\n"


class GeneralWay(Protocol):
    """How the client does all else."""

    def take(self, request: Take, deadline: float) -> Flow[list[Taken]]: ...

    def make_reachable(self, request: Take, deadline: float, wake: str, taken: list[Taken]) -> Flow[list[Taken]]:
        """Whoever has to wait subscribes before it queues."""
        ...

    def release(self, claim: Claim, linger: float, deadline: float, again: bool = False) -> Flow[bool]: ...

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        ...


class RedisShortCuts:
    """The usual calls of one client."""

    def __init__(
        self, pool: RedisPool, codec: Codec, listener: Listener, waiters: WaiterConnections, general: GeneralWay
    ) -> None:
        self._pool = pool
        self._codec = codec
        self._listener = listener
        self._waiters = waiters
        self._general = general
        self.swap: SwapShortCut | None = None
        self.batching = Batching(pool, codec, general.forget, self._shared_channel)

    def _shared_channel(self) -> str:
        return self._listener.channel if self._listener.ready else NOT_YET_HEARING

    def begin(self, request: object) -> tuple[RedisConnection, bytes] | None:
        idle = self._pool.idle
        if not idle or (self.batching.carriers and self.batching.due):
            return None
        link = idle[-1]
        frame = self._frame(request, link)
        if frame is None:
            return None
        try:
            idle.pop()
            return link, frame
        except BaseException:  # an interruption
            self._pool.drop(link)
            raise

    def _frame(self, request: object, link: RedisConnection) -> bytes | None:
        """What is to be sent on this connection; None if it is not usual."""
        if request.__class__ is SwapRecord and self.swap is not None:
            assert isinstance(request, SwapRecord)
            return self.swap.frame(request, link)
        if isinstance(request, Take):
            if len(request.claims) != 1:
                return None
            wake = link.channel
            if not wake or len(self._waiters.by_owner) >= MOST_WAITERS_COUNT:
                wake = self._shared_channel()
            link.wake = wake
            return self._codec.taking(request.claims[0], wake, request.queue)
        if not isinstance(request, Release) or request.linger:
            return None
        claim = request.claim
        if self._waiters.pushed and claim.owner in self._waiters.pushed:
            self._waiters.pushed.discard(claim.owner)
            return self._codec.handing_over(claim, link.channel)
        return self._codec.releasing(claim)

    def end(
        self, request: Take | Release | SwapRecord, link: UsedConnection, said: bytes | BaseException
    ) -> UsualAnswer | Rest:
        assert isinstance(link, RedisConnection)
        if isinstance(request, SwapRecord):
            assert self.swap is not None
            return self.swap.end(request, link, said)
        if isinstance(said, bytes):
            pool = self._pool
            if isinstance(request, Take):
                if said[:1] == b"$" and said[3:5] == b"\r\n" and len(said) == 7 + int(said[1:3]):
                    pool.put(link)
                    return one_taken(said[5:-2])
            elif said == RELEASED:
                pool.put(link)
                if self._waiters.by_owner or self._listener.ready:
                    self._general.forget(request.claim.owner)
                return True
        return RedisRest(link, said)

    def join(
        self, request: object, deadline: float, reply: PendingReply, start: Callable[[Flow[None]], object]
    ) -> bool:
        if not self.batching.due or not is_usual(request):
            return False
        return self.batching.join(request, deadline, reply, start)

    def go_on(self, request: Take | Release | SwapRecord, rest: Rest, deadline: float) -> Flow[UsualAnswer]:
        if isinstance(request, SwapRecord):
            assert self.swap is not None
            assert isinstance(rest, SwapRest)
            return (yield from self.swap.go_on(request, rest, deadline))
        assert isinstance(rest, RedisRest)
        pool, link, said = self._pool, rest.link, rest.said
        if link is None:
            if isinstance(said, BaseException):
                raise said
            return (yield from self._make_again(request, deadline, rest.again))
        try:
            if said is None:
                said = yield Exchange(link.connection, self._frame(request, link) or b"", deadline)
            if isinstance(said, BaseException):
                raise said
            reply = yield from link.parse(said, deadline)
        except BaseException as error:
            if not self._retries(link, error):
                raise
            return (yield from self._make_again(request, deadline, again=True))
        if isinstance(request, Take):
            if link.wake is link.channel and isinstance(reply, list):
                self._waiters.add(request.claims[0].owner, link)
                return one_taken(reply)
            pool.put(link)
            if not isinstance(reply, Error):
                return (yield from self._general.make_reachable(request, deadline, link.wake, one_taken(reply)))
        else:
            pool.put(link)
            if not isinstance(reply, Error):
                self._general.forget(request.claim.owner)
                return bool(reply == 1)
        return (yield from self._make_again(request, deadline, again=False))

    def _retries(self, link: RedisConnection, error: BaseException) -> bool:
        """Whether it is to be made again after this (rule 3 of the client); else raises what its caller is told."""
        self._pool.drop(link)
        if isinstance(error, ConnectionError):
            self._pool.drop_idle()
            return True
        if isinstance(error, OSError) and not isinstance(error, BackendUnavailable):
            self._pool.drop_idle()  # the server may hang, and another be the primary by now
            raise no_answer(error) from error
        return False

    def _make_again(self, request: Take | Release, deadline: float, again: bool) -> Flow[UsualAnswer]:
        """In the general way. `again`: it may have been carried out."""
        if isinstance(request, Take):
            return (yield from self._general.take(request, deadline))
        return (yield from self._general.release(request.claim, 0.0, deadline, again))

    def call(self, request: Take | Release, deadline: float) -> Flow[UsualAnswer]:
        """The same steps as a flow."""
        said: UsualAnswer | Rest
        if self.batching.due:
            said = yield from self.batching.call(request, deadline)
        else:
            link = yield from self._pool.take(deadline)
            came: bytes | BaseException
            try:
                came = yield Exchange(link.connection, self._frame(request, link) or b"", deadline)
            except BaseException as error:  # noqa: BLE001  raised by `go_on`
                came = error
            said = self.end(request, link, came)
        if isinstance(said, Rest):
            return (yield from self.go_on(request, said, deadline))
        return said


def is_usual(request: object) -> TypeGuard[Take | Release]:
    if isinstance(request, Take):
        return len(request.claims) == 1
    return isinstance(request, Release) and not request.linger
