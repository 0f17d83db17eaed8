"""Runs a flow by hand: the test is the driver, and decides what each op answers and when."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import Call, Flow, Now, Random, Spawn
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.backends.queue_backend import QueueBackend
from holdfast.model import Promises
from holdfast.observe.meter import Meter
from holdfast.observe.observer import Emit, Observer

BACKEND = QueueBackend("hand", "c", Promises(frozenset({"fencing", "shared", "counting"})), 0.001, 5.0)


class WakeEvent:
    """Counts how often it rings."""

    rung = 0

    def set(self) -> None:
        self.rung += 1


def coordination(emit: Emit | None = None, begun: list[Flow[None]] | None = None) -> CoordinatorCore:
    """`begun`: where the keeper's renewals go."""

    def begin(renewal: Flow[None]) -> bool:
        if begun is not None:
            begun.append(renewal)
        return True

    keeper = Keeper(BACKEND, RenewalSchedule(nullcontext()), WakeEvent(), lambda keeper: None, begin)
    observer = None if emit is None else Observer(Meter("hand", nullcontext()), emit)
    return CoordinatorCore(BACKEND, keeper, "me", observer)


class Hand:
    """Stops at every op but a look at the clock or at chance. `op` is what the flow waits for; None at its end."""

    def __init__(self, flow: Flow[Any], now: float = 100.0, chance: float = 0.5) -> None:
        self._flow = flow
        self.now = now
        self.chance = chance
        self.spawned: list[Flow[Any]] = []
        self.op: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._step(None, None)

    def answer(self, value: Any = None, after: float = 0.0) -> Any:
        """Answer the op, after some time has passed; gives the next op."""
        self.now += after
        return self._step(value, None)

    def throw(self, error: BaseException, after: float = 0.0) -> Any:
        self.now += after
        return self._step(None, error)

    @property
    def request(self) -> Any:
        assert isinstance(self.op, Call), self.op
        return self.op.request

    def stands_at(self, kind: type) -> bool:
        return isinstance(self.op, kind)

    @property
    def done(self) -> bool:
        return self.op is None

    def _step(self, value: Any, error: BaseException | None) -> Any:
        while True:
            try:
                op = self._flow.send(value) if error is None else self._flow.throw(error)
            except StopIteration as stop:
                self.op, self.result = None, stop.value
                return None
            except BaseException as raised:  # noqa: BLE001  the test looks at it
                self.op, self.error = None, raised
                return None
            error = None
            if isinstance(op, Now):
                value = self.now
            elif isinstance(op, Random):
                value = self.chance
            elif isinstance(op, Spawn):
                self.spawned.append(op.flow)
                value = True
            else:
                self.op = op
                return op
