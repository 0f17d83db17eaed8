"""What stands between us and etcd's gateway, or in its place: lower-case headers, no JSON, no gateway at all."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.etcd.error_mapping import Unauthenticated, read
from holdfast.backends.etcd.http import parse
from holdfast.backends.etcd.rpc import Rejected
from holdfast.errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from tests.etcd.cluster import running

faces = pytest.mark.parametrize("face", ["sync", "asyncio"])


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """Something that answers every request with this; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                with link:
                    try:
                        while link.recv(65536):
                            link.sendall(reply)
                    except OSError:
                        pass  # gone

        threading.Thread(target=serve, daemon=True).start()
        host, port = server.getsockname()
        yield f"etcd://{host}:{port}"


def use(face: str, url: str) -> None:
    async def awaited() -> None:
        async with holdfast.aio.connect(url, request_timeout=2.0) as locks:
            await locks.lock("door").try_acquire()

    if face == "asyncio":
        asyncio.run(awaited())
    else:
        with holdfast.connect(url, request_timeout=2.0) as locks:
            locks.lock("door").try_acquire()


def page(status: str, text: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()


@faces
def test_a_cluster_without_a_gateway_is_misconfigured(face: str) -> None:
    with running(1, "--enable-grpc-gateway=false") as cluster:
        with pytest.raises(Misconfigured, match="gateway"):
            use(face, cluster.url)


@faces
@pytest.mark.parametrize("text", ["<html>Welcome</html>", "[]", "7", ""])
def test_a_page_that_is_no_answer_of_etcd_is_an_error_of_ours(face: str, text: str) -> None:
    with answering(page("200 OK", text)) as url, pytest.raises(BackendUnavailable, match="no answer of etcd"):
        use(face, url)


@faces
@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"])
def test_a_server_that_has_no_such_path_is_misconfigured(face: str, status: str) -> None:
    with answering(page(status, "404 page not found")) as url, pytest.raises(Misconfigured, match="gateway"):
        use(face, url)


@faces
@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "200 OK"])
def test_a_page_of_something_in_between_says_what_it_is(face: str, status: str) -> None:
    with answering(page(status, "upstream is away")) as url, pytest.raises(HoldfastError, match="upstream is away"):
        use(face, url)


@pytest.mark.parametrize("name", ["Content-Length", "content-length", "CONTENT-LENGTH"])
def test_names_of_headers_are_the_same_in_any_case(name: str) -> None:
    buffer = bytearray(f"HTTP/1.1 200 OK\r\nx: y\r\n{name}:2\r\n\r\n{{}}".encode())
    assert parse(buffer) == (200, b"{}")
    assert not buffer


def test_chunks_are_known_in_any_case() -> None:
    buffer = bytearray(b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nHTTP")
    assert parse(buffer) == (200, b"{}")
    assert buffer == b"HTTP"


def test_a_value_that_looks_like_a_header_is_none() -> None:
    buffer = bytearray(b"HTTP/1.1 200 OK\r\nx: Content-Length: 9\r\nContent-Length: 2\r\n\r\n{}")
    assert parse(buffer) == (200, b"{}")


def test_what_etcd_says_of_a_stream_is_read_as_of_anything_else() -> None:
    assert read(
        404, b'{"error":{"grpc_code":5,"http_code":404,"message":"etcdserver: requested lease not found"}}'
    ) == (Rejected(5, "etcdserver: requested lease not found"))
    with pytest.raises(Unauthenticated):
        read(400, b'{"error":"etcdserver: revision of auth store is old","code":3}')
    with pytest.raises(OutcomeUnknown, match="no answer of etcd"):
        read(200, b"<html>")
