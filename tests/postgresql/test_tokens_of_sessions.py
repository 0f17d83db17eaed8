"""What a crash forgets of session locks, and that no token comes twice for it, wherever the clock stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.postgresql.server import Server

Execute = Callable[[str], Any]

HOUR = 3_600_000_000


@pytest.fixture
def session_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+session://")


@pytest.fixture
def execute(server: Server, database: str) -> Execute:
    return lambda statement: server.execute(statement, database=database)


def forget(execute: Execute) -> None:
    """What a crash leaves: commits that were not flushed are gone, and tables that are not logged are empty."""
    execute("DELETE FROM holdfast_session")
    execute("TRUNCATE holdfast_session_floor")


def set_clock(execute: Execute, ahead: int) -> None:
    execute(
        "CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql AS "
        f"$$SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {ahead}$$"
    )


def token(url: str, name: str = "door") -> int:
    with holdfast.connect(url) as locks, locks.lock(name, timeout=120) as lease:
        return lease.token


def test_a_crash_after_the_clock_came_back_does_not_bring_tokens_back(session_url: str, execute: Execute) -> None:
    token(session_url)
    set_clock(execute, HOUR)
    ahead = [token(session_url), token(session_url)]
    set_clock(execute, 0)
    forget(execute)
    later = [token(session_url), token(session_url)]
    assert sorted({*ahead, *later}) == [*ahead, *later]


def test_every_crash_counts(session_url: str, execute: Execute) -> None:
    tokens = []
    for _ in range(4):
        tokens += [token(session_url), token(session_url)]
        forget(execute)
    assert sorted(set(tokens)) == tokens


def test_the_ceiling_stays_above_what_was_given(session_url: str, execute: Execute) -> None:
    """Also where tokens are counted on from the mark, because the clock is behind it."""
    token(session_url)
    set_clock(execute, HOUR)
    token(session_url)
    set_clock(execute, 0)
    last = [token(session_url) for _ in range(3)][-1]
    [[ceiling]] = execute("SELECT ceiling FROM holdfast_session_ceiling")
    assert int(ceiling) > last
    [[ceiling]] = execute("UPDATE holdfast_session_floor SET ceiling = 5 RETURNING ceiling")
    assert int(ceiling) == 5
    assert token(session_url) > last
    [[ceiling]] = execute("SELECT ceiling FROM holdfast_session_floor")
    assert int(ceiling) > last


def test_few_grants_raise_the_ceiling(session_url: str, execute: Execute) -> None:
    token(session_url)
    for table in ("holdfast_session_ceiling", "holdfast_session_floor"):  # so far that no time passes it
        execute(f"UPDATE {table} SET ceiling = ceiling + {HOUR}")
    [[before]] = execute("SELECT ceiling FROM holdfast_session_ceiling")
    for number in range(5):
        token(session_url, f"n{number}")
    [[after]] = execute("SELECT ceiling FROM holdfast_session_ceiling")
    assert before == after
