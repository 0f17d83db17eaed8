"""The web server of a console: uvicorn, in a thread of its own, so that signals stay with whoever started it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from ..errors import Misconfigured
from .api import ConsoleApi
from .guard import Policy
from .service import ConsoleService

GRACE_S = 3


@contextmanager
def serving(
    service: ConsoleService,
    policy: Policy,
    listening: socket.socket,
    certificate: Path | None = None,
    key: Path | None = None,
) -> Iterator[threading.Thread]:
    """Survey and serve for as long as the body runs. The thread has ended early if the server could not start."""
    config = uvicorn.Config(
        ConsoleApi(service, policy).application(),
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:
        raise Misconfigured(f"the certificate or its key cannot be used: {error}") from error
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="holdfast-console-web", daemon=True)
    service.start()
    thread.start()
    try:
        yield thread
    finally:
        service.stop()
        server.should_exit = True
        thread.join()
