"""`holdfast run` takes the lock that was asked for, in the way that was asked for."""

from __future__ import annotations

import os
import signal

import pytest

import holdfast
from tests.cli import commands
from tests.cli.harness import Cli, eventually, stopped


def test_the_command_runs_under_the_lock_and_the_lock_is_free_afterwards(cli: Cli) -> None:
    run = cli.start("run", "job", "--", *commands.WAIT)
    assert run.line() == "ready"
    assert cli.locks.lock("job").try_acquire() is None
    run.signal(signal.SIGTERM)
    assert run.end().code == 143
    assert cli.is_free("job")


def test_the_command_finds_its_grant_in_its_environment(cli: Cli) -> None:
    show = 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $HOLDFAST_URL $HOLDFAST_SEQUENCER"; exec sleep 60'
    run = cli.start("run", "reports/nightly", "--", "sh", "-c", show)
    name, token, url, sequencer = run.line().split()
    assert (name, url) == ("reports/nightly", cli.url)
    assert int(token) == cli.holder_of("reports/nightly").token
    assert holdfast.Sequencer.parse(sequencer).token == int(token)
    assert cli.locks.check(sequencer)
    run.signal(signal.SIGTERM)
    run.end()
    assert not cli.locks.check(sequencer)


def test_one_after_the_other(cli: Cli) -> None:
    log = cli.folder / "log"
    runs = [cli.start("run", "job", "--", "sh", "-c", f"echo in >> {log}; echo out >> {log}") for _ in range(4)]
    assert [run.end().code for run in runs] == [0] * 4
    assert log.read_text().split() == ["in", "out"] * 4


def test_it_is_renewed_for_as_long_as_the_command_runs(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "500ms", "job", "--", "sh", "-c", "echo $HOLDFAST_TOKEN; sleep 1.5; echo done")
    token = int(run.line())
    rival = cli.locks.lock("job", timeout=20).acquire()
    assert run.line() == "done"
    assert run.end().code == 0
    assert rival.token > token
    rival.release()


def test_busy_fail_does_not_wait(cli: Cli) -> None:
    with cli.locks.lock("job"):
        done = cli.run("run", "--busy", "fail", "job", "--", "echo", "never")
    assert (done.code, done.out) == (75, "")
    assert done.err.startswith("holdfast: 'job' was not acquired")
    assert done.err.count("\n") == 1


def test_busy_skip_is_no_failure(cli: Cli) -> None:
    with cli.locks.lock("job"):
        done = cli.run("run", "--busy", "skip", "job", "--", "echo", "never")
    assert (done.code, done.out) == (0, "")
    assert done.err == "holdfast: 'job' is busy; skipped\n"


def test_busy_skip_does_not_hide_the_commands_own_75(cli: Cli) -> None:
    assert cli.run("run", "--busy", "skip", "job", "--", "sh", "-c", "exit 75").code == 75


def test_the_wait_ends_with_the_timeout(cli: Cli) -> None:
    with cli.locks.lock("job"):
        done = cli.run("run", "--timeout", "100ms", "job", "--", "echo", "never")
        assert cli.waiting_for("job") == 0
    assert (done.code, done.out) == (75, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_waiting_leaves_the_line(cli: Cli, number: signal.Signals) -> None:
    with cli.locks.lock("job"):
        run = cli.start("run", "job", "--", "echo", "never")
        eventually(lambda: cli.waiting_for("job") == 1)
        run.signal(number)
        done = run.end()
        assert (done.code, done.out, done.err) == (128 + number, "", "")
        assert cli.waiting_for("job") == 0


def test_a_waiter_that_is_killed_leaves_the_line(cli: Cli) -> None:
    with cli.locks.lock("job"):
        run = cli.start("run", "job", "--", "echo", "never")
        eventually(lambda: cli.waiting_for("job") == 1)
        run.signal(signal.SIGKILL)
        eventually(lambda: cli.waiting_for("job") == 0)


def test_a_waiter_that_is_suspended_is_suspended_as_a_whole(cli: Cli) -> None:
    """Else it would be granted a lock that its suspended half does not use."""
    with cli.locks.lock("job"):
        # A job of ours, as a shell would have it: the kernel suspends no group without a parent in its session.
        run = cli.start("run", "job", "--", "echo", "done", process_group=0)
        eventually(lambda: cli.waiting_for("job") == 1)
        (view,) = cli.locks.survey("job")
        holder = view.waiters[0].pid
        run.signal(signal.SIGTSTP)
        eventually(lambda: stopped(run.pid) and stopped(holder))
        run.signal(signal.SIGCONT)
        eventually(lambda: not stopped(holder))
    assert run.line() == "done"
    assert run.end().code == 0


def test_shared_runs_together_and_exclusive_apart(cli: Cli) -> None:
    readers = [cli.start("run", "--shared", "doc", "--", *commands.WAIT) for _ in range(2)]
    assert [reader.line() for reader in readers] == ["ready", "ready"]
    writer = cli.start("run", "--exclusive", "doc", "--", "echo", "written")
    eventually(lambda: cli.waiting_for("doc") == 1)
    for reader in readers:
        reader.signal(signal.SIGTERM)
    assert writer.line() == "written"
    assert writer.end().code == 0


def test_permits_let_so_many_in(cli: Cli) -> None:
    holders = [cli.start("run", "--permits", "2", "pool", "--", *commands.WAIT) for _ in range(2)]
    assert [holder.line() for holder in holders] == ["ready", "ready"]
    assert cli.run("run", "--permits", "2", "--busy", "fail", "pool", "--", "true").code == 75
    holders[0].signal(signal.SIGTERM)
    assert cli.run("run", "--permits", "2", "pool", "--", "true").code == 0


def test_max_hold_stops_the_command(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "2", "--grace", "200ms", "--max-hold", "1500ms", "job", "--", *commands.STUBBORN)
    assert run.line() == "ready"
    done = run.end()
    assert done.code == 76
    assert "it was held for --max-hold" in done.err
    assert cli.is_free("job"), "it is released once the command has ended"


def test_namespaces_are_apart(cli: Cli) -> None:
    with cli.locks.lock("job"):
        assert cli.run("run", "--namespace", "other", "--busy", "fail", "job", "--", "true").code == 0


def test_the_engine_of_the_option_wins_over_the_environment(cli: Cli) -> None:
    other = f"sqlite://{cli.folder}/other.db"
    done = cli.run("run", "--url", other, "job", "--", "sh", "-c", "echo $HOLDFAST_URL")
    assert done.out == f"{other}\n"
    assert (cli.folder / "other.db").exists()


def test_descriptors_and_stdin_are_the_commands(cli: Cli) -> None:
    reader, writer = os.pipe()
    run = cli.start("run", "job", "--", "sh", "-c", f"echo through > /dev/fd/{writer}", pass_fds=[writer])
    os.close(writer)
    with open(reader) as pipe:
        assert pipe.read() == "through\n"
    assert run.end().code == 0
