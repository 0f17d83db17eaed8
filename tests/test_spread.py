"""Tests are spread over workers as `tests/support/spread.py` says."""

from __future__ import annotations

import doctest

from tests.support import spread


def test_it_does_what_its_examples_say() -> None:
    done = doctest.testmod(spread)
    assert done.attempted > 6
    assert done.failed == 0


def test_what_is_said_to_be_heavy_or_long_is_there() -> None:
    """A file that was renamed would be neither, and nobody would notice."""
    for path in (*spread.HEAVY, *spread.LONG):
        assert list(spread.ROOT.glob(f"{path}*")), path
