"""What a crash forgets of session locks, and that no token comes twice for it, wherever the clock stands."""

from __future__ import annotations

import holdfast
from tests.relational.house import House, of_sessions

HOUR = 3_600_000_000


def token(url: str, name: str = "door") -> int:
    with holdfast.connect(of_sessions(url)) as locks, locks.lock(name, timeout=120) as lease:
        return lease.token


def test_what_a_clock_ahead_gave_is_not_given_again_after_a_crash(house: House, url: str) -> None:
    """The clock was an hour ahead when the last token was given; it is back, and the server has restarted."""
    first = token(url)
    house.execute(url, f"UPDATE holdfast_session SET mark = mark + {HOUR}")
    ahead = token(url)
    assert ahead > first + HOUR
    house.forget_sessions(url)
    later = [token(url), token(url)]
    assert sorted({ahead, *later}) == [ahead, *later]


def test_every_crash_counts(house: House, url: str) -> None:
    tokens = []
    for _ in range(4):
        tokens += [token(url), token(url)]
        house.forget_sessions(url)
    assert sorted(set(tokens)) == tokens


def test_few_grants_raise_the_ceiling(house: House, url: str) -> None:
    def ceiling() -> int:
        return int(house.execute(url, "SELECT ceiling FROM holdfast_session_ceiling")[0][0])

    assert token(url) < ceiling()
    for table in ("holdfast_session_ceiling", "holdfast_session_floor"):  # so far that no time passes it
        house.execute(url, f"UPDATE {table} SET ceiling = ceiling + {HOUR}")
    before = ceiling()
    for number in range(5):
        token(url, f"n{number}")
    assert ceiling() == before
