"""The command line on a fresh engine, with signals as an interactive shell would leave them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.harness import Cli


@pytest.fixture(autouse=True)
def _nothing_ignored() -> Iterator[None]:
    """A shell starts background jobs with SIGINT and SIGQUIT ignored, and what we start would inherit that."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    with Cli(tmp_path) as made:
        yield made
