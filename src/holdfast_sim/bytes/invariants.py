"""What must hold when an engine's own client speaks to its servers, whatever the network does.

1. Leases that are definitely held stay within the capacity (`invariants.leases`), except where a server has lost data.
2. Tokens: of two exclusive leases of a name, the one that was handed out later has the larger token; a shared or
   counted one has a larger token than every exclusive one before it.
3. A holder is told of the end of its lease when it comes, and renewal is not given up (`invariants.deadlines`).
4. Every call to the client ends by its deadline (`observer`); opening and closing are bounded (`process`); an
   acquisition ends within its timeout and one request timeout (`workload`).
5. When the faults are over everybody comes to an end, and gets in again within a bounded time.
6. When all is quiet and the longest ttl has passed, nothing is left at the servers; connections, background tasks and
   what servers keep for them have not grown beyond what the engine needs. After a close nothing of its process is left.
7. Behind a fence no update is lost (`resource`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast._core.lease import Hold
from holdfast.model import Claim

from ..invariants.deadlines import DeadlineInvariants
from ..invariants.leases import LeaseInvariants
from ..process import Process
from ..violation import Violation

if TYPE_CHECKING:
    from .engines.base import SimulatedEngine
    from .process import ClientProcess
    from .world import ByteWorld


class ByteLeaseInvariants(LeaseInvariants):
    """Without a look at the engine's own places: every engine keeps them in its own way."""

    _newest: tuple[Process, Hold]

    def __init__(self, world: ByteWorld) -> None:
        shared: Any = world
        super().__init__(shared)
        self._byte_world = world

    @property
    def _engine(self) -> SimulatedEngine:
        return self._byte_world.engine

    def _in_its_place(self, process: Process, hold: Hold) -> None:
        return

    def stand(self, name: str) -> None:
        return

    def acquired(self, process: Process, hold: Hold) -> None:
        self._newest = process, hold
        self._engine.granted(hold)
        super().acquired(process, hold)

    def _is_rival(self, process: Process, hold: Hold) -> bool:
        newest, newest_hold = self._newest
        alone = process is not newest and not (self._engine.excludes(hold) and self._engine.excludes(newest_hold))
        return not alone and super()._is_rival(process, hold)

    def counts(self, process: Process, hold: Hold) -> bool:
        """Whether it is definitely held."""
        return self._definite(process, hold) and self._engine.excludes(hold)

    def held(self) -> list[tuple[str, int]]:
        """Names and tokens, as far as their holders know."""
        return [(name, hold.token) for name, held in self._held.items() for _, hold in held if hold.alive]


class _NoLimiterRule:
    """The rate is checked where the store is simulated without its protocol."""

    def passed(self, task: object) -> None:
        return


class ByteInvariants:
    """All invariants of one seed. The workload tells it what happens."""

    def __init__(self, world: ByteWorld) -> None:
        self._world = world
        shared: Any = world
        self.leases = ByteLeaseInvariants(world)
        self.deadlines = DeadlineInvariants(shared)
        self.limiter = _NoLimiterRule()
        self._tokens: dict[str, tuple[int, int]] = {}
        """By name: the largest token so far, and the largest of an exclusive lease."""
        self.longest = 0.0
        """The longest time for which any claim so far may leave something behind, in seconds."""

    # What happens to the world

    def is_disturbed(self, owner: str) -> bool:
        return True

    def forgotten(self, leases: bool = True, tokens: bool = True) -> None:
        """A server has lost data: leases of before are not checked, and tokens may have begun anew."""
        if leases:
            self.leases.void(self._world.timeline.now)
        if tokens:
            self._tokens.clear()
            self._world.resources.promised = False

    # What clients do

    def claimed(self, claim: Claim) -> None:
        spec = claim.spec
        self.longest = max(self.longest, spec.ttl + max(spec.lock_delay, spec.ttl), spec.ttl + spec.hold_at_least)

    def acquired(self, process: Process, hold: Hold) -> None:
        self.leases.acquired(process, hold)
        self.deadlines.acquired(process, hold)
        self._order(process, hold)
        self._world.count("acquired")

    def _order(self, process: Process, hold: Hold) -> None:
        spec, token = hold.claim.spec, hold.token
        if not self.leases.counts(process, hold):
            return  # it came too late to mean anything
        largest, exclusive = self._tokens.get(spec.name, (0, 0))
        alone = spec.weight == spec.capacity
        if token <= (largest if alone else exclusive):
            raise Violation(
                "tokens strictly grow",
                f"{spec.name!r}: {hold.claim.owner} has {token}, after {largest if alone else exclusive} was granted",
            )
        self._tokens[spec.name] = max(largest, token), max(exclusive, token) if alone else exclusive

    def letting_go(self, process: Process, hold: Hold) -> None:
        return

    def ended(self, claims: Iterable[Claim], at_once: bool) -> None:
        return

    # The end

    def at_rest(self) -> None:
        """All is quiet, and the longest ttl has passed."""
        world = self._world
        for process in world.processes:
            if process.crashed or not process.is_open:
                continue
            core = process.core
            if core.holding or core.reentered or core.holds:
                raise Violation("nothing is left behind", f"{process.name} still accounts for {core.holding}")
            self._not_grown(process.name, "connections", process.open_connections, world.engine.most_connections)
            self._not_grown(process.name, "background tasks", len(process.tasks), world.engine.most_tasks)
        if left := world.engine.leftovers():
            raise Violation("nothing is left behind", "the servers still have " + "; ".join(left))
        for what, (count, most) in world.engine.growth().items():
            self._not_grown("the servers", what, count, most)

    def _not_grown(self, who: str, what: str, count: int, most: int) -> None:
        if count > most:
            raise Violation("nothing grows", f"{who}: {count} {what}, and {most} would do")

    def after_close(self) -> None:
        world = self._world
        for process in world.processes:
            self.after_close_of(process)
        if all(process.crashed or process.closed for process in world.processes):
            for what, count in world.engine.after_close().items():
                if count:
                    raise Violation("a close leaves nothing", f"the servers still have {count} {what}")

    def after_close_of(self, process: ClientProcess, is_quiet: bool = True) -> None:
        """What is left in a process some time after it has closed; `is_quiet`: nothing goes on in the background."""
        if process.crashed or not process.closed or process.stopped_until > self._world.timeline.now:
            return
        if process.open_connections:
            raise Violation("a close leaves nothing", f"{process.name}: {process.open_connections} connections")
        tasks = [task.label for task in process.tasks if task.label != "keeper" and not task.label.startswith("script")]
        if is_quiet and tasks:
            raise Violation("a close leaves nothing", f"{process.name}: {', '.join(tasks)} still run")
