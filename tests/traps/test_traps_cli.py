"""TRAPS 12: command-line wrappers that swallow exit codes, keep signals, and leave processes behind."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.cli import commands
from tests.cli.conftest import cli as cli  # a fixture
from tests.cli.harness import HOLDFAST, Cli, alive, eventually, kill


@pytest.mark.parametrize("code", [0, 1, 3, 75, 76, 127, 255])
def test_exit_code_is_passed_through(cli: Cli, code: int) -> None:
    """consul#947: exit code swallowed."""
    done = cli.run("run", "job", "--", "sh", "-c", f"exit {code}")
    assert (done.code, done.err) == (code, "")
    assert cli.is_free("job")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_death_by_signal_is_passed_through_as_a_shell_does(cli: Cli, number: signal.Signals) -> None:
    done = cli.run("run", "job", "--", "sh", "-c", f"kill -{int(number)} $$")
    assert done.code == 128 + number
    assert cli.is_free("job")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"])
def test_signals_are_forwarded(cli: Cli, name: str) -> None:
    """consul#797, consul#1210: signals not forwarded."""
    run = cli.start("run", "job", "--", *commands.echo_signals(name))
    assert run.line() == "ready"
    run.signal(getattr(signal, name))
    assert run.line() == name
    run.signal(signal.SIGKILL)


def test_signals_reach_the_grandchildren_too(cli: Cli) -> None:
    trap = "trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.01; done"
    run = cli.start("run", "job", "--", "sh", "-c", f'trap : USR1; sh -c "{trap}"; echo parent')
    assert run.line() == "ready"
    run.signal(signal.SIGUSR1)
    assert [run.line(), run.line()] == ["child", "parent"]
    assert run.end().code == 0


def test_a_signal_to_the_pid_that_ls_shows_reaches_the_command(cli: Cli) -> None:
    run = cli.start("run", "job", "--", *commands.echo_signals("SIGTERM"))
    assert run.line() == "ready"
    os.kill(cli.holder_of("job").pid, signal.SIGTERM)
    assert run.line() == "SIGTERM"


def test_grandchildren_die_on_loss(cli: Cli) -> None:
    """consul#2022: grandchildren survive."""
    run = cli.start("run", "--ttl", "2", "--grace", "200ms", "job", "--", *commands.WITH_GRANDCHILD)
    grandchild = int(run.line())
    cli.locks.evict("job", cli.holder_of("job").token or 0)
    assert run.end().code == 76
    assert not alive(grandchild)


def test_grandchildren_die_on_loss_even_in_another_session(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "2", "--grace", "200ms", "job", "--", *commands.WITH_STRAY)
    stray = int(run.line())
    try:
        cli.locks.evict("job", cli.holder_of("job").token or 0)
        assert run.end().code == 76
        assert not alive(stray)
    finally:
        kill(stray)


def test_grandchildren_do_not_outlive_the_lock_when_the_command_ends(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "5", "job", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; exit 3")
    grandchild = int(run.line())
    done = run.end()
    assert done.code == 3
    assert "left processes in its group" in done.err
    assert not alive(grandchild)


def test_a_daemon_that_leaves_the_group_on_purpose_is_left_alone(cli: Cli) -> None:
    daemon = commands.python(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=2)\n"
        "print(child.pid, flush=True)\n"
    )
    run = cli.start("run", "job", "--", *daemon)
    pid = int(run.line())
    try:
        assert run.process.wait(20) == 0
        assert alive(pid)
    finally:
        kill(pid)


def test_child_is_killed_on_loss(cli: Cli) -> None:
    """consul#1843, `etcdctl lock`: the child goes on without the lock. Ours ends even if it ignores TERM."""
    run = cli.start("run", "--ttl", "2", "--grace", "200ms", "job", "--", *commands.STUBBORN)
    assert run.line() == "ready"
    token = cli.holder_of("job").token or 0
    cli.locks.evict("job", token)
    done = run.end()
    assert done.code == 76
    assert f"the lease on 'job' (token {token}) was lost: it was evicted by hand" in done.err


def test_child_is_told_to_stop_before_it_is_killed(cli: Cli) -> None:
    polite = "trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    run = cli.start("run", "--ttl", "5", "--grace", "2", "job", "--", "sh", "-c", polite)
    assert run.line() == "ready"
    cli.locks.evict("job", cli.holder_of("job").token or 0)
    assert run.line() == "stopping"
    assert run.end().code == 76, "a polite end after a loss is still a loss"


def test_child_is_gone_before_the_next_holder_starts(cli: Cli) -> None:
    """The holder process is paused, so nothing is renewed: only the deadline can save it."""
    first = cli.start("run", "--ttl", "2", "--grace", "500ms", "job", "--", *commands.STUBBORN)
    assert first.line() == "ready"
    second = cli.start("run", "--ttl", "2", "job", "--", *commands.STAMP)
    eventually(lambda: cli.waiting_for("job") == 1)
    holder = cli.holder_of("job").pid
    os.kill(holder, signal.SIGSTOP)
    try:
        next_began = float(second.line())
        os.kill(holder, signal.SIGCONT)
        done = first.end()
    finally:
        kill(holder)
    assert done.code == 76
    stamps = done.out.split("\n")
    assert float(stamps[-2]) < next_began


def test_the_command_is_in_a_process_group_of_its_own(cli: Cli) -> None:
    run = cli.start("run", "job", "--", "sh", "-c", "echo $$; exec sleep 60")
    child = int(run.line())
    assert os.getpgid(child) == child
    assert os.getpgid(run.pid) != child
    run.signal(signal.SIGTERM)
    assert run.end().code == 143


def test_nohup_stays_in_force_while_waiting(cli: Cli) -> None:
    with cli.locks.lock("job"):
        run = cli.start(
            "run", "job", "--", "echo", "done", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        eventually(lambda: cli.waiting_for("job") == 1)
        run.signal(signal.SIGHUP)
    assert run.line() == "done"


def test_nohup_stays_in_force(cli: Cli) -> None:
    done = subprocess.run(
        ["sh", "-c", "trap '' HUP; exec \"$0\" run job -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'", HOLDFAST],
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")
