"""Cells of the contract's matrix that fail today, each with the number under which issue 9 asks for its mend.

This table must be empty when the issue is closed. Whoever mends an engine removes its entries: they are marked
xfail(strict=False), so an entry that is no longer needed does no harm, and says "XPASS".
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.contract.engines import ELSEWHERE

THREADS, TASKS, BOTH = ("sync",), ("asyncio",), ("sync", "asyncio")
IDLE = ("idle_network.the_next_tries_work", "idle_network.the_next_look_works", "idle_network.what_is_held_stays_held")
CLOSE = "silent_network.closing_costs_one_timeout"
SEVERAL = "silent_network.giving_up_several_names_costs_one_timeout"
LEFT = "left_connections.when_closing_is_cancelled"
CONNECT = "silent_network.connecting_ends_and_blocks_no_loop"
KNOWN: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {}
"""(engine, promise): with which bodies it fails, and the number."""

IN_THE_CORE: dict[str, int] = {}
"""Those that the reference engine over TCP does not keep either."""

HANGS = {
    ("postgresql", "silent_network.each_call_can_be_cancelled_while_it_dials"),
    ("postgresql.session", "silent_network.each_call_can_be_cancelled_while_it_dials"),
}
"""Those of them that do not even end: they are not run."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Called when tests are collected."""
    engines = {path: engine for engine, path in ELSEWHERE.items()}
    for item in items:
        engine = engines.get(item.nodeid.partition("::")[0])
        if engine is None:
            continue
        name = item.name.rstrip("]").replace("__", "-")  # of a parametrised test, or of a `Contract`
        for (whose, promise), (bodies, number) in KNOWN.items():
            among = promise.replace(".", "-") in name.replace(".", "-")
            if whose == engine and among and name.endswith(tuple(f"-{body}" for body in bodies)):
                run = (whose, promise) not in HANGS
                item.add_marker(pytest.mark.xfail(reason=f"issue 9, number {number}", strict=False, run=run))
