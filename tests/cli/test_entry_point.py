"""`holdfast` itself: versions, help, errors in one line, and what it says when its extra is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.harness import HOLDFAST, LONG, Cli

COMMANDS = ("run", "ls", "watch", "evict", "schema", "demo", "torture")


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    assert cli.run("--version").out == f"holdfast {version('holdfast')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples(cli: Cli, command: str) -> None:
    done = cli.run(command, "--help")
    assert done.code == 0
    assert "Examples:" in done.out
    assert f"holdfast {command}" in done.out.split("Examples:")[1]


def test_help_names_every_exit_code(cli: Cli) -> None:
    text = cli.run("--help").out
    for code in ("64", "69", "75", "76", "126", "127", "128 + N"):
        assert code in text


def test_no_command_is_help_and_64(cli: Cli) -> None:
    done = cli.run()
    assert (done.code, done.out) == (64, "")
    assert "Commands:" in done.err


def test_a_command_that_was_meant_is_named(cli: Cli) -> None:
    done = cli.run("onec")
    assert done.code == 64
    assert done.err.startswith("holdfast: no such command 'onec'")
    assert done.err.endswith("ee 'holdfast --help'\n")
    assert "?;" not in done.err


def test_an_unknown_command_is_one_line(cli: Cli) -> None:
    done = cli.run("juggle")
    assert done.code == 64
    assert done.err == "holdfast: no such command 'juggle'; see 'holdfast --help'\n"


@pytest.mark.parametrize("arguments", [["ls"], ["watch"], ["evict", "job", "7"]])
def test_an_engine_out_of_reach_is_one_line_and_69(cli: Cli, arguments: list[str]) -> None:
    (cli.folder / "folder").mkdir()
    done = cli.run(*arguments, "--url", f"sqlite://{cli.folder}/folder")
    assert done.code == 69
    assert done.err.startswith("holdfast: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["ls"], ["watch"], ["evict", "job", "7"]])
def test_a_bad_url_is_one_line_and_64(cli: Cli, arguments: list[str]) -> None:
    done = cli.run(*arguments, "--url", "carrier://pigeon")
    assert done.code == 64
    assert done.err.count("\n") == 1
    assert "Traceback" in cli.run(*arguments, "--url", "carrier://pigeon", "--debug").err


@pytest.mark.parametrize(("missing", "command"), [("click", "--version"), ("rich", "ls")])
def test_without_the_extra_one_line_says_how_to_get_it(cli: Cli, missing: str, command: str) -> None:
    block = (
        "import sys, os\n"
        f"sys.modules[{missing!r}] = None\n"
        "sys.stdout.isatty = lambda: True\n"
        f"from holdfast.cli import main; main([{command!r}])\n"
    )
    with cli.locks.lock("job"):
        done = subprocess.run(
            [sys.executable, "-c", block], env=cli.environment, capture_output=True, text=True, timeout=20, check=False
        )
    assert done.returncode == 78
    assert done.stderr == f"holdfast: the command line needs {missing}: pip install 'holdfast[cli]'\n"


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_bug_is_told_as_one(cli: Cli, debug: list[str]) -> None:
    plant = (
        "import holdfast.cli.ls as module\n"
        "def broken(*_): raise RuntimeError('planted')\n"
        "module.coordinator_for_viewing = broken\n"
        f"from holdfast.cli import main; main(['ls', *{debug!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", plant], env=cli.environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 70
    assert done.stderr.endswith("holdfast: a bug in holdfast: RuntimeError: planted; --debug shows where\n")
    assert ("Traceback" in done.stderr) == bool(debug)


def test_run_leaves_nothing_open(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-m", "holdfast.cli", "run", "job", "--", "true"],
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_run_does_not_load_rich(cli: Cli) -> None:
    program = (
        "import sys\nfrom holdfast.cli.app import invoke\ncode = invoke(['run', 'job', '--', 'true'])\n"
        "print(code, 'rich' in sys.modules, 'sqlite3' in sys.modules, 'threading' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=cli.environment, capture_output=True, text=True, timeout=20, check=True
    )
    code, rich, sqlite, _ = done.stdout.split()
    assert (code, rich, sqlite) == ("0", "False", "False"), "the wrapper itself has no engine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_written_is_no_bug(cli: Cli) -> None:
    with cli.locks.lock("job"), Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [HOLDFAST, "ls"],
            env=cli.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LONG,
            check=False,
        )
    assert done.returncode == 74
    assert "holdfast: the output cannot be written: No space left on device" in done.stderr
    assert "bug" not in done.stderr
