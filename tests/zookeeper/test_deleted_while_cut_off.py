"""The node of a hold is deleted while its holder is cut off: it learns of that when it is connected again.

The watches are told to the new server with the first words. What they tell may come with the last answer to these
words, in one piece, or before it.
"""

from __future__ import annotations

import pytest

import holdfast
from holdfast._core.flow import NOW, Endpoint, Flow, Open, Receive, Send
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.connection import SessionConnection
from holdfast.backends.zookeeper.connector import ServerRotation
from holdfast.backends.zookeeper.ops import acl
from holdfast.backends.zookeeper.session import AUTH, CATCH_UP, DELETED
from holdfast.model import Claim, LockSpec
from holdfast.testing.proxy import Network
from tests.redis.faces import eventually
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.test_session_machine import event, reply, welcome

SPEC = LockSpec("n", ttl=20.0)


class Line:
    """A connection that says these pieces."""

    closed = False

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def close(self) -> None:
        self.closed = True


def carry_out(flow: Flow[None], line: Line) -> None:
    answer: object = None
    while True:
        try:
            op = flow.send(answer)
        except StopIteration:
            return
        answer = None
        if op is NOW:
            answer = 0.0
        elif isinstance(op, Open):
            answer = line
        elif isinstance(op, Receive):
            answer = line.pieces.pop(0)
        else:
            assert isinstance(op, Send)


def connected() -> tuple[SessionConnection, ClaimState]:
    """A session with a hold whose node is watched."""
    servers = ServerRotation([Endpoint("h", 1)], "zookeeper://h")
    link = SessionConnection(servers, [("digest", b"a:b")], SPEC.ttl, 4.0, "/x", acl(), 0.0)
    carry_out(link.connect(1.0), Line(welcome(), reply(AUTH)))
    state = ClaimState(Claim(SPEC, "me", "a"), "/x/n", 20.0, node="mine", granted=1.0, confirmed=True)
    link.claims.own[state.path] = state
    link.session.on_data.add(state.path)
    return link, state


@pytest.mark.parametrize(
    "pieces",
    [
        [reply(AUTH), reply(CATCH_UP) + event(DELETED, "/x/n/mine")],
        [reply(AUTH) + reply(CATCH_UP) + event(DELETED, "/x/n/mine")],
        [event(DELETED, "/x/n/mine"), reply(AUTH), reply(CATCH_UP)],
    ],
)
def test_what_comes_with_the_first_words_is_heard(pieces: list[bytes]) -> None:
    link, state = connected()
    link.drop(link.up, ConnectionError("cut off"))
    carry_out(link.connect(1.0), Line(welcome(), *pieces))
    assert link.up is not None
    assert state.gone == "evicted"


def test_what_nobody_was_told_of_is_told_again() -> None:
    """An interruption struck between the receipt of an event and the look at it: the connection is lost by that."""
    link, state = connected()
    link.session.receive(event(DELETED, "/x/n/mine"))
    link.drop(link.up, ConnectionError("interrupted"))
    assert link.session.on_data == {state.path}


def test_the_holder_stops(ensemble: Ensemble) -> None:
    network = Network.start(ensemble.url)
    try:
        with holdfast.connect(network.url, ttl=20) as locks, holdfast.connect(ensemble.url) as others:
            for attempt in range(8):
                name = f"cut-off-{attempt}"
                lease = locks.lock(name).acquire()
                [state] = locks._core.backend._states.values()  # type: ignore[attr-defined]
                eventually(lambda: state.confirmed, "its node is watched")  # noqa: B023
                network.silence()
                network.reset()
                assert others.evict(name, lease.token)
                network.flow()
                with pytest.raises(holdfast.LeaseLost):  # what the watch tells comes before the answer
                    lease.renew()
                lease.release()
    finally:
        network.close()
