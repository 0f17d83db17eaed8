"""What stands in front of the console: who may ask, and what a browser is told never to do.

1. Host. A name in it must be `localhost` or one that was allowed; an address is always right. A site whose name is made
   to point here (DNS rebinding) comes with its own name, and is refused with 421, whatever it asks for.
2. The secret. If there is one, all data needs it: the cookie of a session, or `Authorization: Bearer …` of a program.
   The page itself and its scripts hold no data, and come without.
3. Changes. A request that changes anything, and signing in, needs an `Origin` that is this very host. A cookie counts
   only together with the CSRF token of its session; a program that sends the secret itself needs no such token.
   Whatever else a browser says of itself (`Sec-Fetch-Site`) must fit.
4. Every response has the headers below: scripts and styles come from here and are files, no text is ever HTML (Trusted
   Types), nobody frames the page, nothing is kept in a cache.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusal import RequestRefused
from .sessions import ConsoleSession, ConsoleSessions

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
COOKIE = "holdfast-console"
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may do what. `hosts` are the names, beside `localhost`, that this console is known by."""

    sessions: ConsoleSessions
    hosts: frozenset[str] = field(default=frozenset())
    writable: bool = False

    def check_host(self, host: str) -> None:
        """Rule 1."""
        found = _HOST.fullmatch(host)
        name = "" if found is None else found[1].lower()
        if name not in self.hosts and name != "localhost" and not is_address(name):
            raise RequestRefused(
                421, f"this console is not known as {host[:80]!r}; start it with --allow-host NAME if it should be"
            )

    def session(self, request: Request) -> ConsoleSession | None:
        """The session of a browser."""
        return self.sessions.get(request.cookies.get(cookie_name(request), ""))

    def check_reader(self, request: Request) -> None:
        """Rule 2."""
        if self.sessions.required and self.session(request) is None and not self._by_secret(request):
            raise RequestRefused(401, "the console has a secret; sign in, or send it as Authorization: Bearer …")

    def check_origin(self, request: Request, *, needed: bool = True) -> None:
        """Rule 3, the first half."""
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise RequestRefused(403, "this request comes from another site")
        if origin is None and not needed:
            return
        if origin not in (f"http://{host}", f"https://{host}"):
            raise RequestRefused(
                403, f"this request does not come from the console's own page (Origin {str(origin)[:80]!r})"
            )

    def check_writer(self, request: Request) -> None:
        """Rule 3."""
        if not self.writable:
            raise RequestRefused(
                403, "this console only reads; start it with --allow-write and a secret to change anything"
            )
        by_secret = self._by_secret(request)
        session = self.session(request)
        if session is None and not by_secret:
            raise RequestRefused(401, "changes need the secret; sign in, or send it as Authorization: Bearer …")
        self.check_origin(request, needed=not by_secret)
        if not by_secret and not _same(
            request.headers.get("x-csrf-token", ""), "" if session is None else session.csrf
        ):
            raise RequestRefused(403, "the CSRF token is missing or wrong; reload the page")

    def check_secret(self, secret: str) -> None:
        """Whether somebody who signs in knows the secret."""
        if self.sessions.locked:
            raise RequestRefused(429, "too many wrong secrets; wait a minute")
        if not self.sessions.knows(secret):
            raise RequestRefused(401, "that is not the secret")

    def _by_secret(self, request: Request) -> bool:
        """Whether a program sends the secret itself; one that sends a wrong one is refused, whatever else it sends."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self.sessions.required:
            return False
        self.check_secret(secret.strip())
        return True


def _same(given: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def cookie_name(request: Request) -> str:
    """One for each port: cookies of one host are not kept apart by port."""
    return f"{COOKIE}-{request.url.port or request.url.scheme}"


def is_address(name: str) -> bool:
    """Whether a host is an address, which no DNS server can point elsewhere."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    return name == "localhost" or (is_address(name) and ip_address(name.strip("[]")).is_loopback)


class Guard:
    """The middleware: rule 1 and rule 4, for every request."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [each for each in message["headers"] if each[0].decode().lower() not in HEADERS]
                message["headers"] = [*headers, *_encoded(HEADERS.items())]
            await send(message)

        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            self._policy.check_host(Request(scope).headers.get("host", ""))
        except RequestRefused as refused:
            return await refused.response()(scope, receive, guarded)
        return await self._app(scope, receive, guarded)


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]
