"""Every promise of holdfast's contract, with threads and with asyncio, on a server that is started for it."""

from __future__ import annotations

import subprocess
import sys

import holdfast.testing


class TestLockd(holdfast.testing.Contract):
    server: subprocess.Popen[str]

    @classmethod
    def setup_class(cls) -> None:
        command = [sys.executable, "-m", "holdfast_lockd", "--port", "0"]
        cls.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert cls.server.stdout is not None
        cls.url = cls.server.stdout.readline().strip()

    @classmethod
    def teardown_class(cls) -> None:
        cls.server.kill()
        cls.server.communicate()
