"""Many wait for one lock. Each gets it once, one at a time; where the engine keeps a line, in the order of arrival."""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, Participant

HERD = tuple(Participant(f"W{number}") for number in range(1, 7))


def _remark(outcome: ScenarioOutcome) -> str:
    return f"all {len(HERD)} are let in, one at a time" if not outcome.errors else "some were never let in"


SCENARIO = Scenario(
    "herd",
    f"{len(HERD)} clients wait for one lock that is let go of.",
    (
        A.acquires(ttl=20),
        *(one.queues_for_work(patience=40) for one in HERD),
        A.reads(),
        A.writes(),
        A.releases(),
        *(one.hears() for one in HERD),
    ),
    remark=_remark,
)
