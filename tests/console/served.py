"""A console for tests: in this process, on a free port of loopback, with what HTTP says word for word."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import holdfast
from holdfast.console.guard import Policy
from holdfast.console.server import serving
from holdfast.console.service import ConsoleService, service_for
from holdfast.console.sessions import ConsoleSessions
from tests.cli.harness import LONG, eventually

SECRET = "correct horse battery"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A running console."""

    service: ConsoleService
    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """One request. Headers are as they are given: none is added but Host, and the type of a body."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Host": self.host} | ({} if body is None else {"Content-Type": "application/json"}) | given
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            for name, value in given.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def sign_in(self) -> dict[str, str]:
        """The headers that the page sends with a change, once somebody has signed in."""
        answer = self.ask("POST", "/api/session", {"secret": SECRET}, Origin=self.url)
        assert answer.status == 200, answer
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {"Origin": self.url, "Cookie": cookie, "X_CSRF_Token": answer.json["csrf"]}

    @contextmanager
    def stream(self, path: str) -> Iterator[HTTPResponse]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            connection.request("GET", path)
            yield connection.getresponse()
        finally:
            connection.close()

    def seen(self) -> None:
        """Wait until a survey that begins now is shown."""
        version = self.service.watcher.snapshot.version
        self.service.watcher.hurry()
        eventually(lambda: self.service.watcher.snapshot.version > version + 1)


def pictures(stream: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream."""
    while line := stream.readline():
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


@contextmanager
def served(
    locks: holdfast.Coordinator,
    url: str,
    *,
    secret: str = "",
    writable: bool = False,
    hosts: frozenset[str] = frozenset(),
    interval: float = 0.05,
    metrics: tuple[str, ...] = (),
    limits: tuple[str, ...] = (),
    fences: tuple[str, ...] = (),
) -> Iterator[Served]:
    service = service_for(
        locks, url, "holdfast", interval=interval, writable=writable, metrics=metrics, limits=limits, fences=fences
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with serving(service, Policy(ConsoleSessions(secret), hosts, writable), listening):
            console = Served(service, listening.getsockname()[1])
            console.seen()
            yield console
