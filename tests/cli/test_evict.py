"""`holdfast evict`: breaks the lock of one holder, and says what it did."""

from __future__ import annotations

import json

from tests.cli.harness import Cli


def test_the_holder_is_evicted_and_the_next_is_granted(cli: Cli) -> None:
    lease = cli.locks.lock("job", ttl=60).acquire()
    done = cli.run("evict", "job", str(lease.token))
    assert (done.code, done.err) == (0, "")
    assert f"evicted token {lease.token} from 'job'" in done.out
    with cli.locks.lock("job", timeout=5) as newer:
        assert newer.token > lease.token


def test_a_newer_holder_is_never_evicted_by_mistake(cli: Cli) -> None:
    lease = cli.locks.lock("job").acquire()
    done = cli.run("evict", "job", str(lease.token - 1))
    assert (done.code, done.out) == (1, "")
    assert "nothing to evict" in done.err
    lease.renew()
    assert lease.release()


def test_json_says_whether(cli: Cli) -> None:
    lease = cli.locks.lock("job").acquire()
    assert cli.json("evict", "job", str(lease.token)) == {"name": "job", "token": lease.token, "evicted": True}
    again = cli.run("evict", "job", str(lease.token), "--json")
    assert again.code == 1
    assert json.loads(again.out)["evicted"] is False


def test_a_token_is_a_number(cli: Cli) -> None:
    done = cli.run("evict", "job", "mine")
    assert done.code == 64
    assert done.err.count("\n") == 1
