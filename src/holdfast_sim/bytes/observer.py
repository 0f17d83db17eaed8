"""What stands between a coordinator and its client: it measures every call, and carries requests to the resource.

A call must end by its deadline, whatever the network does; a process that was paused meanwhile may be late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow, Sleep
from holdfast.backends.queue_backend import Survey
from holdfast.model import Claim, Extension, Refusal
from holdfast.ports import AnyBackend, Client

from ..resource import ClaimRead, FencedWrite, ReadCounter, WriteCounter
from ..violation import Violation

if TYPE_CHECKING:
    from .process import ClientProcess

OBSERVED = ("renew", "take", "release", "take_all")
"""What `observe_backend` puts itself in front of."""
RESOURCE_REQUESTS = (ClaimRead, FencedWrite, ReadCounter, WriteCounter)


class ObservedClient:
    """A `ports.Client` around the engine's own."""

    def __init__(self, process: ClientProcess, client: Client[Any, Any]) -> None:
        self._process = process
        self._client = client

    def call(self, request: Any, deadline: float) -> Flow[Any]:
        process, world = self._process, self._process.world
        if isinstance(request, RESOURCE_REQUESTS):
            yield Sleep(world.profile.latency)
            reply = world.resources.carry_out(request)
            yield Sleep(world.profile.latency)
            return reply
        world.operations += 1
        more = world.engine.survey_steps - 1 if isinstance(request, Survey) else 0
        call = ObservedCall(process, deadline + more * (deadline - process.clock()), request)
        try:
            return (yield from self._client.call(request, deadline))
        finally:
            call.end()

    def wait(self, owner: str, deadline: float) -> Flow[Any]:
        call = ObservedCall(self._process, deadline, f"a wait of {owner}")
        try:
            return (yield from self._client.wait(owner, deadline))
        finally:
            call.end()

    def close(self, deadline: float) -> Flow[None]:
        return self._client.close(deadline)

    def after_fork_in_child(self) -> None:
        self._client.after_fork_in_child()


class ObservedCall:
    """One call under way."""

    __slots__ = ("_began", "_deadline", "_process", "_what", "over")

    def __init__(self, process: ClientProcess, deadline: float, what: object) -> None:
        self._process = process
        self._deadline = deadline
        self._began = process.clock()
        self._what = what
        self.over = False
        late_at = process.true_time(max(deadline, self._began) + process.world.engine.call_slack_s)
        process.world.timeline.at(late_at, self._look)

    def end(self) -> None:
        self.over = True

    def _look(self) -> None:
        process = self._process
        if self.over or process.crashed or process.awake_since > self._began:
            return
        raise Violation(
            "a call ends by its deadline",
            f"{process.name} asked for {self._what} at {self._began:.3f}, with time until {self._deadline:.3f}, and "
            f"still waits at {process.clock():.3f}",
        )


def observe_backend(process: ClientProcess, backend: AnyBackend) -> None:
    """Count the renewals in flight, which the rules of deadlines need to know, and learn of every claim."""
    honest_renew, honest_take, honest_release = backend.renew, backend.take, backend.release
    honest_take_all = getattr(backend, "take_all", None)
    invariants = process.world.invariants

    def renew(claims: Sequence[Claim], within: float | None = None) -> Flow[Sequence[Extension | Refusal | None]]:
        process.renewing += 1
        try:
            return (yield from honest_renew(claims, within))
        finally:
            process.renewing -= 1
            process.renewed_at = process.clock()

    def take(claim: Claim, queue: bool, within: float | None = None) -> Flow[Any]:
        invariants.claimed(claim)
        tell("{} {} ({})", "takes" if queue else "tries", claim.spec.name, claim.owner)
        return (yield from told(honest_take(claim, queue, within), claim.owner))

    def release(claim: Claim, linger: float = 0.0) -> Flow[bool]:
        tell("releases {} ({})", claim.spec.name, claim.owner)
        return bool((yield from told(honest_release(claim, linger), claim.owner)))

    def told(flow: Flow[Any], owner: str) -> Flow[Any]:
        try:
            answer = yield from flow
        except Exception as error:
            tell("{}: {!r}", owner, error)
            raise
        tell("{}: {}", owner, answer)
        return answer

    def tell(what: str, *args: object) -> None:
        process.world.trace(process.name, what, *args)

    def take_all(claims: Sequence[Claim], queue: bool, within: float | None = None) -> Flow[Any]:
        for claim in claims:
            invariants.claimed(claim)
        tell("takes all of {}", ", ".join(f"{claim.spec.name} ({claim.owner})" for claim in claims))
        assert honest_take_all is not None
        return honest_take_all(claims, queue, within)  # type: ignore[no-any-return]

    backend.renew, backend.take, backend.release = renew, take, release  # type: ignore[method-assign]
    if honest_take_all is not None:
        backend.take_all = take_all  # type: ignore[attr-defined]
