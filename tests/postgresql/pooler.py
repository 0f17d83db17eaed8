"""PgBouncer for tests: in front of a server, on a free loopback port, stopped by its own pid."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.postgresql.server import START_TIMEOUT, Server, free_port, identity, new_folder

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 8
max_client_conn = 300
ignore_startup_parameters = extra_float_digits,options
logfile = {folder}/log
"""


@dataclass
class Pooler:
    folder: Path
    port: int
    server: Server
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, database: str = "postgres") -> str:
        return self.server.url(database, self.port)

    def start(self) -> None:
        import psycopg

        words = [shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") or "pgbouncer", str(self.folder / "settings")]
        self.process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **identity()
        )
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end and self.process.poll() is None:
            try:
                psycopg.connect(self.url(), connect_timeout=30).close()
            except psycopg.OperationalError:
                time.sleep(0.02)  # not there yet
            else:
                return
        raise RuntimeError(f"pgbouncer did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(START_TIMEOUT)
            self.process = None


@contextmanager
def pooling(server: Server, mode: str = "transaction") -> Iterator[Pooler]:
    """A pooler in front of a server for as long as the block lasts."""
    folder = new_folder("hf-pool-")
    pooler = Pooler(folder, free_port(), server)
    text = SETTINGS.format(server=server.port, port=pooler.port, mode=mode, folder=folder)
    (folder / "settings").write_text(text)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.stop()
        shutil.rmtree(folder, ignore_errors=True)
