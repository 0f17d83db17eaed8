"""A holder whose lease has run out releases late: that must not free the lock of the next holder."""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, B, C, lease_runs_out


def _remark(outcome: ScenarioOutcome) -> str:
    if outcome.errors.get("A account"):
        return "the next holder waits for the late release: there is nothing else to open"
    if outcome.errors.get("C account") == "NotAcquired":
        return "the late release opens nothing: a third one is kept out"
    return "the late release OPENS the lock of the next holder"


SCENARIO = Scenario(
    "foreign-release",
    "A holder lets its lease run out, another one takes over, and then the first releases.",
    (
        B.acquires(renew=False),
        lease_runs_out(),
        A.acquires(ttl=20, patience=3),
        A.reads(),
        B.releases(),
        *C.works(patience=1),
        A.writes(),
        A.releases(),
        C.retries(),
    ),
    remark=_remark,
)
