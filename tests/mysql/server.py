"""A MariaDB server for tests: in a folder of its own, on a free loopback port, stopped by its own pid.

It runs as the user that Debian's package made for it when we are root, and as ourselves else.
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
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.postgresql.server import START_TIMEOUT, free_port

pymysql: Any = import_module("pymysql")  # it has no types


def connect(port: int, **options: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", password="", connect_timeout=5, **options)


def _program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or name


@contextmanager
def running() -> Iterator[int]:
    """The port of a server, for as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="hf-mariadb-"))
    root = os.getuid() == 0
    user = "mysql" if root else str(os.getuid())
    if root:
        shutil.chown(folder, "mysql", "mysql")
    who: dict[str, Any] = {"user": "mysql", "group": "mysql", "extra_groups": []} if root else {}
    data, port = folder / "data", free_port()
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    subprocess.run([*install, "--skip-test-db"], check=True, capture_output=True, cwd=folder, **who)
    words = [_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--port={port}", f"--socket={folder}/socket"]
    words += ["--bind-address=127.0.0.1", f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
    words += ["--innodb-buffer-pool-size=16M", "--skip-log-bin", "--skip-name-resolve"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder, **who)
    try:
        end = time.monotonic() + START_TIMEOUT
        while True:
            try:
                connect(port).close()
                break
            except pymysql.err.OperationalError:
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError(f"mariadbd did not start as {user}: {(folder / 'log').read_text()}") from None
                time.sleep(0.02)
        yield port
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)
