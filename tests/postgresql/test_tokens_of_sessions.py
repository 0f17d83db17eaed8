"""Session locks while the clock jumps (`holdfast_now` is replaced). Crashes: `tests/relational`."""

from __future__ import annotations

from tests.postgresql.house import PostgreSQL
from tests.postgresql.server import Server
from tests.relational.test_tokens_of_sessions import HOUR, token


def set_clock(house: PostgreSQL, url: str, ahead: int) -> None:
    house.execute(
        url,
        "CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql AS "
        f"$$SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {ahead}$$",
    )


def test_a_crash_after_the_clock_came_back_does_not_bring_tokens_back(server: Server, url: str) -> None:
    house = PostgreSQL(server)
    token(url)
    set_clock(house, url, HOUR)
    ahead = [token(url), token(url)]
    set_clock(house, url, 0)
    house.forget_sessions(url)
    later = [token(url), token(url)]
    assert sorted({*ahead, *later}) == [*ahead, *later]


def test_the_ceiling_stays_above_what_was_given(server: Server, url: str) -> None:
    """Also where tokens are counted on from the mark, because the clock is behind it."""
    house = PostgreSQL(server)
    token(url)
    set_clock(house, url, HOUR)
    token(url)
    set_clock(house, url, 0)
    last = [token(url) for _ in range(3)][-1]
    [[ceiling]] = house.execute(url, "SELECT ceiling FROM holdfast_session_ceiling")
    assert int(ceiling) > last
    [[ceiling]] = house.execute(url, "UPDATE holdfast_session_floor SET ceiling = 5 RETURNING ceiling")
    assert int(ceiling) == 5
    assert token(url) > last
    [[ceiling]] = house.execute(url, "SELECT ceiling FROM holdfast_session_floor")
    assert int(ceiling) > last
