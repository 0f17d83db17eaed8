"""The blocking wire of session locks.

1. Locks that were free share one connection. A lock that had to be waited for lives on the connection that waited
   for it: a waiter is in the server's own line (FIFO), and keeps no release and no renewal from their connection.
2. When a connection ends, so do its locks: their leases are told `session` at the next renewal.
3. The answer to every unlock is looked at: False means that the session was not the one that held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable, Misconfigured
from ....model import Claim
from ...line import Push, Release, Renew, Take, Taken
from ..codec import Codec, Order
from ..greeting import Refused
from ..programs import SQL
from ..session.desk import LOOK_AGAIN, Desk, Held
from .blocking import TIDY_EVERY, TIDY_NAMES
from .dialling import Dialling
from .link import Link, Silence
from .translation import translated, unknown

MOST_IDLE = 4


class Session:
    """A link for one caller at a time; once broken it stays broken, and so do its locks."""

    def __init__(self, link: Link, timeout: float) -> None:
        self.link = link
        self.mutex = threading.Lock()
        self.broken = False
        link.say(SQL["session_bounds"].text, timeout)

    def ask(self, order: Order, timeout: float) -> Any:
        if not self.mutex.acquire(blocking=False) and not self.mutex.acquire(timeout=timeout):
            raise BackendUnavailable(f"other requests kept the connection to PostgreSQL busy for {timeout:g} s")
        try:
            if self.broken:
                raise unknown("the session has ended")
            try:
                return self.link.ask(order, timeout)
            except Refused as error:
                raise translated(error) from error
            except BaseException as error:
                self.end()
                raise unknown(error) if isinstance(error, Silence) else error from error
        finally:
            self.mutex.release()

    def end(self) -> None:
        self.broken = True
        self.link.close()


class SessionWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec]) -> None:
        self._dialling = dialling
        self._make_codec = codec
        self._closed = False
        self._begin()
        self._session(dialling.timeout)

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._mutex = threading.Lock()  # of the state below; never held while the server is asked
        self._dialling_up = threading.Lock()
        self._shared: Session | None = None
        self._desk: Desk[Session] = Desk()
        self._names: dict[str, str] = {}
        self._waiters: dict[str, tuple[Session, Order]] = {}
        self._bells: dict[str, threading.Event] = {}
        self._idle: list[Session] = []
        self._used = 0
        self._tidied = ""

    def _dial(self, timeout: float) -> Session:
        if self._closed:
            raise Misconfigured("this coordinator was closed meanwhile; connect() again")
        link = self._dialling.dial()
        try:
            return Session(link, timeout)
        except (Silence, Refused) as error:
            link.close()
            raise unknown(error) from error

    def _session(self, timeout: float) -> Session:
        with self._dialling_up:
            if self._shared is None or self._shared.broken:
                self._shared = self._dial(timeout)
            return self._shared

    def call(self, request: Any, timeout: float) -> Any:
        match request:
            case Take(claims=[claim], queue=queue):
                return [self._take(claim, queue, timeout)]
            case Renew(claims=claims):
                return self._renew(claims, timeout)
            case Release(claim=claim):
                return self._release(claim, timeout)
        raise TypeError(f"not a verb of session locks: {request!r}")

    def _take(self, claim: Claim, queue: bool, timeout: float) -> Taken:
        name, owner = claim.ask.name, claim.owner
        with self._mutex:
            held = self._desk.holds.get(owner)
            if held is not None and not held.link.broken:
                return Taken(held.token)
            before = self._desk.enter(name, owner, queue)
            self._names[owner] = name
            if before is None:
                return Taken(0)
            if before or owner in self._waiters:
                return Taken(0, LOOK_AGAIN, before or 1)
        session = None
        try:
            session = self._shared
            if session is None or session.broken:
                session = self._session(timeout)
            token = session.ask(self._codec.session("session_try", name), timeout)
        except BaseException:
            if session is not None and not session.broken:  # the lock may be there, without its token
                session.ask(self._codec.session_unlock(name), timeout)
            self._leave(name, owner)
            raise
        if token:
            self._desk.holds[owner] = Held(name, token, session)
            self._tidy(session, timeout)
            return Taken(token)
        if not queue:
            self._leave(name, owner)
        return Taken(0, LOOK_AGAIN, 1)

    def _leave(self, name: str, owner: str) -> None:
        with self._mutex:
            self._names.pop(owner, None)
            self._bells.pop(owner, None)
            heir = self._desk.leave(name, owner)
            bell = None if heir is None else self._bells.get(heir)
        if bell is not None:
            bell.set()

    def wait(self, owner: str, timeout: float) -> Push | None:
        """In the line of this coordinator for the bell, and at its head in the line of the server."""
        with self._mutex:
            name = self._names.get(owner, "")
            first = self._desk.first(name, owner)
            bell = self._bells.setdefault(owner, threading.Event())
        if not first:
            bell.wait(timeout)
            return None
        session, order = self._waiters.get(owner) or self._start(name, owner)
        try:
            token = session.link.poll(order, timeout)
        except (Silence, Refused) as error:
            self._waiters.pop(owner, None)
            session.end()
            raise unknown(error) from error
        if token is None:
            return None
        with self._mutex:
            del self._waiters[owner]
            self._desk.holds[owner] = Held(name, token, session)
        return Push(token)

    def _start(self, name: str, owner: str) -> tuple[Session, Order]:
        with self._mutex:
            session = self._idle.pop() if self._idle else None
        session = session or self._dial(self._dialling.timeout)
        order = self._codec.session("session_wait", name)
        try:
            session.link.start(order)
        except Silence as error:
            session.end()
            raise unknown(error) from error
        self._waiters[owner] = session, order
        return session, order

    def _renew(self, claims: Any, timeout: float) -> list[str]:
        """One question per connection: is the session alive?"""
        with self._mutex:
            held = [self._desk.holds.get(claim.owner) for claim in claims]
        for session in {one.link for one in held if one is not None and not one.link.broken}:
            try:
                session.ask(self._codec.session_alive(), timeout)
            except BackendUnavailable:
                if not session.broken:
                    raise  # busy, not ended
        return ["refused" if one is None else "session" if one.link.broken else "held" for one in held]

    def _release(self, claim: Claim, timeout: float) -> bool:
        name, owner = claim.ask.name, claim.owner
        held = self._desk.holds.pop(owner, None)
        waiter = self._waiters.pop(owner, None)
        try:
            if waiter is not None:
                self._give_up(*waiter, name, timeout)
            if held is None or held.link.broken:
                return False
            unlocked: bool = held.link.ask(self._codec.session_unlock(name), timeout)
            if held.link is not self._shared:
                self._put_back(held.link)
            return unlocked
        except BackendUnavailable:
            return False  # the session ended, and the lock with it
        finally:
            self._leave(name, owner)

    def _give_up(self, session: Session, order: Order, name: str, timeout: float) -> None:
        """Out of the server's line. The lock may have been granted in this very moment: then it is let go of."""
        try:
            session.link.cancel()
            try:
                session.link.poll(order, timeout)
            except Refused:
                pass  # cancelled: before the lock was granted, or after
            while session.ask(self._codec.session_unlock(name), timeout):
                pass
            self._put_back(session)
        except (Silence, BackendUnavailable):
            session.end()

    def _put_back(self, session: Session) -> None:
        with self._mutex:
            if session is self._shared or session.broken:
                return
            if len(self._idle) < MOST_IDLE and not self._closed:
                self._idle.append(session)
                return
        session.end()

    def _tidy(self, session: Session, timeout: float) -> None:
        self._used += 1
        if not self._used % TIDY_EVERY:
            self._tidied = session.ask(self._codec.tidy(self._tidied, TIDY_NAMES), timeout)

    # Life

    def _sessions(self) -> set[Session]:
        with self._mutex:
            waiting = [session for session, _ in self._waiters.values()]
            holding = [held.link for held in self._desk.holds.values()]
            shared = [self._shared] if self._shared is not None else []
            return {*waiting, *holding, *shared, *self._idle}

    def freeze(self) -> None:
        self._mutex.acquire()
        if self._shared is not None:
            self._shared.mutex.acquire()

    def thaw(self) -> None:
        if self._shared is not None:
            self._shared.mutex.release()
        self._mutex.release()

    def forked(self) -> None:
        self._mutex = threading.Lock()
        for session in self._sessions():
            session.link.disown()
        self._begin()

    def close(self) -> None:
        self._closed = True
        waiting = {session for session, _ in self._waiters.values()}
        for session in self._sessions():
            if session in waiting:
                session.link.hang_up()  # its waiter ends it
            else:
                with session.mutex:
                    session.end()
        for bell in list(self._bells.values()):
            bell.set()
