"""Which tests go to the same worker, where several workers share the tests (pytest-xdist).

1. Tests of one file stay together: they share the fixtures of their module.
2. The contract is one file for all engines, so its tests stay together by engine and body.
"""

from __future__ import annotations

from typing import Any

import pytest

CONTRACT = "tests/contract/test_contract.py::"


def scope_of(nodeid: str) -> str:
    """Tests with the same scope go to the same worker.

    >>> scope_of("tests/unit/test_line.py::test_it[1::2]")
    'tests/unit/test_line.py'
    >>> scope_of("tests/contract/test_contract.py::test_promise[redis-expiry.a_silent_holder-sync]")
    'tests/contract/test_contract.py redis sync'
    """
    file, _, name = nodeid.partition("::")
    if nodeid.startswith(CONTRACT):
        words = name.partition("[")[2].rstrip("]").split("-")
        return f"{file} {words[0]} {words[-1]}"
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Take the place of `--dist loadfile`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped, unused-ignore]

    class Spread(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Spread(config, log)
