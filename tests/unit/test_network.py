"""The bad network of the contract does what it says, seen with plain sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from holdfast.testing import Network
from holdfast.testing.proxy import rewritten


@pytest.fixture
def network() -> Iterator[Network]:
    """In front of an echo."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(near,), daemon=True).start()

        def echo(near: socket.socket) -> None:
            with near:
                try:
                    while data := near.recv(100):
                        near.sendall(data)
                except OSError:
                    pass  # reset

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        network = Network.start(f"echo://127.0.0.1:{listener.getsockname()[1]}/path")
        try:
            yield network
        finally:
            network.close()
            network.close()  # does nothing
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def dial(network: Network, timeout: float = 10.0) -> socket.socket:
    port = int(network.url.removeprefix("echo://127.0.0.1:").removesuffix("/path"))
    return socket.create_connection(("127.0.0.1", port), timeout)


def whole(link: socket.socket, size: int) -> bytes:
    """So many bytes; MSG_WAITALL does not wait for all on a socket that has a timeout."""
    data = b""
    while len(data) < size and (piece := link.recv(size - len(data))):
        data += piece
    return data


def test_it_flows_and_dribbles(network: Network) -> None:
    with dial(network) as link:
        link.sendall(b"hello")
        assert whole(link, 5) == b"hello"
        network.dribble()
        link.sendall(b"hello")
        assert whole(link, 5) == b"hello"


def test_silence_loses_nothing(network: Network) -> None:
    with dial(network) as old:
        old.sendall(b"a")
        assert old.recv(1) == b"a"
        network.silence()
        with dial(network) as new:
            for link in (old, new):
                link.sendall(b"b")
                link.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    link.recv(1)
                link.settimeout(10.0)
            network.flow()
            assert (old.recv(1), new.recv(1)) == (b"b", b"b")


def test_a_muted_connection_is_reset_afterwards(network: Network) -> None:
    with dial(network) as link:
        network.mute()
        link.sendall(b"a")
        link.settimeout(0.2)
        with pytest.raises(TimeoutError):
            link.recv(1)
        network.flow()
        link.settimeout(10.0)
        with pytest.raises(ConnectionResetError):
            link.recv(1)


def test_reset_and_end(network: Network) -> None:
    with dial(network) as one:
        one.sendall(b"a")
        assert one.recv(1) == b"a"
        network.reset()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with dial(network) as other:
        other.sendall(b"a")
        assert other.recv(1) == b"a"
        assert network.end_idle() == 1
        assert other.recv(1) == b""


def test_a_url_that_names_no_port() -> None:
    for url in ("memory://here", "unix:///path", "redis://[::1]"):
        with pytest.raises(ValueError, match="network=False"):
            rewritten(url, lambda host, port: (host, port))
    assert rewritten("a://u:p@h:1,[::1]:2?x=y:3", lambda host, port: ("z", port)) == "a://u:p@z:1,z:2?x=y:3"
