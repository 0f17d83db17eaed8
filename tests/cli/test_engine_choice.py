"""Which engine a command uses: announced if it is the default, and no read-only command creates a file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.harness import HOLDFAST, LONG, Cli


def holdfast(folder: Path, *arguments: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    """With a bare environment, as cron has it."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    if url is not None:
        environment["HOLDFAST_URL"] = url
    return subprocess.run(
        [HOLDFAST, *arguments], env=environment, capture_output=True, text=True, timeout=LONG, check=False
    )


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_an_error(tmp_path: Path, empty: str) -> None:
    for words in (["run", "job", "--", "true"], ["ls"], ["evict", "job", "1"]):
        done = holdfast(tmp_path, *words, url=empty)
        assert done.returncode == 64
        assert "HOLDFAST_URL is set and empty" in done.stderr
    assert not (tmp_path / "state").exists()


def test_nothing_named_means_a_file_of_this_machine_and_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "state" / "holdfast" / "locks.db"
    done = holdfast(tmp_path, "run", "job", "--", "true")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"no engine was named; using sqlite://{file}, which locks on this machine only" in done.stderr
    assert holdfast(tmp_path, "run", "--quiet", "job", "--", "true").stderr == ""
    assert holdfast(tmp_path, "ls", "--json").stderr == ""
    assert "no engine was named" not in holdfast(tmp_path, "ls", url=f"sqlite://{file}").stderr


def test_ls_names_its_engine(cli: Cli) -> None:
    assert cli.url in cli.run("ls").err
    with cli.locks.lock("job"):
        done = cli.run("ls")
    assert done.err == f"locks at {cli.url}\n"
    assert "locks at" not in done.out


@pytest.mark.parametrize("words", [["ls"], ["watch"], ["evict", "job", "1"], ["ask", "job"]])
def test_a_mistyped_path_is_not_made(tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "typo" / "locks.db"
    done = holdfast(tmp_path, *words, "--url", f"sqlite://{file}")
    assert done.returncode == 64
    assert "there is no lock file" in done.stderr
    assert not file.parent.exists()


def test_a_look_at_the_unused_file_of_this_user_makes_nothing(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no lock is held" in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_command_gets_the_url_as_it_was_given(tmp_path: Path) -> None:
    """With its password and made absolute: a nested `holdfast run` must reach the same engine."""
    shown = holdfast(
        tmp_path, "run", "--url", f"sqlite://{tmp_path}/a.db", "job", "--", "sh", "-c", "echo $HOLDFAST_URL"
    )
    assert shown.stdout == f"sqlite://{tmp_path}/a.db\n"
    nested = ["--", HOLDFAST, "run", "inner", "--", "sh", "-c", "echo $HOLDFAST_NAME"]
    assert holdfast(tmp_path, "run", "--url", f"sqlite://{tmp_path}/a.db", "outer", *nested).stdout == "inner\n"


def test_the_command_line_speaks_of_its_own_options(cli: Cli) -> None:
    with cli.locks.lock("job"):
        done = cli.run("run", "--busy", "fail", "job", "--", "true")
    assert done.code == 75
    assert "--timeout" in done.err
    assert "'holdfast ls job'" in done.err
    assert "timeout=" not in done.err
    assert "survey" not in done.err


def test_hold_at_least_keeps_the_name_closed(cli: Cli) -> None:
    assert cli.run("run", "--hold-at-least", "1m", "job", "--", "true").code == 0
    assert cli.run("run", "--hold-at-least", "1m", "--busy", "skip", "job", "--", "echo", "twice").out == ""
    (view,) = cli.json("ls", "job")
    assert view["holders"][0]["live"] is False


def test_lock_delay_is_handed_on(cli: Cli) -> None:
    """A holder that dies without a word leaves its name closed for that long."""
    run = cli.start("run", "--ttl", "1", "--lock-delay", "1m", "job", "--", "sh", "-c", "echo ready; sleep 60")
    assert run.line() == "ready"
    pid = cli.holder_of("job").pid
    os.kill(pid, 9)
    assert run.end().code == 76
    done = cli.run("run", "--timeout", "2", "job", "--", "true")
    assert done.code == 75


def test_waiting_for_the_lock_one_runs_under_is_said(cli: Cli) -> None:
    """A script that wraps itself twice would wait for ever, and nobody would know why."""
    inner = [HOLDFAST, "run", "--timeout", "0.2", "job", "--", "true"]
    done = cli.run("run", "job", "--", *inner)
    assert done.code == 75
    assert "'job' is held by the command that this one runs in" in done.err
    assert "runs in" not in cli.run("run", "--quiet", "job", "--", *inner[:2], "--quiet", *inner[2:]).err
    assert cli.run("run", "job", "--", HOLDFAST, "run", "other", "--", "true").err == ""


def test_the_longest_hold_is_called_by_its_option(cli: Cli) -> None:
    done = cli.run("run", "--max-hold", "0.2", "job", "--", "sleep", "60")
    assert done.code == 76
    assert "--max-hold" in done.err
    assert "max_hold" not in done.err
