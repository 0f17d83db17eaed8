"""Under a lock a program is as good on a terminal as without: it reads keys, Ctrl-C ends it, Ctrl-Z suspends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.harness import HOLDFAST, Cli, eventually
from tests.cli.screen import CTRL_C, CTRL_Z, Screen


@pytest.fixture
def screen(cli: Cli) -> Iterator[Screen]:
    with Screen({**cli.environment, "H": f"{HOLDFAST} run"}) as made:
        made.until("$ ")
        yield made


def test_the_command_reads_from_the_terminal(screen: Screen) -> None:
    screen.type("$H job -- sh -c 'echo rea''dy; read x; echo got-$x'\n")
    screen.until("ready")
    screen.type("hello\n")
    screen.until("got-hello")
    screen.type("echo code-$?\n")  # the shell has the terminal again
    screen.until("code-0")


def test_a_script_has_the_terminal_again_afterwards(screen: Screen) -> None:
    """A shell without job control does not take it back by itself."""
    screen.type("sh -c '$H job -- true; echo rea''dy; read x; echo got-$x'\n")
    screen.until("ready")
    screen.type("hello\n")
    screen.until("got-hello")


def test_the_command_is_in_the_foreground_from_its_first_instruction(screen: Screen) -> None:
    program = "import os; print('fore' + 'ground', os.tcgetpgrp(0) == os.getpgrp())"
    screen.type(f'$H job -- python3 -c "{program}"\n')
    screen.until("foreground True")


def test_ctrl_c_ends_the_command_and_frees_the_lock(cli: Cli, screen: Screen) -> None:
    screen.type("$H job -- sh -c 'echo rea''dy; exec sleep 60'\n")
    screen.until("ready")
    screen.type(CTRL_C)
    screen.type("echo code-$?\n")
    screen.until("code-130")
    assert cli.is_free("job")


def test_ctrl_c_is_the_commands_to_handle(screen: Screen) -> None:
    screen.type("$H job -- sh -c 'trap \"echo cau\"\"ght; exit 9\" INT; echo rea''dy; while :; do sleep 0.1; done'\n")
    screen.until("ready")
    screen.type(CTRL_C)
    screen.until("caught")
    screen.type("echo code-$?\n")
    screen.until("code-9")


def test_ctrl_c_while_waiting_leaves_the_line(cli: Cli, screen: Screen) -> None:
    with cli.locks.lock("job"):
        screen.type("$H job -- echo never\n")
        screen.until("waiting for 'job'")
        assert cli.waiting_for("job") == 1
        screen.type(CTRL_C)
        screen.type("echo code-$?\n")
        screen.until("code-130")
        assert cli.waiting_for("job") == 0


def test_ctrl_z_suspends_the_job_which_keeps_its_lock(cli: Cli, screen: Screen) -> None:
    screen.type("$H --ttl 1 job -- sh -c 'echo rea''dy; read x; echo got-$x'\n")
    screen.until("ready")
    token = cli.holder_of("job").token
    screen.type(CTRL_Z)
    screen.until("Stopped")
    assert cli.run("run", "--timeout", "1500ms", "job", "--", "true").code == 75, "longer than the ttl"
    assert cli.holder_of("job").token == token
    screen.type("fg\n")
    screen.type("hello\n")
    screen.until("got-hello")
    screen.type("echo code-$?\n")
    screen.until("code-0")


def test_in_a_pipe_the_command_gets_the_terminal_when_it_asks(screen: Screen) -> None:
    screen.type("$H job -- sh -c 'echo rea''dy; read x < /dev/tty; echo got-$x' | cat\n")
    screen.until("ready")
    screen.type("hello\n")
    screen.until("got-hello")
    screen.type("echo code-${PIPESTATUS[0]}\n")
    screen.until("code-0")


def test_a_background_job_stops_when_it_wants_to_read(screen: Screen) -> None:
    screen.type("set -b\n")  # tell of jobs at once
    screen.type("$H job -- sh -c 'read x; echo got-$x' &\n")
    screen.until("Stopped")
    screen.type("fg\n")
    screen.type("hello\n")
    screen.until("got-hello")


def test_a_hang_up_ends_the_command(cli: Cli) -> None:
    with Screen({**cli.environment, "H": f"{HOLDFAST} run"}) as screen:
        screen.type("$H job -- sh -c 'echo rea''dy; exec sleep 60'\n")
        screen.until("ready")
    eventually(lambda: cli.is_free("job"))
