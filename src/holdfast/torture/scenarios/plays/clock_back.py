"""The engine's clock is set back: tokens must go on growing all the same; what runs out, runs out late."""

from ..model import Scenario, Telling
from ..reasons import no_clock
from ..words import A, B, C, clock_is_moved


def _remark(telling: Telling) -> str:
    if telling.errors.get("C account") == "NotAcquired":
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
