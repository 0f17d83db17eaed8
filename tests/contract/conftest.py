"""One fixture for all engines: each is made ready when it is first needed, and no cell of the matrix may be skipped."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from holdfast.testing import EngineUnderTest
from tests.contract.engines import ENGINES


@pytest.fixture(scope="session", params=ENGINES)
def under_test(request: pytest.FixtureRequest) -> EngineUnderTest:
    """Each engine in turn; every promise runs in a namespace of its own, on a server that all tests share."""
    return ENGINES[request.param](request.getfixturevalue)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a cell of the matrix may not be skipped"
    return report
