"""`holdfast console`: safe as it starts, or it does not start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from holdfast.torture.sandbox.certificates import certificates
from holdfast.torture.sandbox.sandbox import Sandbox
from tests.cli.conftest import cli as cli  # the fixture
from tests.cli.harness import HOLDFAST, LONG, Cli
from tests.console.served import SECRET


class Started:
    """The command, with where it says that it listens."""

    def __init__(self, cli: Cli, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [HOLDFAST, "console", "--listen", "127.0.0.1:0", *words],
            env=cli.environment | environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        found = re.search(r"https?://\S+/", self.said)
        assert found is not None, self.said + self.process.communicate()[1]
        self.address = found[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=LONG)
        return self.process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop_also_while_a_browser_listens(cli: Cli, number: int) -> None:
    with cli.locks.lock("orders/7"):
        started = Started(cli, "orders/")
        with urllib.request.urlopen(f"{started.address}api/stream", timeout=LONG) as stream:
            assert stream.readline() == b"retry: 2000\n"
            assert started.stop(number) == 0


def test_it_listens_at_loopback_unless_told_otherwise(cli: Cli) -> None:
    assert "127.0.0.1:8484" in cli.run("console", "--help").out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--listen", "0.0.0.0:0"], "lets other machines ask, and there is no secret"),
        (["--listen", "[::]:0"], "lets other machines ask, and there is no secret"),
        (["--listen", "console.example:0"], "lets other machines ask, and there is no secret"),
        (["--allow-write"], "--allow-write needs a secret"),
        (["--listen", "nowhere"], "give a host and a port"),
        (["--metrics", "file:///etc/passwd"], "give http://HOST:PORT/metrics"),
        (["--limit", "mail"], "give NAME=RATE"),
        (["--limit", "mail=often"], "the rate of 'mail'"),
    ],
)
def test_what_is_not_safe_or_makes_no_sense_is_refused_at_once(cli: Cli, words: list[str], what: str) -> None:
    done = cli.run("console", *words)
    assert (done.code, done.out) == (64, "")
    assert what in done.err


def test_a_short_or_empty_secret_is_refused(cli: Cli, tmp_path: Path) -> None:
    for text, what in (("hunter2\n", "fewer than 12 bytes"), ("\n", "is empty")):
        (tmp_path / "secret").write_text(text)
        done = cli.run("console", "--secret-file", str(tmp_path / "secret"))
        assert done.code == 64
        assert what in done.err
        assert "hunter2" not in done.err


@pytest.mark.parametrize("by", ["file", "variable"])
def test_a_secret_from_a_file_or_from_the_environment_guards_all(cli: Cli, tmp_path: Path, by: str) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    words = ["--secret-file", str(tmp_path / "secret"), "--allow-write"] if by == "file" else []
    environment = {} if by == "file" else {"HOLDFAST_CONSOLE_SECRET": SECRET}
    started = Started(cli, *words, **environment)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{started.address}api/locks", timeout=LONG)
    right = urllib.request.Request(f"{started.address}api/status", headers={"Authorization": f"Bearer {SECRET}"})
    with urllib.request.urlopen(right, timeout=LONG) as answer:
        assert (b'"writable":true' in answer.read()) == (by == "file")
    assert SECRET not in started.said
    assert started.stop() == 0


def test_a_port_that_is_taken_is_told(cli: Cli) -> None:
    started = Started(cli)
    taken = started.address.removeprefix("http://").rstrip("/")
    done = cli.run("console", "--listen", taken)
    assert done.code == 64
    assert "nobody can listen at" in done.err
    assert started.stop() == 0


def test_https_with_a_certificate_of_ones_own(cli: Cli) -> None:
    with Sandbox() as sandbox:
        made = certificates(sandbox, "127.0.0.1")
        started = Started(cli, "--certificate", str(made.shown), "--key", str(made.key))
        assert started.address.startswith("https://")
        with urllib.request.urlopen(f"{started.address}api/status", timeout=LONG, context=made.context()) as answer:
            assert answer.status == 200
        assert started.stop() == 0
    done = cli.run("console", "--listen", "127.0.0.1:0", "--certificate", str(cli.file))
    assert done.code == 64
    assert "certificate" in done.err


def test_without_the_extra_it_says_what_to_install(cli: Cli) -> None:
    program = "import sys; sys.modules['starlette'] = None; from holdfast.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "console"], env=cli.environment, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 64
    assert "pip install 'holdfast[console]'" in done.stderr


def test_neither_the_library_nor_other_commands_load_it() -> None:
    program = (
        "import sys, holdfast.cli.app; print([name for name in sys.modules if name.partition('.')[0] in sys.argv])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "starlette", "uvicorn", "anyio"], capture_output=True, text=True, check=True,
        env=os.environ, timeout=LONG,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
