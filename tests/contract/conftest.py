"""The matrix: each engine is made ready once per session, and no cell may be skipped."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack

import pytest

from holdfast.testing import Venue
from tests.contract.engines import ENGINES


@pytest.fixture(scope="session")
def venues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Venue]]:
    """The venue of a scheme, made ready when it is first asked for."""
    ready: dict[str, Venue] = {}
    with ExitStack() as stack:

        def venue(scheme: str) -> Venue:
            if scheme not in ready:
                ready[scheme] = stack.enter_context(ENGINES[scheme](tmp_path_factory.mktemp(scheme)))
            return ready[scheme]

        yield venue


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a cell of the matrix may not be skipped"
    return report
