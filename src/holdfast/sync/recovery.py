# Generated from src/holdfast/aio/recovery.py by `make generate`: change that file, not this one.
"""What is done about work that did not end cleanly: by whoever lost the lock, and by whoever holds it next.

1. `recover=` of a lock is called after the grant and before the body, and only if the predecessor did not end cleanly.
   While it runs, the name is held and renewed as in a body; if the lease is lost, it is over.
2. It succeeds, and the engine is told: the name is recovered. It raises, or its process dies, and the name stays
   unrecovered: the next holder is told of a predecessor, and calls its own.
3. An acquisition of the same reentrant lock within it does not begin anew.
4. The steps of a `Recovery` are in order: stop, verify, compensate, alert. What raises ends them, but for the alert,
   which always comes last and is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import Misconfigured
from ..model import Predecessor
from ..recipes.options import check_hook
from .decorator import call_policy
from .lease import Lease

Recover: TypeAlias = Callable[[Lease, Predecessor], object]
"""What `recover=` takes."""

Outcome = Literal["open", "verified", "compensated", "failed"]


def put_right(lease: Lease, recover: Recover) -> None:
    """Have what the predecessor left put right, or release and raise."""
    hold, coordinator = lease._hold, lease._coordinator
    predecessor = hold.predecessor
    assert predecessor is not None, "there is something to put right"
    hold.to_recover = False  # rule 3
    lease._enter()
    try:
        call_policy(recover, "recover=", lease, predecessor)
        lease.check()
        coordinator._run(coordinator._core.recovered(hold))
    except BaseException as error:
        coordinator._core.count(hold, "recoveries_failed")
        lease.__exit__(type(error), error, error.__traceback__)
        raise
    lease._leave()
    coordinator._core.count(hold, "recoveries")


@dataclass(slots=True)
class RecoveryCase:
    """What the steps of a `Recovery` are called with.

    `predecessor` is None after a loss of one's own. `outcome` is what the steps have come to so far, and `error` what
    one of them raised.
    """

    lease: Lease
    predecessor: Predecessor | None = None
    outcome: Outcome = "open"
    error: BaseException | None = None

    @property
    def name(self) -> str:
        """What was locked."""
        return self.lease.name

    @property
    def token(self) -> int:
        """The token of the hold that did not end cleanly: what it wrote last carries this one, or none."""
        return self.lease.token if self.predecessor is None else self.predecessor.token

    @property
    def reason(self) -> str:
        """How it ended: why the lease was lost, or how the predecessor ended."""
        return self.lease.reason or "unknown" if self.predecessor is None else self.predecessor.ended


Step: TypeAlias = Callable[[RecoveryCase], object]


class Recovery:
    """Stop, verify, compensate, alert: for `on_lost=` and for `recover=` of a lock.

    `stop` ends what goes on. `verify` tells whether the resource is in order; only if it answers False, or is not
    given, `compensate` is called. `alert` comes last, whatever happened, and is told by `case.outcome`: verified,
    compensated, failed (then `case.error` says why), or open where there is nothing to verify or compensate.

    >>> import holdfast
    >>> said: list[str] = []
    >>> steps = holdfast.Recovery(verify=lambda case: False, compensate=lambda case: said.append(case.reason),
    ...                           alert=lambda case: said.append(case.outcome))
    >>> with holdfast.connect("memory://doc-recovery") as locks:
    ...     lease = locks.lock("orders/7", recover=steps).acquire()
    ...     assert locks.evict("orders/7", lease.token)  # so the first one does not end cleanly
    ...     with locks.lock("orders/7", recover=steps):
    ...         said
    ['evicted', 'compensated']
    """

    def __init__(
        self,
        *,
        stop: Step | None = None,
        verify: Step | None = None,
        compensate: Step | None = None,
        alert: Step | None = None,
    ) -> None:
        steps = {"stop": stop, "verify": verify, "compensate": compensate, "alert": alert}
        for what, step in steps.items():
            check_hook(what, step, "a Recovery", awaits=False)
        if not any(steps.values()):
            raise Misconfigured("a Recovery without a step does nothing; give stop, verify, compensate or alert")
        self._stop, self._verify, self._compensate, self._alert = stop, verify, compensate, alert

    def __call__(self, lease: Lease, predecessor: Predecessor | None = None) -> None:
        """Take the steps; raises what one of them raised, after the alert."""
        case = RecoveryCase(lease, predecessor)
        try:
            self._take_steps(case)
        except BaseException as error:
            case.outcome, case.error = "failed", error
            raise
        finally:
            self._take(self._alert, case)

    def _take_steps(self, case: RecoveryCase) -> None:
        self._take(self._stop, case)
        if self._verify is not None and self._take(self._verify, case) is not False:
            case.outcome = "verified"
        elif self._compensate is not None:
            self._take(self._compensate, case)
            case.outcome = "compensated"

    def _take(self, step: Step | None, case: RecoveryCase) -> object:
        return None if step is None else call_policy(step, "a step of a Recovery", case)
