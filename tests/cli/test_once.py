"""`holdfast once`: what is remembered, and how it is forgotten."""

from __future__ import annotations

import json
import shlex

import pytest

import holdfast
from tests.cli.harness import Cli


def _done(cli: Cli, key: str, result: object) -> int:
    with cli.locks.once("payments", keep="1h", takeover="refuse").attempt(key) as attempt:
        attempt.phase("charged", "ref-1")
        attempt.complete(result)
        return 1


def test_what_is_remembered_is_listed_in_order(cli: Cli) -> None:
    for key in ("order/8", "order/7"):
        _done(cli, key, {"paid": 1})
    done = cli.run("once", "ls", "payments")
    assert done.code == 0
    lines = [line.split()[:3] for line in done.out.splitlines()[1:]]
    assert lines == [["order/7", "done", "1"], ["order/8", "done", "1"]]
    assert "charged" in done.out
    rest = cli.json("once", "ls", "payments", "--after", "order/7")
    assert [(each["key"], each["result"]) for each in rest] == [("order/8", '{"paid":1}')]


def test_one_is_shown(cli: Cli) -> None:
    _done(cli, "order/[7]", "ok")
    done = cli.run("once", "show", "payments", "order/[7]")
    assert done.code == 0
    assert "charged" in done.out
    assert '"ok"' in done.out
    assert cli.run("once", "show", "payments", "order/8").code == 1


def test_what_is_forgotten_is_done_again(cli: Cli) -> None:
    _done(cli, "order/7", "first")
    token = cli.json("once", "show", "payments", "order/7")["token"]
    wrong = cli.run("once", "forget", "payments", "order/7", "--token", str(token + 1))
    assert wrong.code == 1
    assert "nothing to forget" in wrong.err
    assert cli.json("once", "forget", "payments", "order/7", "--token", str(token))["forgotten"] is True
    assert json.loads(cli.run("once", "forget", "payments", "order/7", "--json").out)["forgotten"] is False
    _done(cli, "order/7", "second")


def test_nothing_is_said_plainly_and_bad_names_are_refused(cli: Cli) -> None:
    nothing = cli.run("once", "ls", "payments")
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing is remembered of 'payments'" in nothing.err
    bad = cli.run("once", "ls", "a:b")
    assert bad.code == 64
    assert "colon" in bad.err


@pytest.mark.parametrize("key", ["-k", "a 'b'", "--json"])
def test_the_command_that_an_error_proposes_can_be_pasted(cli: Cli, key: str) -> None:
    """Whatever the key is; and an error of two lines is shown in one."""
    once = cli.locks.once("payments", keep="1h", takeover="refuse", on_error="remember")
    with pytest.raises(ValueError, match="two"), once.attempt(key):
        raise ValueError("two\nlines")
    assert len(cli.run("once", "ls", "payments").out.splitlines()) == 2
    with pytest.raises(holdfast.AttemptFailed) as told, once.attempt(key):
        pass
    _, *words = shlex.split(str(told.value).split("begin: ")[1])
    assert cli.run(*words).code == 0
    assert once.look(key) is None
