"""MariaDB servers for tests: each in a folder of its own, on a free loopback port, stopped by its own pid.

They run as the user that Debian's package made for it when we are root, and as ourselves else. Nothing is flushed to
disk unless a setting asks for it: what is tested is the death of processes, not of machines.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.postgresql.server import START_TIMEOUT, free_port

pymysql: Any = import_module("pymysql")  # it has no types

SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "16M",
    "max-connections": "300",
    "skip-log-bin": None,
    "skip-name-resolve": None,
}


def connect(port: int, **options: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", password="", connect_timeout=30, **options)


def program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or name


def identity() -> dict[str, Any]:
    """As whom a server runs: ourselves, unless we are root."""
    return {"user": "mysql", "group": "mysql", "extra_groups": []} if os.getuid() == 0 else {}


@dataclass(slots=True)
class Server:
    """One server; its data outlives a stop."""

    folder: Path
    port: int
    settings: dict[str, str | None] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [program("mariadbd"), "--no-defaults", f"--datadir={self.folder}/data", f"--port={self.port}"]
        # In a common tmpdir, a server that starts removes the temporary tables of those that run.
        words += [f"--socket={self.folder}/socket", f"--pid-file={self.folder}/pid", f"--tmpdir={self.folder}"]
        for name, value in {**SETTINGS, **self.settings}.items():
            words.append(f"--{name}" if value is None else f"--{name}={value}")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, **identity()
            )
        end = time.monotonic() + START_TIMEOUT
        while True:
            try:
                connect(self.port).close()
                return
            except pymysql.err.OperationalError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError(f"mariadbd did not start: {(self.folder / 'log').read_text()}") from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_TIMEOUT)
            self.process = None

    def url(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    def execute(self, text: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """The rows that one statement answers with."""
        with connect(self.port, database=database, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())


@contextmanager
def serving(settings: dict[str, str | None] | None = None) -> Iterator[Server]:
    """A server with these settings, for as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="hf-mariadb-"))
    if os.getuid() == 0:
        shutil.chown(folder, "mysql", "mysql")
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--skip-test-db"]
    install += ["--auth-root-authentication-method=normal", f"--tmpdir={folder}"]
    made = subprocess.run(install, capture_output=True, text=True, cwd=folder, **identity())
    if made.returncode:
        raise RuntimeError(f"mariadb-install-db failed: {made.stdout}{made.stderr}")
    server = Server(folder, free_port(), settings or {})
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running() -> Iterator[int]:
    """The port of a server, for as long as the block lasts."""
    with serving() as server:
        yield server.port
