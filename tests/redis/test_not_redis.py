"""Something else answers where Redis should: that is said, and to whom."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from holdfast.errors import Misconfigured
from tests.redis.faces import both, pair

HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
SSH = b"SSH-2.0-OpenSSH_9.2\r\n"


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Answers whatever it is told with the same words."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                with link:
                    link.recv(1000)
                    link.sendall(request.param)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("port", [HTTP, SSH], indirect=True)
@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}", "redis://:x@127.0.0.1:{}", "redis://127.0.0.1:{}?protocol=2"])
@both
def test_another_service_is_named_as_the_mistake(face: str, port: int, url: str) -> None:
    with pytest.raises(Misconfigured, match=f"127.0.0.1:{port} is not Redis"):
        pair(face, url.format(port), request_timeout=2)
