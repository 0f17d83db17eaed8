"""Known bugs of quorums, planted into the flows that ship or into the nodes: the invariants must find each.

The numbers in brackets are the traps of other libraries that they are taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast._core.flow import NOW, Call, Flow
from holdfast.backends.redlock.backend import RedlockBackend
from holdfast.backends.redlock.records import Memory
from holdfast.backends.redlock.recovery import NodeRecovery
from holdfast.errors import Misconfigured
from holdfast.model import Claim, Grant, Queued

from .node import NodeModel, Word

Patch = Callable[[Any, str, Any], None]
BUGS: dict[str, Callable[[Patch], None]] = {}


def bug(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    BUGS[plant.__name__.replace("_", "-")] = plant
    return plant


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a bug for the length of a `with`."""
    if name not in BUGS:
        raise Misconfigured(f"no bug is called {name!r}; there are: {', '.join(BUGS)}")
    undo: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, attribute: str, value: Any) -> None:
        undo.append((owner, attribute, owner.__dict__[attribute]))
        setattr(owner, attribute, value)

    try:
        BUGS[name](patch)
        yield
    finally:
        for owner, attribute, value in reversed(undo):
            setattr(owner, attribute, value)


class Counted(int):
    """A yes that comes with a counter."""

    counter = 0


@bug
def highest_of_the_counters(patch: Patch) -> None:
    """Each node counts its grants, and the highest counter is the token (24)."""

    def take_at_node(self: NodeModel, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        counters: dict[str, int] = self.__dict__.setdefault("counters", {})
        self.marks.pop(keys[0], None)
        said = honest_node(self, keys, args)
        if said == 1:
            counters[keys[0]] = counters.get(keys[0], 0) + 1
            said = Counted(1)
            said.counter = counters[keys[0]]
        return said

    def take(self: RedlockBackend, claim: Claim, *rest: Any) -> Flow[Grant | Queued | None]:
        flow, token = honest(self, claim, *rest), 0
        op: Any = flow.send(None)
        while True:
            reply, error = None, None
            try:
                reply = yield op
            except GeneratorExit:
                raise
            except BaseException as raised:  # noqa: BLE001  it belongs to the flow below
                error = raised
            else:
                if isinstance(op, Call) and op.request.verb == "take":
                    token = max([word.counter for word in reply.said if isinstance(word, Counted)], default=0)
            try:
                op = flow.send(reply) if error is None else flow.throw(error)
            except StopIteration as stop:
                outcome: Grant | Queued | None = stop.value
                return Grant(token, outcome.since, outcome.ttl) if isinstance(outcome, Grant) else outcome

    honest_node, honest = NodeModel._take, RedlockBackend.take
    patch(NodeModel, "_take", take_at_node)
    patch(RedlockBackend, "take", take)


@bug
def forgetful_nodes_vote(patch: Patch) -> None:
    """A node that restarted empty takes part at once."""

    def hello(self: NodeModel, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        said = honest(self, keys, args)
        if self.run[:8] != "00000000":  # it is not its first run
            memory = f"+{'0' * 20}{args[1]}{self.run}{'f' * 16}"
            self._set(f"{keys[0]}/memory", memory)
            return f"{self.now:016d}{memory}".encode()
        return said

    honest = NodeModel._hello
    patch(NodeModel, "_hello", hello)


@bug
def old_snapshots_are_trusted(patch: Patch) -> None:
    """A memory that came from disk counts as a memory."""

    def hello(self: NodeModel, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        return honest(self, keys, (args[0], args[1], "1"))

    honest = NodeModel._hello
    patch(NodeModel, "_hello", hello)


@bug
def seeded_without_waiting(patch: Patch) -> None:
    """A node is seeded at once: holders that count on what it forgot may still be there."""

    def seed(self: NodeRecovery, node: int, memory: Memory, voting: dict[int, Memory], now: float) -> Flow[None]:
        late = Memory(2**60, memory.kind, memory.run, memory.text, since=0)
        yield from honest(self, node, late, voting, now + 1e9)

    honest = NodeRecovery._seed
    patch(NodeRecovery, "_seed", seed)


@bug
def a_minority_is_left_behind(patch: Patch) -> None:
    """A round that failed is not undone at the nodes that said yes."""

    def undo(self: RedlockBackend, claim: Claim, round_: Any, tally: Any, queue: bool) -> Flow[None]:
        round_.clean = True
        yield NOW

    patch(RedlockBackend, "_undo", undo)


@bug
def extensions_bring_back_what_is_gone(patch: Patch) -> None:
    """A node extends a hold that it no longer has, whoever came after it (17)."""

    def extend(self: NodeModel, key: str, tracing: str, span: str, text: str, kept: str, memory: str) -> str:
        if self.get(key) is None:
            self._set(key, text, span)
            return "1"
        return honest(self, key, tracing, span, text, kept, memory)

    honest = NodeModel._extend_one
    patch(NodeModel, "_extend_one", extend)


@bug
def validity_from_the_reply(patch: Patch) -> None:
    """Validity counts from when the reply came, not from when the ballot was sent (2)."""

    def take(self: RedlockBackend, claim: Claim, *rest: Any) -> Flow[Grant | Queued | None]:
        outcome = yield from honest(self, claim, *rest)
        now: float = yield NOW
        return Grant(outcome.token, now + 0.05, outcome.ttl) if isinstance(outcome, Grant) else outcome

    honest = RedlockBackend.take
    patch(RedlockBackend, "take", take)
