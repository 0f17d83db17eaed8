"""`holdfast ask` where the engine cannot: a clear line. Asking itself is tested with etcd and ZooKeeper."""

from __future__ import annotations

from tests.cli.harness import Cli


def test_an_engine_without_asking_says_what_to_do_instead(cli: Cli) -> None:
    done = cli.run("ask", "job")
    assert (done.code, done.out) == (64, "")
    assert "'job'" in done.err
    assert "evict" in done.err


def test_a_token_is_a_number(cli: Cli) -> None:
    done = cli.run("ask", "job", "mine")
    assert done.code == 64
    assert done.err.count("\n") == 1
