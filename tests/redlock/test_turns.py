"""Whose turn it is: nodes tell whoever waits longest, nobody overtakes, and who is gone holds nobody up.

Counted are rounds and turns, and never time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

import holdfast
from holdfast._core.flow import Flow
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redlock import backend
from holdfast.backends.redlock.fanout import Fanout, Tally
from holdfast.backends.redlock.programs import program
from holdfast.backends.redlock.quorum_connections import QuorumConnections
from tests.redlock.quorums import Servers, eventually

CLIENTS, COORDINATORS, TURNS = 32, 8, 6
"""How many clients, of how many coordinators, and how many turns each would have if all had as many."""
MOST_ROUNDS = 2.5
"""Of asking, for a grant: one that queues, one that is granted, and what a busy machine adds; without turns it is 5."""
LISTENS = "feedbeef"


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is asked of the nodes, counted by program."""
    counts, honest = Counter[str](), QuorumConnections.ask

    def ask(self: QuorumConnections, request: Fanout, deadline: float) -> Flow[Tally]:
        counts[request.verb] += 1
        return honest(self, request, deadline)

    monkeypatch.setattr(QuorumConnections, "ask", ask)
    return counts


class Shares:
    """Who has had how many turns. A client stops once all together have had enough."""

    def __init__(self) -> None:
        self.turns = Counter[int]()
        self.grants = 0

    def add(self, client: int) -> bool:
        """Called by whoever holds the lock. Answers whether there is more to do."""
        self.grants += 1
        more = self.turns.total() < CLIENTS * TURNS
        self.turns[client] += more
        return more

    def check(self, rounds: Counter[str]) -> None:
        asked = rounds["take"] + rounds["leave"] + rounds["release"] - self.grants
        assert min(self.turns[client] for client in range(CLIENTS)) >= TURNS / 2, self.turns
        assert asked / self.grants <= MOST_ROUNDS, (asked, self.grants, rounds)


def test_all_threads_have_their_share_and_few_rounds_are_asked(five: Servers, rounds: Counter[str]) -> None:
    shares = Shares()
    with connected(five, "threads", COORDINATORS) as coordinators:
        for each in coordinators:
            each.lock("warm").acquire().release()
        rounds.clear()

        def work(client: int) -> None:
            lock, more = coordinators[client % COORDINATORS].lock("hot", ttl=30), True
            while more:
                with lock.acquire(timeout=60):
                    more = shares.add(client)

        run_all([threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)])
    shares.check(rounds)


def test_all_tasks_have_their_share_and_few_rounds_are_asked(five: Servers, rounds: Counter[str]) -> None:
    shares = Shares()

    async def work(client: int, locks: holdfast.aio.Coordinator) -> None:
        lock, more = locks.lock("hot", ttl=30), True
        while more:
            async with await lock.acquire(timeout=60):
                more = shares.add(client)

    async def main() -> None:
        coordinators = [await holdfast.aio.connect(five.url(), namespace="tasks") for _ in range(COORDINATORS)]
        try:
            for each in coordinators:
                await (await each.lock("warm").acquire()).release()
            rounds.clear()
            await asyncio.gather(*(work(client, coordinators[client % COORDINATORS]) for client in range(CLIENTS)))
        finally:
            for each in coordinators:
                await each.close()

    asyncio.run(main())
    shares.check(rounds)


def test_they_come_in_the_order_in_which_they_have_asked(five: Servers) -> None:
    order = list[int]()
    with connected(five, "order", 5) as coordinators:
        lease = coordinators[0].lock("a", ttl=30).acquire()

        def work(client: int) -> None:
            with coordinators[client].lock("a", ttl=30).acquire(timeout=60):
                order.append(client)

        threads = [threading.Thread(target=work, args=(client,)) for client in (3, 1, 4, 2)]
        for count, thread in enumerate(threads, start=1):
            thread.start()
            await_waiting(coordinators[0], count)
        lease.release()
        for thread in threads:
            thread.join(60)
    assert order == [3, 1, 4, 2]


def test_who_has_just_released_does_not_overtake_who_waits(five: Servers) -> None:
    with connected(five, "newcomer", 2) as (one, other):
        mine, theirs = one.lock("a", ttl=30), other.lock("a", ttl=30)
        lease, entered, done = mine.acquire(), threading.Event(), threading.Event()

        def work() -> None:
            with theirs.acquire(timeout=60):
                entered.set()
                done.wait(60)

        thread = threading.Thread(target=work)
        thread.start()
        await_waiting(one, 1)
        lease.release()
        overtaken = mine.try_acquire() is not None
        entered.wait(60)
        done.set()
        thread.join(60)
    assert not overtaken


def test_who_has_died_is_passed_over(five: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens where it did: the next one is told in the same step, and so need not look by itself."""
    monkeypatch.setattr(backend, "FIRST_LOOK_S", 600.0)
    monkeypatch.setattr(backend, "LONGEST_LOOK_S", 600.0)
    with connected(five, "dead", 2) as coordinators:
        hand_over_behind(five, "dead", coordinators)


def test_who_hangs_holds_others_up_for_a_moment_only(five: Servers) -> None:
    """It is told, hears it, and does not ask."""
    with ExitStack() as stack:
        for node in five.nodes:
            listener = stack.enter_context(node.client().pubsub())
            listener.subscribe(f"hung/marks/{LISTENS}")
            listener.get_message(timeout=5)
        with connected(five, "hung", 2) as coordinators:
            hand_over_behind(five, "hung", coordinators)


def test_whoever_cannot_be_told_gets_in_by_asking(five: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisConnection, "listens_on", lambda self, channel: None)
    with connected(five, "deaf", 2) as coordinators:
        hand_over_behind(five, "deaf", coordinators)


def test_nothing_is_left_of_whoever_stops_waiting(five: Servers) -> None:
    with connected(five, "leaves", 2) as (one, other):
        with one.lock("a", ttl=30).acquire():
            with pytest.raises(holdfast.NotAcquired):
                other.lock("a", ttl=30).acquire(timeout=0.05)
            lines = [node.raw("KEYS", "leaves/marks/*") for node in five.nodes]
        other.lock("a", ttl=30).acquire(timeout=60).release()
    assert not any(b"/line/" in line or b"/waiters" in line for line in lines), lines


# Help


@contextmanager
def connected(servers: Servers, namespace: str, count: int) -> Iterator[list[holdfast.Coordinator]]:
    with ExitStack() as stack:
        yield [stack.enter_context(holdfast.connect(servers.url(), namespace=namespace)) for _ in range(count)]


def await_waiting(locks: holdfast.Coordinator, count: int) -> None:
    eventually(lambda: sum(len(view.waiters) for view in locks.survey("a")) == count, f"{count} wait")


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)


def hand_over_behind(servers: Servers, namespace: str, coordinators: list[holdfast.Coordinator]) -> None:
    """To somebody before whom, in the line of each node, stands one who is not there."""
    one, other = coordinators
    lease = one.lock("a", ttl=60).acquire()
    text = f"{lease.token + 1:020d}{0:010d}ghost-1 1 h lock x"
    keys = (f"{namespace}/hold/a", f"{namespace}/marks")
    for node in servers.nodes:
        reply = node.client().execute_command("EVAL", program("take").source, 2, *keys, "30000", LISTENS, text)
        assert reply.startswith(b"H"), reply
    entered = threading.Event()

    def work() -> None:
        with other.lock("a", ttl=60).acquire():
            entered.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    await_waiting(one, 2)
    lease.release()
    assert entered.wait(20)
    thread.join(20)
    one.lock("a", ttl=30).acquire(timeout=60).release()
