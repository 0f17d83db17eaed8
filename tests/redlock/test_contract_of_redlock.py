"""Every promise of the contract, on a quorum of five servers, for threads and for asyncio.

A quorum has no line, so it does not promise what only a line can keep; it says so in its `promises`, and refuses
what it can not do at all. Each such cell is played as that refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.errors import Misconfigured
from holdfast.ports import Engine
from holdfast.sync.driver import run
from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises, play
from tests.redlock.quorums import quorum

NOT_KEPT = {
    **dict.fromkeys(("bad_input.names", "bad_input.options", "bad_input.counts"), "shared"),
    **dict.fromkeys(("bad_input.rates", "namespaces.names_in_two_of_them_are_two_names"), "limits"),
    **dict.fromkeys((p.name for p in contract_promises() if p.name.startswith("limiter.")), "limits"),
    **dict.fromkeys((p.name for p in contract_promises() if p.name.startswith("deadlock.")), "deadlock"),
    **dict.fromkeys((p.name for p in contract_promises() if p.name.startswith("fifo_order.")), "order"),
    "cancellation.of_a_permit": "counting",
    "decorators.a_limiter_too": "limits",
    "lost_wakeup.the_line_behind_it_moves_on": "order",
    "lost_wakeup.evicted_before_it_looked": "order",
    "survey.holders_and_waiters_in_order": "order",
}
"""Promises that a quorum does not make, or that are played with recipes it refuses, and the note that says so."""


@pytest.fixture(scope="module")
def venue() -> Iterator[Venue]:
    with quorum(5) as servers:
        founded: set[str] = set()

        def open_founded(url: str, namespace: str, request_timeout: float) -> Engine:
            """The first request in a namespace founds it; a promise that counts requests is played after that."""
            if namespace not in founded:
                founded.add(namespace)
                engine = open_engine(servers.url(), namespace, 5.0)
                wire = engine.wire()
                run(engine.backend.survey(""), wire)  # type: ignore[attr-defined]
                wire.close()
            return open_engine(url, namespace, request_timeout)

        yield Venue(servers.url(), open_founded)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_promise(promise: Promise, body: Body, venue: Venue) -> None:
    note = NOT_KEPT.get(promise.name)
    if note is None:
        play(promise, venue, body)
        return
    with holdfast.connect(venue.url) as locks:
        assert locks.promises.notes[note]
        if note == "limits":
            with pytest.raises(Misconfigured, match="can not limit rates"):
                locks.limiter("a", "5/s").try_acquire()
