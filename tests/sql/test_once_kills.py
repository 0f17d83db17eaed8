"""A process is killed after each statement of its transaction in turn, and another one does the work: exactly once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sql.once_child import work
from tests.sql.once_kinds import BALANCE, new_shop

CHILD = (sys.executable, "-m", "tests.sql.once_child")
MOST_STATEMENTS = 40


@pytest.mark.parametrize("library", ["sqlite3", "psycopg", "pymysql"])
def test_exactly_once_wherever_it_is_killed(library: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    shop = new_shop(library, request.getfixturevalue, tmp_path)
    for number in range(1, MOST_STATEMENTS):
        words = (*CHILD, library, shop.url, str(number))
        child = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert child.returncode in (0, -signal.SIGKILL), child.stderr
        with shop.connected() as connection:
            assert work(connection, number, lambda: None) == {"charged": number}
        assert shop.value(BALANCE) == 1000 - 100 * number
        assert shop.value("SELECT count(*) FROM accounts") == 1 + number
        assert shop.value("SELECT count(*) FROM holdfast_once WHERE done = 1") == number
        assert shop.value("SELECT count(*) FROM holdfast_once") == number
        if not child.returncode:
            break
    assert not child.returncode, "it was never done in one go"
    assert number > 7, "fewer statements than there are"
