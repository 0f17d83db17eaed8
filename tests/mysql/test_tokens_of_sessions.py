"""What a restart forgets of session locks, and that no token comes twice for it, wherever the clock stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.mysql.server import Server

Execute = Callable[[str], Any]

HOUR = 3_600_000_000


@pytest.fixture
def session_url(url: str) -> str:
    return url.replace("mysql://", "mysql+session://")


@pytest.fixture
def execute(server: Server, database: str) -> Execute:
    return lambda statement: server.execute(statement, database)


def forget(execute: Execute) -> None:
    """What a restart leaves: tables in memory are empty."""
    for table in ("holdfast_session", "holdfast_session_waiter", "holdfast_session_floor"):
        execute(f"DELETE FROM {table}")


def token(url: str, name: str = "door") -> int:
    with holdfast.connect(url) as locks, locks.lock(name, timeout=120) as lease:
        return lease.token


def test_what_a_clock_ahead_gave_is_not_given_again_after_a_restart(session_url: str, execute: Execute) -> None:
    """The clock was an hour ahead when the last token was given; it is back, and the server has restarted."""
    first = token(session_url)
    execute(f"UPDATE holdfast_session SET mark = mark + {HOUR}")
    ahead = token(session_url)
    assert ahead > first + HOUR
    forget(execute)
    later = [token(session_url), token(session_url)]
    assert sorted({ahead, *later}) == [ahead, *later]


def test_every_restart_counts(session_url: str, execute: Execute) -> None:
    tokens = []
    for _ in range(4):
        tokens += [token(session_url), token(session_url)]
        forget(execute)
    assert sorted(set(tokens)) == tokens


def test_few_grants_raise_the_ceiling(session_url: str, execute: Execute) -> None:
    last = token(session_url)
    assert execute("SELECT ceiling FROM holdfast_session_ceiling")[0][0] > last
    for table in ("holdfast_session_ceiling", "holdfast_session_floor"):  # so far that no time passes it
        execute(f"UPDATE {table} SET ceiling = ceiling + {HOUR}")
    before = execute("SELECT ceiling FROM holdfast_session_ceiling")
    for number in range(5):
        token(session_url, f"n{number}")
    assert execute("SELECT ceiling FROM holdfast_session_ceiling") == before
