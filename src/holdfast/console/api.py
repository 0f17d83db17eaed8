"""The web application: the page, the JSON behind it, the stream of changes, and the two things that can be changed.

docs/console.md describes every address. What is not listed here does not exist: the files of the page are read once and
served by name, so no path leads elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..errors import BackendUnavailable, HoldfastError, Misconfigured
from ..model import check_name, check_token
from ..observe.log_exception import log_exception
from .guard import Guard, Policy, cookie_name
from .pictures import PageOf
from .refusal import RequestRefused
from .service import ConsoleService, encode
from .sessions import SESSION_S

FILES = {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        (
            *("format.js", "dom.js", "claims.js", "locks.js", "timeline.js", "lock.js", "groups.js", "figures.js"),
            *("session.js", "stream.js", "main.js"),
        ),
        "text/javascript; charset=utf-8",
    ),
}
MAX_BODY_BYTES = 16 * 1024
MAX_STREAMS_COUNT = 64
HEARTBEAT_S = 15.0
RETRY_MS = 2000

Endpoint = Callable[[Request], Awaitable[Response]]


class ConsoleApi:
    """The endpoints of one console."""

    def __init__(self, service: ConsoleService, policy: Policy) -> None:
        self._service, self._policy = service, policy
        self._files = {name: _file(name) for name in FILES}
        self._streams = 0

    def application(self) -> Starlette:
        def read(endpoint: Endpoint) -> Endpoint:
            return partial(self._answer, self._policy.check_reader, endpoint)

        def write(endpoint: Endpoint) -> Endpoint:
            return partial(self._answer, self._policy.check_writer, endpoint)

        def anybody(endpoint: Endpoint) -> Endpoint:
            return partial(self._answer, lambda _: None, endpoint)

        kinds = [Route(f"/api/{kind}", read(partial(self._picture, kind))) for kind in self._service.kinds]
        return Starlette(
            routes=[
                Route("/", anybody(partial(self._page, "index.html"))),
                *(Route(f"/page/{name}", anybody(partial(self._page, name))) for name in FILES),
                Route("/api/session", anybody(self._session)),
                Route("/api/session", anybody(self._sign_in), methods=["POST"]),
                Route("/api/session", anybody(self._sign_out), methods=["DELETE"]),
                Route("/api/status", read(self._status)),
                Route("/api/stream", read(self._stream)),
                *kinds,
                Route("/api/evict", write(self._evict), methods=["POST"]),
                Route("/api/ask", write(self._ask), methods=["POST"]),
            ],
            middleware=[Middleware(Guard, policy=self._policy)],
        )

    async def _answer(self, check: Callable[[Request], None], endpoint: Endpoint, request: Request) -> Response:
        """The one place where errors become a status."""
        try:
            check(request)
            return await endpoint(request)
        except RequestRefused as refused:
            return refused.response()
        except Misconfigured as error:
            return RequestRefused(400, str(error)).response()
        except BackendUnavailable as error:
            return RequestRefused(503, str(error)).response()
        except HoldfastError as error:
            return RequestRefused(409, str(error)).response()
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:  # noqa: BLE001 - a bug of ours: told in the log, and never to a browser
            log_exception("the console could not answer %s", request.url.path)
            return RequestRefused(500, "a bug in holdfast; the console's log says more").response()

    # What is shown

    async def _page(self, name: str, _: Request) -> Response:
        return Response(self._files[name], headers={"content-type": FILES[name]})

    async def _status(self, _: Request) -> Response:
        return _json(self._service.status())

    async def _picture(self, kind: str, request: Request) -> Response:
        return _json(self._service.picture(kind, PageOf.read(request.query_params)))

    async def _stream(self, request: Request) -> Response:
        """Server-sent events: a picture at once, and one after each survey that shows something else."""
        kind, page = request.query_params.get("of", "locks"), PageOf.read(request.query_params)
        self._service.picture(kind, page)  # what is wrong with the query is told now
        if self._streams >= MAX_STREAMS_COUNT:
            raise RequestRefused(503, f"{MAX_STREAMS_COUNT} browsers are being served already; close one")
        return StreamingResponse(self._events(kind, page, request), headers={"content-type": "text/event-stream"})

    async def _events(self, kind: str, page: PageOf, request: Request) -> AsyncIterator[str]:
        self._streams += 1
        try:
            yield f"retry: {RETRY_MS}\n\n"
            while not self._service.closed:
                version, message = self._service.message(kind, page)
                yield f"id: {version}\nevent: picture\ndata: {message}\n\n"
                while not self._service.closed and self._service.watcher.snapshot.version == version:
                    try:
                        await asyncio.wait_for(self._service.changed(), HEARTBEAT_S)
                    except TimeoutError:
                        yield ": still here\n\n"
                self._policy.check_reader(request)  # a session that has ended sees nothing more
        except RequestRefused:
            return
        finally:
            self._streams -= 1

    # The session

    async def _session(self, request: Request) -> Response:
        session = self._policy.session(request)
        return _json(
            {
                "required": self._policy.sessions.required,
                "signed_in": session is not None,
                "csrf": None if session is None else session.csrf,
                "writable": self._policy.writable,
            }
        )

    async def _sign_in(self, request: Request) -> Response:
        self._policy.check_origin(request)
        self._policy.check_secret(str((await _body(request)).get("secret", "")))
        session = self._policy.sessions.begin()
        response = _json({"signed_in": True, "csrf": session.csrf})
        secure = request.headers.get("origin", "").startswith("https://")
        response.set_cookie(
            cookie_name(request), session.id, max_age=int(SESSION_S), httponly=True, samesite="strict", secure=secure
        )
        return response

    async def _sign_out(self, request: Request) -> Response:
        self._policy.check_origin(request)
        if (session := self._policy.session(request)) is not None:
            self._policy.sessions.end(session.id)
        response = _json({"signed_in": False})
        response.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
        return response

    # What is changed

    async def _evict(self, request: Request) -> Response:
        name, token = await _hold(request)
        evicted = await asyncio.to_thread(self._service.actions.evict, name, token)
        if evicted:
            self._service.watcher.mark(name, "evicted", f"token {token} was evicted from this console", token)
        self._service.watcher.hurry()
        return _json({"name": name, "token": str(token), "evicted": evicted})

    async def _ask(self, request: Request) -> Response:
        name, token = await _hold(request)
        asked = await asyncio.to_thread(self._service.actions.ask, name, token)
        if asked:
            self._service.watcher.mark(name, "asked", f"token {token} was asked from this console to give way", token)
        self._service.watcher.hurry()
        return _json({"name": name, "token": str(token), "asked": asked})


async def _body(request: Request) -> dict[str, Any]:
    """A JSON object of bounded size. Its type is asked for, because a form of another site cannot have it."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(415, "send JSON, with Content-Type: application/json")
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MAX_BODY_BYTES:
            raise RequestRefused(413, f"at most {MAX_BODY_BYTES} bytes are read")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "that is not JSON") from None
    if not isinstance(body, dict):
        raise RequestRefused(400, "send a JSON object")
    return body


async def _hold(request: Request) -> tuple[str, int]:
    """The hold that is meant: its name and its token, so that no newer holder is hit by mistake."""
    body = await _body(request)
    name, token = body.get("name"), body.get("token")
    check_name(name)  # type: ignore[arg-type]  # it says what is wrong with it
    if isinstance(token, str) and token.isascii() and token.isdigit() and len(token) < 40:
        token = int(token)
    return str(name), check_token(token, str(name))  # type: ignore[arg-type]  # the same


def _json(data: object) -> Response:
    return Response(encode(data), headers={"content-type": "application/json"})


def _file(name: str) -> bytes:
    data = pkgutil.get_data(__package__, f"page/{name}")
    if data is None:
        raise Misconfigured(f"{name} is missing beside {__name__}; install holdfast anew")
    return data
