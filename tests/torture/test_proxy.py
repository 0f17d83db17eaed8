"""The network between clients and servers does what it is told, from the moment on that an order returns."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.torture.proxy import ProxyNetwork
from holdfast.torture.sandbox import Sandbox


@contextmanager
def echo() -> Iterator[int]:
    """A server that sends back what it gets, and counts it in `got`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(link: socket.socket) -> None:
        with link:
            try:
                while data := link.recv(1024):
                    got.append(data)
                    link.sendall(data)
            except OSError:
                pass  # the other side has gone

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(link,), daemon=True).start()

    got.clear()
    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


got: list[bytes] = []


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("hf-proxy-") as sandbox:
        yield sandbox


@pytest.fixture
def network(sandbox: Sandbox) -> ProxyNetwork:
    return ProxyNetwork(sandbox)


@contextmanager
def dialled(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        yield link


def said(link: socket.socket, to_json: bytes) -> bytes:
    link.sendall(to_json)
    return link.recv(100)


def silent(link: socket.socket) -> bool:
    link.settimeout(0.2)
    try:
        return link.recv(100) != b"" and False
    except TimeoutError:
        return True
    finally:
        link.settimeout(20)


def test_what_was_held_arrives_late_and_whole(network: ProxyNetwork) -> None:
    with echo() as server, dialled(network.open("c", "n", "127.0.0.1", server)) as link:
        assert said(link, b"one") == b"one"
        network.hold("c>*")
        link.sendall(b"two")
        assert silent(link)
        assert got == [b"one"]
        network.heal()
        assert link.recv(100) == b"two"


def test_a_request_of_a_client_that_has_given_up_arrives_all_the_same(network: ProxyNetwork) -> None:
    with echo() as server:
        with dialled(network.open("c", "n", "127.0.0.1", server)) as link:
            assert said(link, b"one") == b"one"
            network.hold("c>*")
            link.sendall(b"late")
        network.heal()
        end = time.monotonic() + 20
        while b"late" not in got:
            assert time.monotonic() < end


def test_a_mute_link_carries_requests_only_and_its_connections_are_reset_when_it_heals(network: ProxyNetwork) -> None:
    with echo() as server, dialled(network.open("c", "n", "127.0.0.1", server)) as link:
        assert said(link, b"one") == b"one"
        network.mute("c>n")
        link.sendall(b"two")
        assert silent(link)
        assert got == [b"one", b"two"]
        network.heal()
        with pytest.raises(ConnectionResetError):
            link.recv(100)


def test_a_lost_reply_takes_its_connection_along(network: ProxyNetwork) -> None:
    with echo() as server:
        port = network.open("c", "n", "127.0.0.1", server)
        with dialled(port) as link:
            assert said(link, b"one") == b"one"
            network.lose("c>n")
            link.sendall(b"two")
            with pytest.raises(ConnectionResetError):
                link.recv(100)
        assert got[-1] == b"two", "the request was carried out"
        with dialled(port) as link:
            assert said(link, b"three") == b"three"


def test_one_client_can_be_cut_off_alone(network: ProxyNetwork) -> None:
    with echo() as server:
        ours, theirs = (network.open(client, "n", "127.0.0.1", server) for client in "ab")
        with dialled(ours) as a, dialled(theirs) as b:
            assert said(a, b"one") == said(b, b"one") == b"one"
            network.hold("a>*")
            a.sendall(b"two")
            assert said(b, b"two") == b"two"
            assert silent(a)


def test_reset_ends_connections_and_lead_goes_elsewhere(network: ProxyNetwork) -> None:
    with echo() as first, echo() as second:
        port = network.open("c", "n", "127.0.0.1", first)
        with dialled(port) as link:
            assert said(link, b"one") == b"one"
            network.reset("*")
            with pytest.raises(ConnectionResetError):
                link.recv(100)
        network.lead("c>n", second)
        with dialled(port) as link:
            assert said(link, b"two") == b"two"


def test_a_server_that_is_not_there_resets(network: ProxyNetwork) -> None:
    with echo() as server:
        port = network.open("c", "n", "127.0.0.1", server)
    with pytest.raises(ConnectionResetError), dialled(port) as link:  # it may come before the dialling has ended
        link.recv(100)
