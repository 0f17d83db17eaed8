"""The blocking wire: each request, and each waiter, on a link of its own.

1. Nothing is sent before a link is open: failing that is `BackendUnavailable`. After sending, whatever goes wrong is
   `OutcomeUnknown`, except for an error reply, which means that nothing was done. A request's timeout bounds all of it,
   the opening of a link among it.
2. A claim that queues can be reached: its link listens, and is kept for its owner to wait on. Where it does not (an old
   server or proxy, a cluster, many waiters), the first one that would have to wait subscribes for all, and then queues.
3. A link that was idle may have been ended by the server, unnoticed. A request that finds it so is made again, once, on
   a new link: every verb may be carried out twice, but for a limiter's; that one looks at the link first (`alive`).
4. Where replicas have to confirm (`Durability`), WAIT goes out behind the write on the same link; a grant that was
   pushed is taken again, because its own write was somebody else's.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from .... import clock
from ....errors import BackendUnavailable
from ....model import Claim, LockView
from ...queue_backend import UNKNOWN, Allow, Push, Release, Renew, Survey, Take, Taken
from ..codec import NOT_YET_HEARING, NOWHERE, Codec, Order, write
from ..durability import Durability, NotConfirmed
from ..replies import one_taken, waits
from ..resp import Error, command
from ..trouble import ELSEWHERE, cannot_read, translated
from .batch import call_each
from .link import SHORT
from .links import Links
from .listener import POLL, Listener
from .parking import MOST_PARKED, Parking
from .plain import plainly
from .servers import Primary, Servers
from .surveying import steps
from .timing import left, no_answer

TRIES = 5
"""How often a request follows a redirection, or tries another link when its own was found broken."""
GRANTED = len("$16\r\n1794739688509276\r\n")
RELEASED = b":1\r\n"


class RedisWire:
    """Carries out requests on the caller's thread."""

    def __init__(
        self,
        connect: Callable[[], tuple[Servers, Listener]],
        namespace: str,
        durability: Durability | None = None,
        flags: bool = True,
    ) -> None:
        self._connect, self._namespace, self._flags = connect, namespace, flags
        self._durability = durability
        self._begin()

    def _begin(self) -> None:
        self.servers, self._listener = self._connect()
        alone = isinstance(self.servers, Primary)
        self._codec = Codec(self._namespace, socket.gethostname(), os.getpid(), indexed=alone, flags=self._flags)
        simple = alone and self._durability is None
        self._only = self.servers.having(b"", 0.0) if simple else None
        self._parking = Parking(self._only) if self._only is not None else None

    def call(self, request: Any, timeout: float) -> Any:
        kind = request.__class__
        if (links := self._only) is not None and (parking := self._parking) is not None:
            said: list[Taken] | bool | None = None
            if kind is Take:
                if request.queue and len(request.claims) == 1:
                    said = self._take_quickly(request, timeout, links, parking)
            elif kind is Release and not request.linger:
                said = self._release_quickly(request.claim, timeout, links, parking)
            if said is not None:
                return said
        if kind is Take:
            return self._take(request, timeout)
        if kind is Survey:
            return self._survey(request, timeout)
        if kind is Renew and not isinstance(self.servers, Primary):
            return self._renew_each(request, timeout)
        if kind is Release:
            self._forget(request.claim.owner)
        return self._ask(
            write(self._codec, request, NOWHERE), timeout, confirmed=kind is Renew, repeatable=kind is not Allow
        )

    # With nothing in the way. None: it is to be done with all due care.

    def _take_quickly(self, request: Take, timeout: float, links: Links, parking: Parking) -> list[Taken] | None:
        try:
            link = links.idle.pop()
        except IndexError:
            end = clock.now() + timeout
            link = links.open(timeout)
            timeout = left(end)
        wake = link.channel
        if not wake or len(parking.parked) >= MOST_PARKED:
            wake = self._listener.channel if self._listener.ready else NOT_YET_HEARING
        try:
            link.send(self._codec.taking(request.claims[0], wake))
            if timeout != link.timeout:
                link.wait_to_read(timeout)
            data = link.recv(SHORT)
            if len(data) == GRANTED and data[:3] == b"$16":
                links.put(link)
                return [Taken(int(data[5:21]))]
            reply = link.parse(data, timeout)
        except BaseException as error:
            links.drop(link)
            if isinstance(error, ConnectionError):
                links.drop_idle()
                return None  # rule 3
            if isinstance(error, OSError):
                raise no_answer(timeout, error) from error
            raise
        if reply.__class__ is list and wake is link.channel:
            parking.park(request.claims[0].owner, link)
            return one_taken(reply)
        links.put(link)
        return None if reply.__class__ is Error else self._reachable(request, timeout, wake, one_taken(reply))

    def _release_quickly(self, claim: Claim, timeout: float, links: Links, parking: Parking) -> bool | None:
        try:
            link = links.idle.pop()
        except IndexError:
            end = clock.now() + timeout
            link = links.open(timeout)
            timeout = left(end)
        try:
            if parking.pushed and claim.owner in parking.pushed:
                parking.pushed.discard(claim.owner)
                link.send(self._codec.handing_over(claim, link.channel))
            else:
                link.send(self._codec.releasing(claim))
            if timeout != link.timeout:
                link.wait_to_read(timeout)
            data = link.recv(SHORT)
            reply = 1 if data == RELEASED else link.parse(data, timeout)
        except BaseException as error:
            links.drop(link)
            if isinstance(error, ConnectionError):
                links.drop_idle()
                order = self._codec.release(claim, 0.0)
                return bool(self._ask(order._replace(read=order.read_again), timeout))  # rule 3
            if isinstance(error, OSError):
                raise no_answer(timeout, error) from error
            raise
        links.put(link)
        if reply.__class__ is Error:
            return None
        if parking.parked or self._listener.ready:
            self._forget(claim.owner)
        return bool(reply == 1)

    def _forget(self, owner: str) -> None:
        """This owner waits no longer."""
        if self._parking is not None and self._parking.parked:
            self._parking.forget(owner)
        if self._listener.ready:
            self._listener.forget(owner)

    def _take(self, request: Take, timeout: float) -> list[Taken]:
        end = clock.now() + timeout
        wake = self._listener.channel if self._listener.ready else NOT_YET_HEARING
        try:
            taken = self._ask(write(self._codec, request, wake), timeout, confirmed=True)
            return self._reachable(request, left(end), wake, taken)
        except NotConfirmed:
            for claim in request.claims:
                self._ask(self._codec.release(claim, 0.0), left(end))
            raise

    def _reachable(self, request: Take, timeout: float, wake: str, taken: list[Taken]) -> list[Taken]:
        """Whoever has to wait subscribes before it queues, so that nobody waits whom no push can reach."""
        if wake is NOT_YET_HEARING and request.queue and any(map(waits, taken)):
            end = clock.now() + timeout
            wake = self._listener.channel if self._listener.open(timeout) else NOWHERE
            taken = self._ask(write(self._codec, request, wake), left(end), confirmed=True)
        return taken

    def _ask(self, order: Order, timeout: float, *, confirmed: bool = False, repeatable: bool = True) -> Any:
        """One call. `repeatable`: a second one does no harm (rule 3)."""
        end = clock.now() + timeout
        frame = order.program.call(order.size) + order.words
        durability = self._durability if confirmed else None
        links = self.servers.having(order.key, timeout)
        asking = again = False
        for attempt in range(TRIES):
            try:
                link = links.get(timeout) if repeatable else links.get_alive(timeout)
            except BackendUnavailable:
                self.servers.failed(links)
                if (other := self.servers.instead(links, order.key, left(end))) is None:
                    raise
                links, timeout = other, left(end)
                continue
            timeout = left(end)
            try:
                if asking:
                    link.exchange(command("ASKING"), timeout)
                if durability is None:
                    reply = link.exchange(frame, timeout)
                else:
                    reply = link.exchange(frame + durability.frame(timeout), timeout)
                    durability.check(link.read(timeout), reply)
            except BaseException as error:
                links.drop(link)
                if not isinstance(error, OSError) or isinstance(error, BackendUnavailable):
                    raise
                if isinstance(error, ConnectionError) and not again and repeatable:
                    links.drop_idle()
                    again, timeout = True, left(end)
                    continue
                self.servers.failed(links)
                raise no_answer(timeout, error) from error
            links.put(link)
            if reply.__class__ is not Error:
                return order.read_again(reply) if again else order.read(reply)
            timeout = left(end)
            if reply.code == "NOSCRIPT":
                frame = order.program.call_with_source(order.size) + order.words
            elif order.program.plain is not None and cannot_read(reply):
                self._codec.do_without_flags()
                order = order._replace(program=order.program.plain)
                frame = order.program.call_with_source(order.size) + order.words
            elif reply.code in ELSEWHERE and attempt < TRIES - 1:
                links, asking = self.servers.elsewhere(reply, links, order.key, timeout)
            else:
                raise translated(reply)
        raise BackendUnavailable("Redis kept sending the request elsewhere; its topology is changing")

    def _renew_each(self, request: Renew, timeout: float) -> list[str]:
        """On a cluster every name is a call of its own."""

        def alone(order: Order, timeout: float) -> list[str] | None:
            try:
                said: list[str] = self._ask(order, timeout, confirmed=True)
            except BackendUnavailable:
                return None
            return said

        orders = [self._codec.renew([claim]) for claim in request.claims]
        told = call_each(orders, self.servers, timeout, self._durability, alone)
        return [UNKNOWN if said is None else said[0] for said in told]

    def _survey(self, request: Survey, timeout: float) -> list[LockView]:
        together = isinstance(self.servers, Primary)
        looking = steps(self._codec, request, self.servers.every(timeout), together)
        reply = None
        try:
            while True:
                where, what = looking.send(reply)
                if isinstance(what, Order):
                    reply = self._ask(what, timeout)
                elif where is not None:
                    reply = self.plainly(where, what, timeout)
        except StopIteration as stop:
            views: list[LockView] = stop.value
            return views

    def plainly(self, links: Links, frame: bytes, timeout: float) -> Any:
        return plainly(self.servers, links, frame, timeout)

    def wait(self, owner: str, timeout: float) -> Push | None:
        if self._parking is not None and (link := self._parking.parked.get(owner)) is not None:
            return self._parking.wait(owner, link, timeout)
        if not self._listener.ready:
            time.sleep(min(timeout, POLL))
            return None
        push = self._listener.wait(owner, timeout)
        return push if self._durability is None else None

    def before_fork(self) -> None:
        pass  # requests under way are on links that the child does not touch

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        if self._parking is not None:
            self._parking.abandon()
        self.servers.close()
        self._listener.abandon()
        self._begin()

    def close(self) -> None:
        self.servers.close()
        self._listener.close()
        if self._parking is not None:
            self._parking.close()
