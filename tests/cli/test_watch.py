"""`holdfast watch`: a table that keeps itself up to date; on a pipe a line for each change; Ctrl-C ends it."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing

from tests.cli.harness import HOLDFAST, Cli
from tests.cli.screen import CTRL_C, Screen


def test_each_change_is_a_line_on_a_pipe(cli: Cli) -> None:
    lease = cli.locks.lock("orders/7").acquire()
    watch = cli.start("watch", "--interval", "50ms", "orders/")
    line = watch.line()
    assert "orders/7  holds" in line
    assert f"token {lease.token}" in line
    other = cli.locks.lock("orders/8").acquire()
    assert "orders/8  holds" in watch.line()
    lease.release()
    assert "orders/7  gone" in watch.line()
    other.release()
    assert "orders/8  gone" in watch.line()
    watch.signal(signal.SIGINT)
    done = watch.end()
    assert (done.code, done.out, done.err) == (0, "", "")


def test_each_change_is_the_whole_picture_in_json(cli: Cli) -> None:
    watch = cli.start("watch", "--interval", "50ms", "--json")
    assert json.loads(watch.line())["locks"] == []
    with cli.locks.lock("orders/7") as lease:
        (view,) = json.loads(watch.line())["locks"]
        assert view["holders"][0]["token"] == lease.token
    assert json.loads(watch.line())["locks"] == []
    watch.signal(signal.SIGINT)
    assert watch.end().code == 0


def test_the_table_keeps_itself_up_to_date(cli: Cli) -> None:
    with Screen(cli.environment, (HOLDFAST, "watch", "--interval", "50ms")) as screen:
        screen.until("no lock is held or waited for")
        with cli.locks.lock("orders/7") as lease:
            assert "1 held, 0 waiting" in screen.until(str(lease.token))
        screen.until("no lock is held or waited for")
        screen.type(CTRL_C)
        assert screen.end() == 0


def test_an_engine_out_of_reach_is_said_to_be_so(cli: Cli) -> None:
    watch = cli.start("watch", "--interval", "50ms")
    with cli.locks.lock("orders/7"):
        assert "orders/7" in watch.line()
    assert "gone" in watch.line()
    with closing(sqlite3.connect(cli.file, isolation_level=None)) as vandal:
        vandal.execute("ALTER TABLE claim RENAME TO elsewhere")
        assert "engine" in watch.line()
        vandal.execute("ALTER TABLE elsewhere RENAME TO claim")
    assert "reachable again" in watch.line()
    watch.signal(signal.SIGINT)
    assert watch.end().code == 0
