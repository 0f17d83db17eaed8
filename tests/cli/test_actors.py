"""`holdfast actors`: who has messages, and what could not be handled."""

from __future__ import annotations

import shlex

import pytest

import holdfast
from tests.cli.harness import Cli


def _handle(actor: holdfast.Actor, amount: int) -> int:
    actor.state = (actor.state or 0) + 100 // amount
    return int(actor.state)


@pytest.fixture
def accounts(cli: Cli) -> holdfast.ActorSystem:
    """One message handled, one dead letter, one message that waits."""
    system = cli.locks.actors("accounts", _handle, tries=2, backoff=0.001)
    with system:
        assert system.ask("alice", 1, timeout=60) == 100
        with pytest.raises(holdfast.MessageFailed):
            system.ask("[bob]", 0, message_id="poison", timeout=60)
    system.tell("carol", 5)
    return system


def test_actors_are_listed(cli: Cli, accounts: holdfast.ActorSystem) -> None:
    done = cli.run("actors", "ls", "accounts")
    assert done.code == 0
    assert [line.split()[:4] for line in done.out.splitlines()[1:]] == [
        ["[bob]", "0", "0", "1"],
        ["alice", "0", "0", "0"],
        ["carol", "1", "0", "0"],
    ]
    rest = cli.json("actors", "ls", "accounts", "--after", "[bob]")
    assert [(each["key"], each["state"], each["inbox"]) for each in rest] == [("alice", 100, 0), ("carol", None, 1)]
    dead = cli.run("actors", "ls", "accounts", "--dead")
    assert "ZeroDivisionError" in dead.out
    assert [letter["id"] for letter in cli.json("actors", "ls", "accounts", "--dead")] == ["poison"]


def test_a_dead_letter_is_told_again_or_dropped(cli: Cli, accounts: holdfast.ActorSystem) -> None:
    assert cli.run("actors", "retry", "accounts", "[bob]", "poison").code == 0
    again = cli.run("actors", "retry", "accounts", "[bob]", "poison")
    assert again.code == 1
    assert "there is no dead letter 'poison'" in again.err
    view = accounts.look("[bob]")
    assert view is not None
    assert view.inbox == 1
    with accounts, pytest.raises(holdfast.MessageFailed):
        accounts.ask("[bob]", 0, timeout=60)
    letters = cli.json("actors", "ls", "accounts", "--dead")
    assert len(letters) == 2
    for letter in letters:
        assert cli.json("actors", "drop", "accounts", "[bob]", letter["id"])["dropped"] is True
        assert cli.run("actors", "drop", "accounts", "[bob]", letter["id"]).code == 1
    nothing = cli.run("actors", "ls", "accounts", "--dead")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no dead letter" in nothing.err


def test_nothing_is_said_plainly_and_bad_names_are_refused(cli: Cli) -> None:
    nothing = cli.run("actors", "ls", "accounts")
    assert (nothing.code, nothing.out) == (0, "")
    assert "there is no actor 'accounts'" in nothing.err
    bad = cli.run("actors", "ls", "a:b")
    assert bad.code == 64
    assert "colon" in bad.err


def test_names_and_errors_of_any_kind_can_be_shown_and_pasted(cli: Cli) -> None:
    """A row is one line, an error commands no terminal, and the command that an error proposes works in a shell."""

    def handle(actor: holdfast.Actor, message: int) -> None:
        raise ValueError("two\nlines \x1b[2J")

    with cli.locks.actors("-acc", handle, tries=1) as system, pytest.raises(holdfast.MessageFailed) as failed:
        system.ask("-k 1", 0, message_id="--id", timeout=60)
    shown = cli.run("actors", "ls", "--dead", "--", "-acc")
    assert len(shown.out.splitlines()) == 2
    assert "\x1b" not in shown.out
    _, *words = shlex.split(str(failed.value).split("`")[1])
    assert cli.run(*words).code == 0
    assert cli.run("actors", "ls", "--dead", "--after", "a", "acc").code == 64
