"""Who has shown the secret: sessions of browsers, and the limit on guesses.

1. The secret is compared in constant time. After `MAX_GUESSES_COUNT` wrong ones in `GUESSES_WINDOW_S`, from whomever,
   nobody can try until the oldest of them is that long ago: guessing is slow, and whoever has a session goes on.
2. A session is a random number in a cookie, and a second one, the CSRF token, that the page must send with every
   change: another site can make a browser send the cookie, and cannot read the token.
3. Sessions live in memory, `SESSION_S` long, `MAX_SESSIONS_COUNT` at most: then the oldest ends.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Misconfigured

LEAST_SECRET_BYTES = 12
SESSION_S = 12 * 3600.0
MAX_SESSIONS_COUNT = 100
MAX_GUESSES_COUNT = 10
GUESSES_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """One browser that has signed in."""

    id: str
    csrf: str
    until: float


class ConsoleSessions:
    """All of them. Without a secret nobody can sign in."""

    def __init__(self, secret: str, now: Callable[[], float] = time.monotonic) -> None:
        if secret and len(secret.encode()) < LEAST_SECRET_BYTES:
            raise Misconfigured(f"the console's secret has fewer than {LEAST_SECRET_BYTES} bytes; make a longer one")
        self._secret = secret.encode()
        self._now = now
        self._sessions: OrderedDict[str, ConsoleSession] = OrderedDict()
        self._guesses: deque[float] = deque()

    @property
    def required(self) -> bool:
        """Whether there is a secret."""
        return bool(self._secret)

    @property
    def locked(self) -> bool:
        """Whether there were too many wrong guesses (rule 1)."""
        while self._guesses and self._now() - self._guesses[0] >= GUESSES_WINDOW_S:
            self._guesses.popleft()
        return len(self._guesses) >= MAX_GUESSES_COUNT

    def knows(self, given: str) -> bool:
        """Whether this is the secret."""
        if not self._secret or self.locked:
            return False
        right = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._secret)
        if not right:
            self._guesses.append(self._now())
        return right

    def begin(self) -> ConsoleSession:
        """Somebody has shown the secret."""
        session = ConsoleSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._now() + SESSION_S)
        self._sessions[session.id] = session
        while len(self._sessions) > MAX_SESSIONS_COUNT:
            self._sessions.popitem(last=False)
        return session

    def get(self, session_id: str) -> ConsoleSession | None:
        """The session, unless it is over."""
        session = self._sessions.get(session_id)
        if session is not None and session.until <= self._now():
            self.end(session_id)
            return None
        return session

    def end(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
