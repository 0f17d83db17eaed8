"""`holdfast partitions`: members, what each owns, and what nobody owns."""

from __future__ import annotations

import json
import os
import signal

from holdfast import Partitions
from holdfast.cli.partition_views import ranges
from tests.cli.harness import HOLDFAST, Cli
from tests.cli.screen import CTRL_C, Screen


def owns_all(member: Partitions) -> None:
    owned: frozenset[int] = frozenset()
    while len(owned) < member.shards:
        owned = member.wait_for_change(owned)


def test_nothing_is_said_to_be_so(cli: Cli) -> None:
    done = cli.run("partitions", "ls")
    assert (done.code, done.out) == (0, "")
    assert "no partition has a member" in done.err
    assert json.loads(cli.run("partitions", "ls", "--json").out) == []


def test_members_and_what_they_own(cli: Cli) -> None:
    with cli.locks.partitions("ingest", shards=5, weight=3) as member, cli.locks.lock("ingest/other"):
        owns_all(member)
        done = cli.run("partitions", "ls", "ing")
        head, row = done.out.splitlines()
        assert head.split() == ["partition", "shards", "member", "host", "pid", "weight", "age", "owns", "which"]
        assert row.split()[0:2] == ["ingest", "5"]
        assert row.split()[-2:] == ["5", "0-4"]
        [data] = json.loads(cli.run("partitions", "ls", "--json").out)
        [mine] = data.pop("members")
        assert data == {"name": "ingest", "shards": 5, "leaving": [], "unowned": []}
        assert (mine["weight"], mine["owned"], mine["pid"]) == (3, [0, 1, 2, 3, 4], os.getpid())
        assert cli.run("partitions", "ls", "x").out == ""


def test_a_prefix_longer_than_the_name_raises_no_alarm(cli: Cli) -> None:
    """It shows a part of the partition's names, in which a member seems to have left, or no shard has an owner."""
    with cli.locks.partitions("ingest", shards=3) as member:
        owns_all(member)
        for prefix in ("ingest/members", "ingest/shards/3/1", "ingest/"):
            assert json.loads(cli.run("partitions", "ls", "--json", prefix).out) == []
    done = cli.run("partitions", "ls", "\udcff")
    assert done.code == 64
    assert "not valid Unicode" in done.err


def test_what_nobody_owns_and_who_is_leaving(cli: Cli) -> None:
    with cli.locks.partitions("ingest", shards=3, drain=60) as member:
        owns_all(member)
        with member.using(1):
            member._loop.over.set()
            member._loop.wake.set()
            while len(json.loads(cli.run("partitions", "ls", "--json").out)[0]["unowned"]) < 2:
                pass
            [data] = json.loads(cli.run("partitions", "ls", "--json").out)
            assert data["members"] == []
            assert data["leaving"][0]["owned"] == [1]
            assert data["unowned"] == [0, 2]
            out = cli.run("partitions", "ls").out
            assert "(leaving)" in out
            assert "(unowned)" in out


def test_changes_on_a_pipe_and_on_a_terminal(cli: Cli) -> None:
    watch = cli.start("partitions", "watch", "--interval", "50ms")
    with Screen(cli.environment, (HOLDFAST, "partitions", "watch", "--interval", "50ms")) as screen:
        screen.until("0 members")
        with cli.locks.partitions("ingest", shards=4) as member:
            owns_all(member)
            screen.until("0-3")
            while "owns 4 of 4" not in watch.line():
                pass
        while "gone" not in watch.line():
            pass
        screen.until("0 members")
        screen.type(CTRL_C)
        assert screen.end() == 0
    watch.signal(signal.SIGINT)
    assert watch.end().code == 0


def test_each_change_is_the_whole_picture_in_json(cli: Cli) -> None:
    watch = cli.start("partitions", "watch", "--interval", "50ms", "--json")
    assert json.loads(watch.line())["partitions"] == []
    with cli.locks.partitions("ingest", shards=4) as member:
        owns_all(member)
        while not (seen := json.loads(watch.line())["partitions"]) or len(seen[0]["members"][0]["owned"]) < 4:
            pass
        assert seen[0]["unowned"] == []
    watch.signal(signal.SIGINT)
    assert watch.end().code == 0


def test_ranges_are_short() -> None:
    assert ranges([]) == ""
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2 5 7-8"
