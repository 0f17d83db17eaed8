"""The engine's clock is set back: tokens must go on growing all the same; what runs out, runs out late."""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, B, C, clock_is_moved
from ..unsupported import no_clock


def _remark(outcome: ScenarioOutcome) -> str:
    if outcome.errors.get("C account") == "NotAcquired":
        return "tokens go on growing; a dead holder's lock stays closed until the clock has caught up"
    return "tokens go on growing; a dead holder's lock opens all the same"


SCENARIO = Scenario(
    "clock-back",
    "The engine's clock is set back an hour; then a holder dies.",
    (
        *A.works(),
        clock_is_moved(-3600),
        *B.works(),
        A.acquires(ttl=4),
        A.reads(),
        A.writes(),
        clock_is_moved(-7200),
        A.is_killed(),
        *C.works(patience=8),
    ),
    why_not=no_clock,
    remark=_remark,
)
