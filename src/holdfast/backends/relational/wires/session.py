"""The blocking wire of session locks.

1. Locks that nobody had to wait for are held on one shared connection; no statement on it ever waits. Who has to wait
   does so on a connection of its own, in the server's line; a lock got that way lives there.
2. A lock lives on one connection. When that connection ends, so do its locks: their leases are told `session` at the
   next renewal. Nobody of this coordinator is let in before that.
3. The answer to every unlock is looked at: False means that the session was not the one that held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable, HoldfastError
from ....model import Claim
from ...queue_backend import Allow, Push, Release, Renew, Survey, Take, Taken, closed
from ..error_mapping import Refused, Silence
from ..local_queue import LOOK_AGAIN_S, LocalQueue
from .dial import Deadline
from .pace import TIDY_NAMES, pause_before_look, time_to_tidy
from .pool import Pool
from .ports import Dialling, SessionCodec
from .session_link import Session, ask_all

TRIES = 5
"""As if it were this look, for the pause of those who can not wait at the server."""


class SessionWire:
    """Carries out requests on the caller's thread. `words` and `rest`: see `Pool`."""

    def __init__(
        self, dialling: Dialling, codec: Callable[[], SessionCodec], words: Sequence[bytes], rest: float
    ) -> None:
        self._translation = dialling.translation
        self._make_codec = codec
        self._make_pool: Callable[[], Pool] = lambda: Pool(dialling, words, rest, self._holds_something)
        self._closed = False
        self._begin()
        try:
            self._session(dialling.timeout)
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._pool = self._make_pool()
        self._session = self._pool.shared
        self._mutex = threading.Lock()  # of the state below; never held while the server is asked
        self._desk: LocalQueue[Session] = LocalQueue(lambda link: link.broken)
        self._claims: dict[str, Claim] = {}
        self._seen: dict[str, Session] = {}  # who is seen waiting, through which session
        self._waiters: dict[str, Session] = {}
        self._bells: dict[str, threading.Event] = {}

    def _holds_something(self, session: Session) -> bool:
        with self._mutex:
            return self._desk.holds_on(session)

    def call(self, request: Any, timeout: float) -> Any:
        match request:
            case Take(claims=[claim], queue=queue):
                return [self._take(claim, queue, timeout)]
            case Renew(claims=claims):
                return self._renew(claims, timeout)
            case Release(claim=claim):
                return self._release(claim, timeout)
            case Survey() | Allow():
                deadline = Deadline(timeout)
                return self._session(timeout).ask(self._codec.write(request), deadline.left)
        raise TypeError(f"not a verb of session locks: {request!r}")

    def _take(self, claim: Claim, queue: bool, timeout: float) -> Taken:
        name, owner = claim.spec.name, claim.owner
        deadline = Deadline(timeout)
        with self._mutex:
            held = self._desk.holds.get(owner)
            if held is not None and not held.connection.broken:
                return Taken(held.token)
            before = self._desk.enter(name, owner, queue, time.monotonic())
            if before is None:
                return Taken(0)
            self._claims[owner] = claim
        if before or owner in self._waiters:
            self._show(claim, deadline)
            return Taken(0, LOOK_AGAIN_S, before or 1)
        session = None
        try:
            session = self._session(timeout)
            token = session.ask(self._codec.take(claim, queue, owner in self._seen), deadline.left)
        except BaseException:
            try:
                if session is not None and not session.broken:  # the lock may be there, without its token
                    session.ask(self._codec.unlock(name), deadline.left)
            finally:
                self._leave(name, owner)
            raise
        if token:
            self._seen.pop(owner, None)
            self._desk.hold(claim, token, session, time.monotonic())
            self._tidy(session, deadline.left)
            return Taken(token)
        if queue:
            self._seen[owner] = session
        else:
            self._leave(name, owner)
        return Taken(0, LOOK_AGAIN_S, 1)

    def _show(self, claim: Claim, deadline: Deadline) -> None:
        """Have others see that it waits, for as long as the session lives that says so."""
        session = self._session(deadline.left)
        if self._seen.get(claim.owner) is not session:
            session.ask(self._codec.queue(claim), deadline.left)
            self._seen[claim.owner] = session

    def _leave(self, name: str, owner: str) -> None:
        with self._mutex:
            self._claims.pop(owner, None)
            self._bells.pop(owner, None)
            heir = self._desk.leave(name, owner)
            event = None if heir is None else self._bells.get(heir)
        if event is not None:
            event.set()

    def wait(self, owner: str, timeout: float) -> Push | None:
        """In the line of this coordinator for the bell, and at its head in the line of the server."""
        deadline = Deadline(timeout)
        with self._mutex:
            claim = self._claims.get(owner)
            if claim is None:
                return None  # it left meanwhile
            name = claim.spec.name
            first = self._desk.first(name, owner)
            event = self._bells.setdefault(owner, threading.Event())
        if not first:
            event.wait(timeout)
            return None
        try:
            session = self._waiters.get(owner) or self._start(claim, deadline.left)
        except BackendUnavailable:
            event.wait(min(deadline.left, pause_before_look(TRIES)))  # no other connection is to be had: look instead
            return None
        try:
            with session.polling:
                if self._waiters.get(owner) is not session:
                    return None  # released meanwhile: the session is with whoever did that
                token = session.link.poll(deadline.left)
        except (Silence, Refused) as error:
            if self._waiters.pop(owner, None) is None:
                return None  # as above
            session.end()
            if isinstance(error, Refused) and error.code not in self._translation.gone:
                raise self._translation.refused(error) from error
            return None  # the session ended; the next look stands in line with another
        if token is None:
            return None
        session.touch()
        with self._mutex:
            if self._waiters.pop(owner, None) is None:
                return None  # released meanwhile: the session is with whoever did that
            if token:
                self._seen.pop(owner, None)
                self._desk.hold(claim, token, session, time.monotonic())
                return Push(token)
        self._pool.put_back(session)  # a day has passed
        return None

    def _start(self, claim: Claim, timeout: float) -> Session:
        session = self._pool.one_to_wait_on(timeout)
        try:
            session.link.start(self._codec.wait(claim))
        except Silence as error:
            session.end()
            raise self._translation.unknown(error) from error
        self._waiters[claim.owner] = session
        if self._closed:  # while this was dialled: nobody else ends it
            del self._waiters[claim.owner]
            session.end()
            raise closed()
        return session

    def _renew(self, claims: Any, timeout: float) -> list[str]:
        """One question per connection, to all at once: is the session alive?"""
        with self._mutex:
            held = [self._desk.holds.get(claim.owner) for claim in claims]
        sessions = {one.connection for one in held if one is not None and one.connection.look()}
        if not ask_all(sessions, self._codec.alive(), timeout):
            raise self._translation.busy(timeout)
        for claim, one in zip(claims, held, strict=True):
            if one is not None and not one.connection.broken:
                self._desk.heard(one, time.monotonic())
            elif one is not None:
                self._leave(claim.spec.name, claim.owner)  # who waits behind it here need not wait for its release
        return ["refused" if one is None else "session" if one.connection.broken else "held" for one in held]

    def _release(self, claim: Claim, timeout: float) -> bool:
        name, owner = claim.spec.name, claim.owner
        deadline = Deadline(timeout)
        held = self._desk.holds.get(owner)
        unlocked = False
        if held is not None and held.connection.look():
            try:
                unlocked = held.connection.ask(self._codec.unlock(name), timeout)
            except BackendUnavailable:
                if not held.connection.broken:
                    raise  # busy, or refused: it is still held
            self._pool.put_back(held.connection)
        self._desk.holds.pop(owner, None)
        if (waiter := self._waiters.pop(owner, None)) is not None:
            self._give_up(waiter, name, deadline)
        if (session := self._seen.pop(owner, None)) is not None:
            self._hide(session, owner, deadline)
        self._leave(name, owner)
        return unlocked

    def _hide(self, session: Session, owner: str, deadline: Deadline) -> None:
        """No longer seen waiting."""
        try:
            session.ask(self._codec.leave(owner), deadline.left)
        except BackendUnavailable:
            pass  # the session has ended, and is not looked at; or the row goes with it

    def _give_up(self, session: Session, name: str, deadline: Deadline) -> None:
        """Out of the server's line. The lock may have been granted in this very moment: then it is let go of."""
        try:
            self._session(deadline.left).ask(self._codec.give_up(session.link.told_id), deadline.left)
            if not session.polling.acquire(timeout=deadline.left):  # its owner's thread may be reading
                raise Silence("it took too long")
            try:
                if session.link.under_way is not None and session.link.poll(deadline.left) is None:
                    raise Silence("it took too long")
            except Refused:
                pass  # told to end: before the lock was granted, or after
            finally:
                session.polling.release()
            while session.ask(self._codec.unlock(name), deadline.left):
                pass
            self._pool.put_back(session)
        except (Silence, HoldfastError):
            session.end()

    def _tidy(self, session: Session, timeout: float) -> None:
        if time_to_tidy():
            try:
                session.ask(self._codec.tidy(TIDY_NAMES), timeout)
            except BackendUnavailable:
                pass  # another time

    # Life

    def _sessions(self) -> set[Session]:
        with self._mutex:
            holding = [held.connection for held in self._desk.holds.values()]
            return {*self._waiters.values(), *holding, *self._pool.sessions()}

    def before_fork(self) -> None:
        self._mutex.acquire()
        self._pool.before_fork()

    def after_fork_in_parent(self) -> None:
        self._pool.after_fork_in_parent()
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        self._mutex = threading.Lock()
        self._pool.after_fork_in_child()
        for session in self._sessions():
            session.link.disown()
        self._begin()

    def close(self) -> None:
        self._closed = True
        self._pool.close()
        waiting = set(self._waiters.values())
        for session in self._sessions():
            if session in waiting:
                session.link.hang_up()  # its waiter ends it
            else:
                with session.mutex:
                    session.end()
        for event in list(self._bells.values()):
            event.set()
