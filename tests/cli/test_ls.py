"""`holdfast ls`: who holds what, who waits; for people, for pipes and for programs."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.cli import commands
from tests.cli.harness import HOLDFAST, Cli, eventually
from tests.cli.screen import Screen


def test_holders_and_waiters_are_listed_in_their_order(cli: Cli) -> None:
    with cli.locks.lock("orders/7", ttl=60) as lease:
        first = cli.start("run", "orders/7", "--", "true")
        eventually(lambda: cli.waiting_for("orders/7") == 1)
        second = cli.start("run", "orders/7", "--", "true")
        eventually(lambda: cli.waiting_for("orders/7") == 2)
        (view,) = cli.locks.survey("orders/7")
        done = cli.run("ls")
        assert done.code == 0
        heading, *rows = (line.split() for line in done.out.splitlines())
        assert heading == ["name", "state", "mode", "token", "age", "remaining", "host", "pid"]
        host = os.uname().nodename
        assert [row[:4] for row in rows[:1]] == [["orders/7", "holds", "lock", str(lease.token)]]
        assert rows[0][-2:] == [host, str(os.getpid())]
        assert [(*row[:5], *row[-2:]) for row in rows[1:]] == [
            ("orders/7", "waits", str(place), "lock", "–", host, str(waiter.pid))
            for place, waiter in enumerate(view.waiters, 1)
        ]
    assert (first.end().code, second.end().code) == (0, 0)


def test_json_is_the_survey(cli: Cli) -> None:
    with cli.locks.lock("orders/7", ttl=60) as lease, cli.locks.semaphore("pool", permits=3):
        orders, pool = cli.json("ls")
        assert orders["name"] == "orders/7"
        (holder,) = orders["holders"]
        assert (holder["token"], holder["pid"], orders["waiters"]) == (lease.token, os.getpid(), [])
        assert 50 < holder["remaining"] <= 60
        assert 0 <= holder["age"] < 60
        assert (pool["name"], pool["capacity"]) == ("pool", 3)


def test_a_name_that_nobody_has_put_right_is_listed(cli: Cli) -> None:
    lease = cli.locks.lock("orders/7", recover=lambda lease, predecessor: None).acquire()
    cli.locks.evict("orders/7", lease.token)
    _, row = (line.split() for line in cli.run("ls").out.splitlines())
    assert row[:4] == ["orders/7", "unrecovered", "evicted", str(lease.token)]
    [view] = cli.json("ls")
    assert view["unrecovered"] == {"token": lease.token, "owner": lease.owner, "ended": "evicted"}
    assert cli.run("ls", "--exact", "orders/7").out.count("unrecovered") == 1


def test_a_prefix_chooses(cli: Cli) -> None:
    with cli.locks.lock_all(["orders/1", "orders/2", "stock/1"]):
        assert [view["name"] for view in cli.json("ls", "orders/")] == ["orders/1", "orders/2"]


def test_an_exact_name_chooses_and_has_to_be_given(cli: Cli) -> None:
    with cli.locks.lock_all(["orders/1", "orders/10"]):
        assert [view["name"] for view in cli.json("ls", "--exact", "orders/1")] == ["orders/1"]
        done = cli.run("ls", "--exact")
    assert (done.code, done.out) == (64, "")
    assert "--exact needs the name of a lock" in done.err


def test_what_is_shared_and_counted_is_shown(cli: Cli) -> None:
    with cli.locks.rwlock("doc").read(), cli.locks.semaphore("pool", permits=3, weight=2):
        rows = [line.split("  ") for line in cli.run("ls").out.splitlines()]
    assert any("read" in row for row in rows)
    assert any("2 of 3" in row for row in rows)


def test_nothing_is_said_to_be_nothing(cli: Cli) -> None:
    done = cli.run("ls", "orders/")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"no lock with a name that begins with 'orders/' is held or waited for at {cli.url}\n"
    assert cli.run("ls", "--quiet").err == ""
    assert cli.json("ls") == []


def test_a_name_with_brackets_is_shown_as_it_is(cli: Cli) -> None:
    with cli.locks.lock("[bold]x[/bold]"):
        with Screen(cli.environment, (HOLDFAST, "ls")) as screen:
            screen.until("[bold]x[/bold]")


def test_nothing_is_cut_off_on_a_pipe(cli: Cli) -> None:
    name = "n" * 400
    with cli.locks.lock(name):
        assert name in cli.run("ls").out


def test_a_reader_that_goes_away_is_no_traceback(cli: Cli) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with cli.locks.lock("job"):
        done = subprocess.run(
            [HOLDFAST, "ls", "--quiet"],
            env=cli.environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
        )
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_the_pid_is_one_that_can_be_signalled(cli: Cli) -> None:
    run = cli.start("run", "job", "--", *commands.WAIT)
    assert run.line() == "ready"
    ((view,),) = (cli.json("ls"),)
    os.kill(view["holders"][0]["pid"], signal.SIGTERM)
    assert run.end().code == 143
