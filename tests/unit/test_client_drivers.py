"""Threads and asyncio carry out connection ops: many flows on one connection, with and without TLS, on real sockets."""

from __future__ import annotations

import asyncio
import socketserver
import ssl
import struct
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast._core.flow import NOW, Connection, Endpoint, Flow, Open
from holdfast.aio.client_driver import run_client
from holdfast.backends.connections.multiplexer import Multiplexer, Pending
from holdfast.clock import now as clock
from holdfast.sync.client_driver import Monitor

FLOWS, ROUNDS = 8, 50


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while head := self.rfile.read(4):
            (size,) = struct.unpack("!I", head)
            self.wfile.write(head + self.rfile.read(size))


def self_signed(folder: Path) -> tuple[Path, Path]:
    made = folder / "cert.pem", folder / "key.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=echo",
    ]
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run(["openssl", *words, *more], check=True, capture_output=True, timeout=60)
    return made


@pytest.fixture(params=["plain", "tls"])
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Endpoint]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Echo) as server:
        tls = None
        if request.param == "tls":
            tls = ssl.create_default_context()
            theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            theirs.load_cert_chain(*self_signed(tmp_path))
            server.socket = theirs.wrap_socket(server.socket, server_side=True)
            tls.load_verify_locations(tmp_path / "cert.pem")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Endpoint("127.0.0.1", server.server_address[1], tls=tls)
        server.shutdown()


class Asked(Pending):
    __slots__ = ("answer",)
    answer: bytes


class EchoClient:
    """Frames with their length before them, answered in the order in which they were sent."""

    def __init__(self, connection: Connection) -> None:
        self._unread = b""
        self._asked: deque[Asked] = deque()
        self.multiplexer = Multiplexer(connection, self._feed, self._lost)

    def _feed(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= 4:
            (size,) = struct.unpack("!I", self._unread[:4])
            if len(self._unread) < 4 + size:
                return
            asked = self._asked.popleft()
            asked.answer, self._unread = self._unread[4 : 4 + size], self._unread[4 + size :]
            self.multiplexer.finish(asked)

    def _lost(self, error: OSError) -> None:
        while self._asked:
            self.multiplexer.finish(self._asked.popleft())

    def ask(self, text: bytes) -> Flow[bytes]:
        now: float = yield NOW
        asked = Asked()
        self._asked.append(asked)
        assert (yield from self.multiplexer.exchange(asked, struct.pack("!I", len(text)) + text, now + 30))
        return asked.answer

    def ask_often(self, number: int) -> Flow[None]:
        for turn in range(ROUNDS):
            text = f"{number}/{turn} ".encode() * (1 + 997 * (turn % 7) * number)
            assert (yield from self.ask(text)) == text


def opened(endpoint: Endpoint) -> Flow[EchoClient]:
    now: float = yield NOW
    return EchoClient((yield Open(endpoint, now + 30)))


def test_many_threads_on_one_connection_each_get_their_own_answer(endpoint: Endpoint) -> None:
    monitor = Monitor()
    client = monitor.run(opened(endpoint))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            monitor.run(client.ask_often(number))
        except BaseException as error:  # noqa: BLE001  raised below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(FLOWS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    client.multiplexer.connection.close()
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_many_tasks_on_one_connection_each_get_their_own_answer(endpoint: Endpoint) -> None:
    async def program() -> None:
        client = await run_client(opened(endpoint), drain=False)
        async with asyncio.timeout(60):
            await asyncio.gather(*(run_client(client.ask_often(number), drain=True) for number in range(FLOWS)))
        client.multiplexer.connection.close()
        await asyncio.sleep(0)

    asyncio.run(program())


def test_an_op_ends_at_its_deadline_and_the_connection_can_be_used_after_it(endpoint: Endpoint) -> None:
    def wait_in_vain(client: EchoClient) -> Flow[bool]:
        now: float = yield NOW
        return (yield from client.multiplexer.until(Asked(), now + 0.05))

    async def with_tasks() -> bytes:
        client = await run_client(opened(endpoint), drain=False)
        assert not await run_client(wait_in_vain(client), drain=True)
        answer = await run_client(client.ask(b"still there"), drain=True)
        client.multiplexer.connection.close()
        await asyncio.sleep(0)
        return answer

    monitor = Monitor()
    client = monitor.run(opened(endpoint))
    began = clock()
    assert not monitor.run(wait_in_vain(client))
    assert clock() >= began + 0.05
    assert monitor.run(client.ask(b"still there")) == b"still there"
    client.multiplexer.connection.close()
    assert asyncio.run(with_tasks()) == b"still there"
