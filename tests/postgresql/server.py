"""PostgreSQL servers for tests: each in a folder of its own, on a free loopback port, stopped by its own pid.

PostgreSQL does not run as root, so a root's tests run it as the user that Debian's package made for it. Nothing is
flushed to disk unless a setting asks for it: what is tested is the death of processes, not of machines.
"""

from __future__ import annotations

import os
import shutil
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

START_TIMEOUT = 120.0
"""Seconds for a server to start or stop: on a busy machine it is slow, not stuck."""

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "120",
    "max_wal_senders": "4",
    "wal_level": "replica",
    "hot_standby": "on",
    "autovacuum_naptime": "5s",
}


def program(name: str) -> str:
    """A program of PostgreSQL, which Debian keeps off the path."""
    found = shutil.which(name)
    if found is None:
        found = str(max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    return found


def identity() -> dict[str, Any]:
    """As whom a server runs: ourselves, unless we are root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


def new_folder(prefix: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Server:
    """A server on its port; `start` and `stop` may alternate."""

    folder: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, database: str = "postgres", port: int | None = None) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        self._launch()
        self.await_answer()

    def _launch(self) -> None:
        words = [program("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder)]
        for name, value in {**SETTINGS, "listen_addresses": "127.0.0.1", **self.settings}.items():
            words += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **identity())

    def await_answer(self) -> None:
        import psycopg

        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            assert self.process is not None
            if self.process.poll() is not None:
                if not self._orphans():
                    break
                time.sleep(0.02)  # sessions of a postmaster that was killed keep its memory until they notice
                self._launch()
                continue
            try:
                psycopg.connect(self.url(), connect_timeout=30).close()
            except psycopg.OperationalError:
                time.sleep(0.02)  # not there yet, or still recovering
            else:
                return
        raise RuntimeError(f"postgres did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _orphans(self) -> bool:
        """Whether it ended because sessions of the one before are still there."""
        return "pre-existing shared memory block" in (self.folder / "log").read_text()[-2000:]

    def backends(self) -> list[int]:
        """The process ids of holdfast's sessions."""
        rows = self.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast'")
        return [pid for (pid,) in rows]

    def execute(self, statement: str, *values: Any, database: str = "postgres") -> list[Any]:
        """One statement, on a connection of its own."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: at once but in order (SIGINT), without writing anything (SIGQUIT), or dead (SIGKILL)."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(START_TIMEOUT)
            self.process = None


def initialised(folder: Path, settings: dict[str, str]) -> Server:
    """A new server, not yet started."""
    words = [program("initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"]
    subprocess.run([*words, "--locale=C.UTF-8"], check=True, capture_output=True, cwd=folder, **identity())
    return Server(folder, free_port(), settings)


@contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server for as long as the block lasts."""
    folder = new_folder("hf-pg-")
    server = initialised(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)
