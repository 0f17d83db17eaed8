"""What hangs on a session and belongs to nobody is removed; what has taken its slot since is not. Driven by hand."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Call, Flow
from holdfast.backends.etcd.acquire import AcquireFlows
from holdfast.backends.etcd.claim_state import ClaimState
from holdfast.backends.etcd.client_identity import ClientIdentity
from holdfast.backends.etcd.keys import Keys
from holdfast.backends.etcd.queue import MARKED
from holdfast.backends.etcd.rpc import Post, b64
from holdfast.backends.etcd.session import Session
from holdfast.backends.etcd.sessions import Sessions
from holdfast.backends.etcd.txns import describe, value
from holdfast.errors import OutcomeUnknown
from holdfast.model import Claim
from holdfast.recipes import specs

KEYS = Keys("holdfast")
SLOT = KEYS.claim("door", "coordinator.0")
NOW_IS = 100.0
TTL = 30.0
HEADER = {"revision": "98", "raft_term": "2"}


def state(owner: str, session: Session, given: float) -> ClaimState:
    claim = Claim(specs.mutex("door", {"ttl": TTL}), owner, "actor")
    return ClaimState(claim, SLOT, describe(claim, '"host"', 1), session, given=given, held=True, created=50)


def kv(of: ClaimState, created: int) -> dict[str, Any]:
    return {"key": SLOT, "create_revision": str(created), "value": b64(value(of, 1, MARKED))}


def tended(sessions: Sessions, session: Session, *replies: Any) -> list[str]:
    """What is told aside in the course of it; replies are calls of what etcd answers, in their order."""
    flow: Flow[None] = sessions.tend([session], 1.0)
    posts: list[str] = []
    answers = list(replies)
    try:
        op = flow.send(None)
        while True:
            if op is NOW:
                op = flow.send(NOW_IS)
                continue
            assert isinstance(op, Call)
            if isinstance(op.request, Post):
                rpc = op.request.make()
                assert rpc is not None
                posts.append(rpc.body)
                op = flow.send(None)
            else:
                answer = answers.pop(0)
                op = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    except StopIteration:
        assert answers == []
        return posts


def listed(*keys: str) -> list[Any]:
    return [{"result": {"header": HEADER, "TTL": "30"}}, {"TTL": "30", "keys": list(keys)}, {"header": HEADER}]


def read(*kvs: Any) -> list[Any]:
    return [{"header": {"revision": "99"}, "responses": [{"response_range": {"kvs": [each]}} for each in kvs]}]


def test_a_claim_of_nobody_is_removed_and_nothing_that_comes_after_it() -> None:
    session = Session(1, 30, sole=False)
    [body] = tended(Sessions(KEYS), session, listed(SLOT), read(kv(state("gone-1", session, 0.0), 50)))
    assert '"create_revision":50' in body
    assert f'"request_delete_range":{{"key":"{SLOT}"' in body


def test_a_seat_that_was_taken_again_since_the_list_was_made_is_left_alone() -> None:
    """When the list is read the slot is free; by the time that etcd shows the key, it is another claim's."""
    session, sessions = Session(1, 30, sole=False), Sessions(KEYS)
    anew = state("anew-2", session, NOW_IS)

    class AcquireFlows:
        """The read of what is suspected, during which a thread takes the slot."""

        def __iter__(self) -> Any:
            sessions.states["anew-2"] = session.members[SLOT] = anew
            return iter(read(kv(anew, 60)))

    assert tended(sessions, session, listed(SLOT), AcquireFlows()) == []


def test_a_hold_that_was_lost_is_removed_and_one_that_is_kept_is_not() -> None:
    session, sessions = Session(1, 30, sole=False), Sessions(KEYS)
    lost = sessions.states["mine-1"] = session.members[SLOT] = state("mine-1", session, NOW_IS - TTL - 1)
    [body] = tended(sessions, session, listed(SLOT), read(kv(lost, 50)))
    assert '"create_revision":50' in body
    lost.given = NOW_IS
    assert tended(sessions, session, listed(SLOT)) == []


def test_a_claim_that_is_asked_for_again_is_not_swept() -> None:
    """Its grant was over when it arrived: its owner holds nothing, and is about to look again."""
    session, sessions = Session(1, 30, sole=False), Sessions(KEYS)
    lost = sessions.states["mine-1"] = session.members[SLOT] = state("mine-1", session, NOW_IS - TTL - 1)

    class Asking:
        """The read of what is suspected, during which its owner asks again."""

        def __iter__(self) -> Any:
            lost.held = False
            return iter(read(kv(lost, 50)))

    assert tended(sessions, session, listed(SLOT), Asking()) == []
    assert not lost.doomed


def test_a_claim_that_is_being_swept_is_not_asked_for_again() -> None:
    """It enters the line anew, at another slot: at the old one it may be gone at any moment."""
    session, sessions = Session(1, 30, sole=False, since=NOW_IS, asked_for=NOW_IS), Sessions(KEYS)
    assert sessions.slot() == 0
    lost = sessions.states["coordinator-1"] = session.members[SLOT] = state("coordinator-1", session, NOW_IS - TTL - 1)
    assert len(tended(sessions, session, listed(SLOT), read(kv(lost, 50)))) == 1
    assert lost.doomed
    identity = ClientIdentity("holdfast", "host", lambda: 1, lambda: 1, 1.0)
    flow = AcquireFlows(identity, KEYS, sessions).take_all([lost.claim], True)
    op: Any = flow.send(None)
    while not isinstance(op, Call):
        op = flow.send(NOW_IS if op is NOW else 0.5)
    assert SLOT not in "".join(rpc.body for rpc in op.request.rpcs)
    assert sessions.states["coordinator-1"] is not lost
    flow.close()


def test_one_owner_has_one_place() -> None:
    """What it is said to have elsewhere is nobody's."""
    session, sessions = Session(1, 30, sole=False), Sessions(KEYS)
    mine = sessions.states["mine-1"] = session.members[SLOT] = state("mine-1", session, NOW_IS)
    other = KEYS.claim("window", "coordinator.1")
    [body] = tended(sessions, session, listed(SLOT, other), read(kv(mine, 50) | {"key": other}))
    assert f'"request_delete_range":{{"key":"{other}"' in body


def test_what_will_keep_a_name_closed_outlives_renewals() -> None:
    """It hangs on a lease of its own, which is kept alive with its holder's, and on which nothing else hangs."""
    session, delay_lease, sessions = Session(1, 30, sole=True), Session(2, 1030, sole=True), Sessions(KEYS)
    mine = sessions.states["mine-1"] = session.members[SLOT] = state("mine-1", session, NOW_IS)
    mine.delay_lease = delay_lease
    assert tended(sessions, delay_lease, listed(KEYS.tombstone("door", "mine-1"))) == []
    assert delay_lease.since == NOW_IS


def test_a_read_that_fails_is_no_failure_of_the_renewal() -> None:
    session = Session(1, 30, sole=False)
    assert tended(Sessions(KEYS), session, listed(SLOT), OutcomeUnknown("no answer")) == []
    assert session.since == NOW_IS


def test_what_was_answered_in_another_term_than_the_one_that_a_majority_confirmed_does_not_count() -> None:
    """A leader that was deposed answers keep-alives by itself; a member that followed it passes them on."""
    session = Session(1, 30, sole=False)
    replies = [*listed(SLOT)[:2], {"header": HEADER | {"raft_term": "3"}}]
    assert tended(Sessions(KEYS), session, replies) == []
    assert session.since < 0
    over = [{"result": {"header": HEADER}}, {"TTL": "-1"}]
    assert tended(Sessions(KEYS), session, [*over, {"header": HEADER | {"raft_term": "3"}}]) == []
    assert not session.dead
    assert tended(Sessions(KEYS), session, [*over, {"header": HEADER}]) == []
    assert session.dead


def test_a_claim_whose_release_failed_is_removed_and_one_whose_release_is_under_way_is_not() -> None:
    session, sessions = Session(1, 30, sole=False), Sessions(KEYS)
    mine = sessions.states["mine-1"] = session.members[SLOT] = state("mine-1", session, NOW_IS)
    mine.leaving = mine.releasing = True
    assert tended(sessions, session, listed(SLOT)) == []
    mine.releasing = False
    [body] = tended(sessions, session, listed(SLOT), read(kv(mine, 50)))
    assert '"create_revision":50' in body
    assert sessions.states
    assert tended(sessions, session, listed()) == []  # it is gone
    assert not sessions.states
    assert not session.members


def test_a_session_that_nobody_kept_alive_for_its_time_carries_no_new_claim() -> None:
    """What hangs on it belongs to nobody; kept alive, it would stay for ever."""
    sessions = Sessions(KEYS)
    spec = specs.mutex("door", {"ttl": TTL})

    def shared(now: float) -> Session:
        flow = sessions.shared(spec)
        op: Any = flow.send(None)
        try:
            while True:
                op = flow.send(now if op is NOW else 0.25)
        except StopIteration as stop:
            found: Session = stop.value
            return found

    old = shared(NOW_IS)
    old.since = NOW_IS
    given_up = sessions.states["mine-1"] = old.members[SLOT] = state("mine-1", old, NOW_IS)
    given_up.leaving = True
    assert shared(NOW_IS + TTL) is old
    assert shared(NOW_IS + TTL + 1) is not old
    assert not sessions.states
