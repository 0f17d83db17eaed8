"""The wrapper and the holder watch each other: whichever dies or sleeps, the command does not go on unguarded."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing

from holdfast.cli.runner.channel import Message, SharedDeadline, channel_pair
from holdfast.cli.runner.holder import HolderProcess
from holdfast.cli.runner.request import RunRequest
from holdfast.clock import now
from tests.cli import commands
from tests.cli.harness import Cli, alive, eventually, kill, stopped

SHORT = ("--ttl", "2", "--grace", "200ms")


def test_killing_the_wrapper_kills_the_command_and_frees_the_lock(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "60", "job", "--", "sh", "-c", "echo $$; exec sleep 60")
    command = int(run.line())
    run.signal(signal.SIGKILL)
    eventually(lambda: not alive(command))
    eventually(lambda: cli.is_free("job"))


def test_killing_the_wrapper_stops_the_grandchildren_before_the_lock_is_freed(cli: Cli) -> None:
    """They are told to stop first: the lease is still kept by the holder."""
    log = cli.folder / "log"
    child = f"trap 'echo told >> {log}; exit' TERM; echo $$; while :; do sleep 0.01; done"
    run = cli.start("run", "--ttl", "60", "job", "--", "sh", "-c", f'sh -c "{child.replace("$$", "$" + "$")}" & wait')
    grandchild = int(run.line())
    run.signal(signal.SIGKILL)
    eventually(lambda: cli.is_free("job"))
    assert not alive(grandchild)
    assert log.read_text() == "told\n"


def test_killing_the_holder_stops_the_command(cli: Cli) -> None:
    run = cli.start("run", *SHORT, "job", "--", *commands.STUBBORN)
    assert run.line() == "ready"
    kill(cli.holder_of("job").pid)
    done = run.end()
    assert done.code == 76
    assert "the process that kept it has ended" in done.err


def test_killing_both_kills_the_command(cli: Cli) -> None:
    run = cli.start("run", "--ttl", "60", "job", "--", "sh", "-c", "echo $$; exec sleep 60")
    command = int(run.line())
    holder = cli.holder_of("job").pid
    os.kill(holder, signal.SIGSTOP)  # so that it cannot do it
    run.signal(signal.SIGKILL)
    kill(holder)
    eventually(lambda: not alive(command))


def test_a_paused_wrapper_does_not_cost_the_lock(cli: Cli) -> None:
    """The command stops it at once: there is no moment at which the holder does not know the command."""
    stop = "kill -STOP $PPID; echo $$; exec sleep 60"
    run = cli.start("run", "--ttl", "1", "job", "--", "sh", "-c", stop)
    command = int(run.line())
    token = cli.holder_of("job").token
    rival = cli.start("run", "--timeout", "2500ms", "job", "--", "echo", "never")
    assert rival.end().code == 75
    assert alive(command)
    assert cli.holder_of("job").token == token
    run.signal(signal.SIGCONT)
    run.signal(signal.SIGTERM)
    assert run.end().code == 143


def test_a_loss_that_the_wrapper_sleeps_through_stops_the_command_all_the_same(cli: Cli) -> None:
    run = cli.start("run", *SHORT, "job", "--", *commands.WITH_GRANDCHILD)
    grandchild = int(run.line())
    run.signal(signal.SIGSTOP)
    eventually(lambda: stopped(run.pid))
    cli.locks.evict("job", cli.holder_of("job").token or 0)
    eventually(lambda: not alive(grandchild))
    run.signal(signal.SIGCONT)
    done = run.end()
    assert done.code == 76
    assert "it was evicted by hand" in done.err


def test_a_wrapper_that_sleeps_through_the_grant_does_not_keep_the_lock(cli: Cli) -> None:
    with cli.locks.lock("job"):
        run = cli.start("run", "--ttl", "500ms", "job", "--", "echo", "never")
        eventually(lambda: cli.waiting_for("job") == 1)
        run.signal(signal.SIGSTOP)
    cli.locks.lock("job", timeout=10).acquire().release()
    run.signal(signal.SIGCONT)
    done = run.end()
    assert (done.code, done.out) == (76, "")
    assert done.err.endswith("the command was not started\n")


def test_a_command_that_starts_while_the_holder_gives_up_is_stopped() -> None:
    """The wrapper has looked at the deadline, sleeps, and then starts the command: nobody must run unguarded."""
    ours, theirs = channel_pair()
    deadline = SharedDeadline()
    deadline.set(now() + 60)
    holder = HolderProcess(RunRequest("job", ("true",), "memory://", ttl=30, grace=5), theirs, deadline, os.getpid())
    command = subprocess.Popen(["sleep", "60"], process_group=0)
    giving_up = threading.Thread(target=holder.stand_in)
    giving_up.start()
    eventually(lambda: deadline.get() == 0)  # from here on no other command can start
    holder.hear(Message("started", pid=command.pid))
    giving_up.join(20)
    assert command.wait(20) == -signal.SIGTERM
    ours.close()
    theirs.close()


def test_an_engine_out_of_reach_stops_the_command_in_time(cli: Cli) -> None:
    """Somebody keeps the database busy, so no renewal gets through."""
    run = cli.start("run", *SHORT, "--request-timeout", "300ms", "job", "--", *commands.STUBBORN)
    assert run.line() == "ready"
    with closing(sqlite3.connect(cli.file, isolation_level=None)) as vandal:
        vandal.execute("BEGIN EXCLUSIVE")
        (expires,) = vandal.execute("SELECT expires FROM claim WHERE name LIKE '%job' AND token > 0").fetchone()
        done = run.end()
        vandal.execute("ROLLBACK")
    assert done.code == 76
    assert "its validity ended before a renewal succeeded" in done.err
    assert float(done.out.split("\n")[-2]) < expires / 1_000_000


def test_a_release_that_can_not_be_told_keeps_the_exit_code_and_warns(cli: Cli) -> None:
    go = cli.folder / "go"
    os.mkfifo(go)
    run = cli.start("run", "--request-timeout", "300ms", "job", "--", "sh", "-c", f"echo ready; read x < {go}; exit 5")
    assert run.line() == "ready"
    with closing(sqlite3.connect(cli.file, isolation_level=None)) as vandal:
        vandal.execute("BEGIN EXCLUSIVE")
        go.write_text("go\n")
        done = run.end()
        vandal.execute("ROLLBACK")
    assert done.code == 5
    assert done.err == (
        "holdfast: 'job' was not released: the engine could not be reached; it ends by itself within 30 s\n"
    )


def test_a_loss_noticed_only_at_the_release_is_told(cli: Cli) -> None:
    go = cli.folder / "go"
    os.mkfifo(go)
    run = cli.start("run", "--ttl", "60", "job", "--", "sh", "-c", f"echo ready; read x < {go}; exit 0")
    assert run.line() == "ready"
    cli.locks.evict("job", cli.holder_of("job").token or 0)
    go.write_text("go\n")
    done = run.end()
    assert done.code == 76
    assert "noticed only when the command had ended" in done.err


def test_no_process_is_left_behind(cli: Cli) -> None:
    run = cli.start("run", "job", "--", *commands.WAIT, start_new_session=True)
    assert run.line() == "ready"
    holder = cli.holder_of("job").pid
    run.signal(signal.SIGTERM)
    assert run.end().code == 143
    assert not alive(holder)
